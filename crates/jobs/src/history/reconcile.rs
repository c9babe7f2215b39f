//! The first look at a printer after a time without sight: at our start, and whenever the firmware host comes back. Pure.
//!
//! What was last seen is kept with the records ([`Mark`]), so that the two can be compared:
//!
//! | last seen | now | what follows |
//! |---|---|---|
//! | nothing, ever | a job | a record of it |
//! | a job | the same run | its record goes on, under its id |
//! | a job | the same run, ended | its record is closed with its numbers |
//! | a job | anything else | its record is closed with what is known; then as below |
//! | a job that a shutdown of the host ended | the same run, which the host goes on showing | nothing |
//! | no job, or one that ended | a job | a record of it |
//! | no job, or one that ended | another ended run | a record of it, closed |
//!
//! A record that was closed too early, because the host was out of sight, is opened again: the job keeps one record whatever happens.

use fwhost::{PrintState, PrintStats};
use protocol::jobs::JobStatus;

use super::record::{Mark, Numbers};

/// Seconds by which clocks and counters may disagree.
const SLACK: f64 = 5.0;

/// State that is kept of a run that a shutdown of the host has ended, whatever the host says of it.
pub(crate) const AFTER_SHUTDOWN: PrintState = PrintState::Error;

/// What the history has to do.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    /// The record of the mark goes on.
    Continue,
    /// The record of the mark goes on although it was closed.
    Reopen,
    /// The record of the mark ends.
    Close {
        /// How.
        status: JobStatus,
        /// When, as far as known.
        end_time: Option<f64>,
        /// The numbers to add to what is known.
        numbers: Option<Numbers>,
    },
    /// A run that has no record.
    Record {
        /// When it began, as far as known.
        start_time: f64,
    },
    /// The run of the mark is over, although the host still shows it: what is known of it stays as it is.
    Over,
    /// The run that was just recorded is over.
    Ended {
        /// How.
        status: JobStatus,
    },
}

/// What is known of the service and the host in the time without sight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Absence {
    /// The time of this look, Unix seconds.
    pub(crate) now: f64,
    /// Process id of the firmware host.
    pub(crate) host: Option<u64>,
    /// The record of the mark says that a shutdown of the host ended its run.
    pub(crate) was_shut_down: bool,
}

/// Compares; `open` is true when the mark's record is in progress.
pub(crate) fn reconcile(mark: Option<&Mark>, open: bool, look: &PrintStats, absence: Absence) -> Vec<Step> {
    let began = absence.now - look.total_duration;
    let Some(mark) = mark else {
        return if look.state.is_active() { vec![Step::Record { start_time: began }] } else { vec![] };
    };
    if !open && is_over(mark, look, absence) {
        return vec![Step::Over];
    }
    let same = mark.job.is_some() && is_same_run(mark, look, absence);
    let mut steps = Vec::new();
    if same {
        if !open {
            steps.push(Step::Reopen);
        }
        steps.push(match ending(look.state) {
            None => Step::Continue,
            Some(status) => {
                let end = (mark.start_time + look.total_duration).clamp(mark.seen_at, absence.now.max(mark.seen_at));
                Step::Close { status, end_time: Some(end), numbers: Some(Numbers::of(look)) }
            }
        });
        return steps;
    }
    if open {
        steps.push(unseen_end(mark, absence.host));
    }
    let known = mark.state == look.state && mark.filename == *look.filename && mark.numbers.total_duration == look.total_duration;
    match ending(look.state) {
        None if look.state.is_active() => steps.push(Step::Record { start_time: began }),
        Some(status) if !known && !look.filename.is_empty() => {
            steps.push(Step::Record { start_time: began.max(mark.seen_at.min(absence.now)) });
            steps.push(Step::Ended { status });
        }
        _ => {}
    }
    steps
}

