//! What the printer does with jobs, derived from two consecutive looks at `print_stats`. Pure, and the only place that decides it: no
//! subscription of any client has a part in it.
//!
//! ```text
//!                  ┌───────────── Standby ◄─────────────┐
//!                  ▼                                     │
//!   no job (standby, complete, cancelled, error)         │
//!        │                     ▲                         │
//!     Started                  │ Complete, Cancelled, Error
//!        ▼                     │                         │
//!    printing ── Paused ──► paused ──────────────────────┤
//!        ▲ └─────────────────────────────────────────────┘
//!        └──── Resumed ────────┘
//! ```
//!
//! A look may come late, so that states in between are not seen. Then the events in between are told all the same: a job that was never seen
//! printing has `Started` before whatever else became of it, and another file or fewer seconds than before are another run, which has `Started`
//! once more. Source: wire/2-files-jobs.md section 5.1.

use fwhost::{PrintState, PrintStats};

/// Something happened to the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JobEvent {
    /// A job began.
    Started,
    /// It was paused.
    Paused,
    /// It goes on.
    Resumed,
    /// It was printed to its end.
    Complete,
    /// The user ended it.
    Cancelled,
    /// An error ended it.
    Error,
    /// The printer forgot its last job.
    Standby,
}

impl JobEvent {
    /// True when the job was ended before its end.
    #[must_use]
    pub fn is_abort(self) -> bool {
        matches!(self, Self::Error | Self::Cancelled)
    }

    fn of(state: PrintState) -> Self {
        match state {
            PrintState::Standby => Self::Standby,
            PrintState::Printing => Self::Started,
            PrintState::Paused => Self::Paused,
            PrintState::Complete => Self::Complete,
            PrintState::Cancelled => Self::Cancelled,
            PrintState::Error => Self::Error,
        }
    }
}

/// True when both looks are at the same run of the same file: seconds never become fewer within one.
#[must_use]
pub fn is_same_run(before: &PrintStats, now: &PrintStats) -> bool {
    before.filename == now.filename && now.total_duration >= before.total_duration
}

/// What happened between two consecutive looks, in order.
#[must_use]
pub fn events(before: &PrintStats, now: &PrintStats) -> Vec<JobEvent> {
    use PrintState::{Cancelled, Complete, Error, Paused, Printing, Standby};
    let last = JobEvent::of(now.state);
    let whole = || match last {
        JobEvent::Started => vec![last],
        other => vec![JobEvent::Started, other],
    };
    match (before.state.is_active(), now.state) {
        (false, Standby) if before.state == Standby => vec![],
        (_, Standby) => vec![JobEvent::Standby],
        // Nothing counts after the end of a run: the same number is the same run, of which only the message is new.
        (false, Complete | Cancelled | Error)
            if before.state != Standby && before.filename == now.filename && before.total_duration == now.total_duration =>
        {
            vec![]
        }
        (false, _) => whole(),
        (true, Printing) => match (is_same_run(before, now), before.state) {
            (true, Paused) => vec![JobEvent::Resumed],
            (true, _) => vec![],
            (false, _) => whole(),
        },
        (true, Paused) => match (is_same_run(before, now), before.state) {
            (true, Paused) => vec![],
            (true, _) => vec![last],
            (false, _) => whole(),
        },
        // A printer resets its counters when it cancels, so fewer seconds say nothing here; another file does.
        (true, Cancelled) if before.filename == now.filename || now.filename.is_empty() => vec![last],
        (true, Complete | Error) if is_same_run(before, now) || now.filename.is_empty() => vec![last],
        (true, _) => whole(),
    }
}

#[cfg(test)]
mod tests {
    use super::JobEvent::{Cancelled, Complete, Error, Paused, Resumed, Standby, Started};
    use super::*;
    use proptest::prelude::*;

    fn look(text: &str) -> PrintStats {
        let mut words = text.split(' ');
        let state = PrintState::from_wire(words.next().unwrap()).unwrap();
        let filename = words.next().unwrap_or("").into();
        let total = words.next().map_or(0.0, |word| word.parse().unwrap());
        PrintStats { state, filename, message: "".into(), total_duration: total, print_duration: total, filament_used: total }
    }