/// The end of a job that nobody saw.
pub(crate) fn unseen_end(mark: &Mark, host: Option<u64>) -> Step {
    let died = matches!((mark.host, host), (Some(before), Some(now)) if before != now);
    let status = match (mark.orderly, died) {
        (_, true) => JobStatus::FwhostDisconnect,
        (true, false) => JobStatus::ServerExit,
        (false, false) => JobStatus::Interrupted,
    };
    let end_time = (status != JobStatus::Interrupted).then_some(mark.seen_at);
    Step::Close { status, end_time, numbers: None }
}

/// True when the look shows the run of the mark: it was under way then, its counters did not fall, and it did not begin after it was seen.
fn is_same_run(mark: &Mark, look: &PrintStats, absence: Absence) -> bool {
    let counters = match look.state {
        // A printer resets its counters when it cancels.
        PrintState::Cancelled => true,
        _ => look.total_duration >= mark.numbers.total_duration && look.print_duration >= mark.numbers.print_duration,
    };
    let began_before =
        absence.now - look.total_duration <= mark.seen_at + SLACK || look.state == PrintState::Cancelled || !look.state.is_active();
    let same_host = !matches!((mark.host, absence.host), (Some(before), Some(now)) if before != now);
    mark.state.is_active() && mark.filename == *look.filename && look.state != PrintState::Standby && counters && began_before && same_host
}

/// True when the look shows a run that a shutdown of the host has ended: until it is restarted, such a host goes on showing it, as paused and counting, or
/// as failed.
fn is_over(mark: &Mark, look: &PrintStats, absence: Absence) -> bool {
    let is_its_run = mark.job.is_some() && mark.filename == *look.filename && mark.host == absence.host;
    let began = absence.now - look.total_duration;
    let is_frozen = look.total_duration == mark.numbers.total_duration;
    absence.was_shut_down
        && is_its_run
        && match look.state {
            PrintState::Error => look.total_duration >= mark.numbers.total_duration,
            state => state.is_active() && (is_frozen || (began - mark.start_time).abs() <= SLACK),
        }
}

fn ending(state: PrintState) -> Option<JobStatus> {
    match state {
        PrintState::Complete => Some(JobStatus::Completed),
        PrintState::Cancelled => Some(JobStatus::Cancelled),
        PrintState::Error => Some(JobStatus::Error),
        PrintState::Standby | PrintState::Printing | PrintState::Paused => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(state: &str, filename: &str, total: f64) -> PrintStats {
        let state = PrintState::from_wire(state).unwrap();
        PrintStats {
            state,
            filename: filename.into(),
            message: "".into(),
            total_duration: total,
            print_duration: total,
            filament_used: 1.0,
        }
    }

    /// Seen at second 1000 in a job that began at 900 and had printed for 100 s.
    fn mark(state: &str) -> Mark {
        let seen = look(state, "a", 100.0);
        Mark {
            job: Some(7),
            filename: "a".into(),
            state: seen.state,
            numbers: Numbers::of(&seen),
            start_time: 900.0,
            seen_at: 1000.0,
            host: Some(1),
            orderly: false,
        }
    }

    const LATER: Absence = Absence { now: 1050.0, host: Some(1), was_shut_down: false };

    #[test]
    fn a_job_that_still_runs_keeps_its_record() {
        for state in ["printing", "paused"] {
            assert_eq!(reconcile(Some(&mark("printing")), true, &look(state, "a", 150.0), LATER), [Step::Continue]);
        }
        assert_eq!(reconcile(Some(&mark("printing")), false, &look("printing", "a", 150.0), LATER), [Step::Reopen, Step::Continue]);
    }

    #[test]
    fn a_job_that_ended_unseen_is_closed_with_its_numbers() {
        let ended = look("complete", "a", 120.0);
        let close = Step::Close { status: JobStatus::Completed, end_time: Some(1020.0), numbers: Some(Numbers::of(&ended)) };
        assert_eq!(reconcile(Some(&mark("printing")), true, &ended, LATER), [close]);
        let cancelled = reconcile(Some(&mark("printing")), true, &look("cancelled", "a", 0.0), LATER);
        assert!(matches!(cancelled[..], [Step::Close { status: JobStatus::Cancelled, end_time: Some(1000.0), .. }]), "{cancelled:?}");
    }

    #[test]
    fn a_job_that_is_gone_is_closed_as_what_is_known() {
        let gone = |mark: &Mark, host| reconcile(Some(mark), true, &look("standby", "", 0.0), Absence { host: Some(host), ..LATER });
        let interrupted = Step::Close { status: JobStatus::Interrupted, end_time: None, numbers: None };
        assert_eq!(gone(&mark("printing"), 1), [interrupted]);
        let exit = Step::Close { status: JobStatus::ServerExit, end_time: Some(1000.0), numbers: None };
        assert_eq!(gone(&Mark { orderly: true, ..mark("printing") }, 1), [exit]);
        let died = Step::Close { status: JobStatus::FwhostDisconnect, end_time: Some(1000.0), numbers: None };
        assert_eq!(gone(&Mark { orderly: true, ..mark("printing") }, 2), [died]);
    }

    #[test]
    fn another_run_is_another_record() {
        let interrupted = Step::Close { status: JobStatus::Interrupted, end_time: None, numbers: None };
        for now in [look("printing", "b", 150.0), look("printing", "a", 20.0), look("paused", "a", 30.0)] {
            let began = LATER.now - now.total_duration;
            assert_eq!(
                reconcile(Some(&mark("printing")), true, &now, LATER),
                [interrupted.clone(), Step::Record { start_time: began }],
                "{now:?}"
            );
        }
        let much_later = Absence { now: 5000.0, ..LATER };
        let steps = reconcile(Some(&mark("printing")), true, &look("printing", "a", 150.0), much_later);
        assert_eq!(steps, [interrupted, Step::Record { start_time: 4850.0 }], "it began after the first was last seen");
    }

    #[test]
    fn runs_that_nobody_saw_are_recorded_once() {
        let seen = mark("complete");
        assert_eq!(reconcile(Some(&seen), false, &look("complete", "a", 100.0), LATER), []);
        assert_eq!(reconcile(Some(&seen), false, &look("standby", "", 0.0), LATER), []);
        let (record, ended) = (Step::Record { start_time: 1045.0 }, Step::Ended { status: JobStatus::Error });
        assert_eq!(reconcile(Some(&seen), false, &look("error", "a", 5.0), LATER), [record, ended]);
        assert_eq!(reconcile(Some(&seen), false, &look("printing", "a", 10.0), LATER), [Step::Record { start_time: 1040.0 }]);
    }

    #[test]
    fn a_job_that_a_shutdown_ended_stays_as_it_is_though_the_host_shows_it() {
        let absence = Absence { was_shut_down: true, ..LATER };
        let ended = Mark { state: AFTER_SHUTDOWN, ..mark("printing") };
        for still in [look("paused", "a", 150.0), look("paused", "a", 100.0), look("printing", "a", 148.0), look("error", "a", 100.3)] {
            assert_eq!(reconcile(Some(&ended), false, &still, absence), [Step::Over], "{still:?}");
        }
        let began = |look: &PrintStats, absence: Absence| reconcile(Some(&ended), false, look, absence);
        assert_eq!(began(&look("printing", "a", 20.0), absence), [Step::Record { start_time: 1030.0 }], "printed again");
        let restarted = Absence { host: Some(2), ..absence };
        assert_eq!(began(&look("printing", "a", 150.0), restarted), [Step::Record { start_time: 900.0 }], "by another host");
        assert_eq!(began(&look("standby", "", 0.0), absence), []);
        let failed_again = reconcile(Some(&ended), false, &look("error", "a", 120.0), LATER);
        assert!(
            matches!(failed_again[..], [Step::Record { .. }, Step::Ended { .. }]),
            "one that failed by itself before: {failed_again:?}"
        );
    }

    #[test]
    fn the_first_look_of_all_knows_nothing_of_the_past() {
        assert_eq!(reconcile(None, false, &look("complete", "a", 9.0), LATER), []);
        assert_eq!(reconcile(None, false, &look("printing", "a", 50.0), LATER), [Step::Record { start_time: 1000.0 }]);
    }
}