    #[test]
    fn table() {
        let table: &[(&str, &str, &[JobEvent])] = &[
            ("standby", "standby", &[]),
            ("standby", "printing a 0", &[Started]),
            ("standby", "paused a 1", &[Started, Paused]),
            ("standby", "complete a 1", &[Started, Complete]),
            ("standby", "cancelled a 0", &[Started, Cancelled]),
            ("standby", "error a 0", &[Started, Error]),
            ("complete a 9", "standby", &[Standby]),
            ("cancelled a 9", "standby", &[Standby]),
            ("error a 9", "standby", &[Standby]),
            ("complete a 9", "printing a 0", &[Started]),
            ("error a 9", "printing a 0", &[Started]),
            ("cancelled a 9", "printing b 0", &[Started]),
            ("complete a 9", "complete a 9", &[]),
            ("complete a 9", "complete a 10", &[Started, Complete]),
            ("complete a 9", "complete b 9", &[Started, Complete]),
            ("complete a 9", "error a 1", &[Started, Error]),
            ("printing a 1", "printing a 2", &[]),
            ("printing a 5", "printing a 1", &[Started]),
            ("printing a 5", "printing b 6", &[Started]),
            ("printing a 5", "paused a 6", &[Paused]),
            ("printing a 5", "paused b 1", &[Started, Paused]),
            ("printing a 5", "complete a 6", &[Complete]),
            ("printing a 5", "complete b 1", &[Started, Complete]),
            ("printing a 5", "cancelled a 0", &[Cancelled]),
            ("printing a 5", "cancelled a 5", &[Cancelled]),
            ("printing a 5", "cancelled", &[Cancelled]),
            ("printing a 5", "error a 6", &[Error]),
            ("printing a 5", "standby", &[Standby]),
            ("paused a 5", "printing a 6", &[Resumed]),
            ("paused a 5", "printing a 1", &[Started]),
            ("paused a 5", "printing b 6", &[Started]),
            ("paused a 5", "paused a 6", &[]),
            ("paused a 5", "complete a 6", &[Complete]),
            ("paused a 5", "cancelled a 0", &[Cancelled]),
            ("paused a 5", "error a 6", &[Error]),
            ("paused a 5", "standby", &[Standby]),
        ];
        for (before, now, expected) in table {
            assert_eq!(events(&look(before), &look(now)), *expected, "{before} → {now}");
        }
    }

    /// The reference: a printer that is told what to do, one step after the other.
    #[derive(Debug, Clone, Copy)]
    enum Act {
        Start(u8),
        Pause,
        Resume,
        Wait,
        End(JobEvent),
        Reset,
    }

    fn acts() -> impl Strategy<Value = Vec<Act>> {
        let act = prop_oneof![
            (0..3_u8).prop_map(Act::Start),
            Just(Act::Pause),
            Just(Act::Resume),
            Just(Act::Wait),
            prop_oneof![Just(Complete), Just(Cancelled), Just(Error)].prop_map(Act::End),
            Just(Act::Reset),
        ];
        proptest::collection::vec(act, 0..40)
    }

    /// Carries out an act; the event that a witness of every step would tell.
    fn carry_out(printer: &mut PrintStats, act: Act) -> Option<JobEvent> {
        if printer.state.is_active() {
            printer.total_duration += 1.0;
        }
        match (act, printer.state) {
            (Act::Start(file), state) if !state.is_active() => {
                *printer = look(&format!("printing f{file} 0.5"));
                Some(Started)
            }
            (Act::Pause, PrintState::Printing) => {
                printer.state = PrintState::Paused;
                Some(Paused)
            }
            (Act::Resume, PrintState::Paused) => {
                printer.state = PrintState::Printing;
                Some(Resumed)
            }
            (Act::End(how), state) if state.is_active() => {
                printer.state = match how {
                    Complete => PrintState::Complete,
                    Cancelled => PrintState::Cancelled,
                    _ => PrintState::Error,
                };
                Some(how)
            }
            (Act::Reset, state) if state != PrintState::Standby => {
                *printer = look("standby");
                Some(Standby)
            }
            _ => None,
        }
    }

    proptest! {
        /// Who looks after every step tells exactly what happened.
        #[test]
        fn looking_all_the_time_tells_everything(acts in acts()) {
            let mut printer = look("standby");
            for act in acts {
                let before = printer.clone();
                let expected: Vec<_> = carry_out(&mut printer, act).into_iter().collect();
                prop_assert_eq!(events(&before, &printer), expected);
            }
        }

        /// Who looks now and then tells a story that could have happened: no job ends without a start, and the last look decides whether one is open.
        #[test]
        fn looking_now_and_then_tells_a_possible_story(acts in acts(), pace in 1..5_usize) {
            let mut printer = look("standby");
            let mut seen = printer.clone();
            let mut open = false;
            for steps in acts.chunks(pace) {
                for act in steps {
                    carry_out(&mut printer, *act);
                }
                for event in events(&seen, &printer) {
                    match event {
                        Started => open = true,
                        Standby => open = false,
                        _ => {
                            prop_assert!(open, "{:?} without a start", event);
                            open = matches!(event, Paused | Resumed);
                        }
                    }
                }
                prop_assert_eq!(open, printer.state.is_active());
                seen = printer.clone();
            }
        }
    }
}
