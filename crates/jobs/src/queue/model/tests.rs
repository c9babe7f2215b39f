use std::collections::HashSet;

use proptest::prelude::*;

use super::*;
use QueueAction::{JobLoaded, JobsAdded, JobsRemoved, StateChanged};
use QueueState::{Loading, Paused, Ready, Starting};

const PLAIN: Rules =
    Rules { load_on_startup: false, automatic_transition: false, transition_delay: Duration::from_secs(5), confirm_bed_clear: false };
const AUTOMATIC: Rules = Rules { automatic_transition: true, ..PLAIN };

fn waiting(id: &str) -> Waiting {
    Waiting { id: id.to_owned(), filename: format!("{id}.gcode"), user: None, time_added: 0.0 }
}

fn model(rules: Rules, ids: &[&str]) -> Model {
    Model::new(rules, ids.iter().map(|id| waiting(id)).collect())
}

/// What clients were told.
fn told(effects: &[Effect]) -> Vec<QueueAction> {
    let action = |effect: &Effect| match effect {
        Effect::Tell(action) => Some(*action),
        Effect::TellOrder => Some(StateChanged),
        _ => None,
    };
    effects.iter().filter_map(action).collect()
}

fn free() -> Input {
    Input::Start { printer_free: true }
}

fn add(ids: &[&str]) -> Input {
    Input::Add { jobs: ids.iter().map(|id| waiting(id)).collect(), reset: false }
}

const DUE: Input = Input::Due { printer_free: true };
const STARTED: Input = Input::Started { ok: true };
const COMPLETE: Input = Input::Job(JobEvent::Complete);

/// Inputs with the state and the notifications after each.
fn story(name: &str, model: &mut Model, steps: &[(Input, QueueState, &[QueueAction])]) {
    for (index, (input, state, actions)) in steps.iter().enumerate() {
        let effects = model.step(input.clone());
        assert_eq!((model.state, told(&effects).as_slice()), (*state, *actions), "{name}, step {index}: {input:?}");
    }
}

#[test]
fn stories() {
    let one_by_one = &mut model(PLAIN, &["a", "b"]);
    story(
        "without automatic transition every job needs a start",
        one_by_one,
        &[
            (free(), Loading, &[StateChanged]),
            (DUE, Starting, &[StateChanged]),
            (STARTED, Paused, &[JobLoaded]),
            (Input::Job(JobEvent::Started), Paused, &[]),
            (COMPLETE, Paused, &[]),
            (free(), Loading, &[StateChanged]),
            (DUE, Starting, &[StateChanged]),
            (STARTED, Paused, &[JobLoaded]),
            (free(), Paused, &[]),
        ],
    );
    let automatic = &mut model(AUTOMATIC, &["a", "b"]);
    story(
        "automatic transition",
        automatic,
        &[
            (free(), Loading, &[StateChanged]),
            (DUE, Starting, &[StateChanged]),
            (STARTED, Ready, &[JobLoaded]),
            (Input::Job(JobEvent::Started), Ready, &[]),
            (COMPLETE, Loading, &[StateChanged]),
            (DUE, Loading, &[]),
            (Input::Transitioned { ok: true }, Starting, &[StateChanged]),
            (STARTED, Paused, &[JobLoaded]),
            (Input::Job(JobEvent::Started), Paused, &[]),
            (add(&["c"]), Ready, &[JobsAdded, StateChanged]),
            (Input::Job(JobEvent::Cancelled), Paused, &[StateChanged]),
        ],
    );
    story(
        "a busy printer is waited for; without automatic transition the queue pauses then",
        &mut model(PLAIN, &["a"]),
        &[(Input::Start { printer_free: false }, Ready, &[StateChanged]), (COMPLETE, Paused, &[StateChanged])],
    );
    story(
        "a busy printer is waited for; with automatic transition the queue goes on",
        &mut model(AUTOMATIC, &["a"]),
        &[(Input::Start { printer_free: false }, Ready, &[StateChanged]), (COMPLETE, Loading, &[StateChanged])],
    );
    story(
        "a pause while loading",
        &mut model(PLAIN, &["a"]),
        &[(free(), Loading, &[StateChanged]), (Input::Pause, Paused, &[StateChanged]), (DUE, Paused, &[]), (Input::Pause, Paused, &[])],
    );
    story(
        "a pause while starting comes too late for the job, but not for the next",
        &mut model(AUTOMATIC, &["a", "b"]),
        &[
            (free(), Loading, &[StateChanged]),
            (DUE, Starting, &[StateChanged]),
            (Input::Pause, Paused, &[StateChanged]),
            (free(), Ready, &[StateChanged]),
            (Input::Pause, Paused, &[StateChanged]),
            (STARTED, Paused, &[JobLoaded]),
            (COMPLETE, Paused, &[]),
            (add(&["c"]), Paused, &[JobsAdded]),
        ],
    );
    story(
        "errors pause and keep the job",
        &mut model(AUTOMATIC, &["a", "b"]),
        &[
            (free(), Loading, &[StateChanged]),
            (Input::Due { printer_free: false }, Paused, &[StateChanged]),
            (free(), Loading, &[StateChanged]),
            (DUE, Starting, &[StateChanged]),
            (Input::Started { ok: false }, Paused, &[StateChanged]),
            (Input::Start { printer_free: false }, Ready, &[StateChanged]),
            (COMPLETE, Loading, &[StateChanged]),
            (DUE, Loading, &[]),
            (Input::Transitioned { ok: false }, Paused, &[StateChanged]),
        ],
    );
    story(
        "a shutdown pauses",
        &mut model(AUTOMATIC, &["a"]),
        &[(Input::Start { printer_free: false }, Ready, &[StateChanged]), (Input::HostShutdown, Paused, &[StateChanged])],
    );
    story(
        "load on startup",
        &mut model(Rules { load_on_startup: true, ..PLAIN }, &["a"]),
        &[(Input::HostReady, Loading, &[StateChanged]), (DUE, Starting, &[StateChanged])],
    );
    story("no load on startup", &mut model(PLAIN, &["a"]), &[(Input::HostReady, Paused, &[])]);
    story(
        "removal while loading",
        &mut model(PLAIN, &["a"]),
        &[
            (Input::Remove { ids: vec!["x".into()] }, Paused, &[JobsRemoved]),
            (free(), Loading, &[StateChanged]),
            (Input::Clear, Loading, &[JobsRemoved]),
            (Input::Clear, Loading, &[]),
            (DUE, Paused, &[StateChanged]),
        ],
    );
    let gate = Rules { confirm_bed_clear: true, ..AUTOMATIC };
    story(
        "the bed must be clear",
        &mut model(gate, &["a"]),
        &[
            (Input::BedClear, Paused, &[]),
            (Input::Start { printer_free: false }, Ready, &[StateChanged]),
            (COMPLETE, Ready, &[]),
            (Input::BedClear, Loading, &[StateChanged]),
            (Input::BedClear, Loading, &[]),
        ],
    );
}

#[test]
fn adding_nothing_is_told_to_nobody() {
    let mut queue = model(AUTOMATIC, &["a"]);
    assert_eq!(queue.step(add(&[])), vec![]);
    assert_eq!(told(&queue.step(Input::Add { jobs: vec![], reset: true })), [JobsAdded], "but the queue is empty then");
}

#[test]
fn jumping_moves_to_the_front() {
    let mut queue = model(PLAIN, &["a", "b", "c"]);
    assert_eq!(told(&queue.step(Input::Jump { id: "c".into() })), [StateChanged]);
    assert_eq!(queue.step(Input::Jump { id: "x".into() }), []);
    let order: Vec<_> = queue.jobs.iter().map(|job| job.id.as_str()).collect();
    assert_eq!(order, ["c", "a", "b"]);
}

#[test]
fn a_job_that_is_being_started_leaves_the_queue_wherever_it_is_by_then() {
    let mut queue = model(PLAIN, &["a", "b"]);
    for input in [free(), DUE, Input::Jump { id: "b".into() }, STARTED] {
        queue.step(input);
    }
    assert_eq!(queue.jobs, [waiting("b")]);
}

/// The reference: which jobs must be in the queue, told from the inputs alone.
#[derive(Default)]
struct Reference {
    jobs: Vec<String>,
}

fn inputs() -> impl Strategy<Value = Vec<Input>> {
    let id = || (0..8_u8).prop_map(|number| number.to_string());
    let event = prop_oneof![
        Just(JobEvent::Started),
        Just(JobEvent::Paused),
        Just(JobEvent::Resumed),
        Just(JobEvent::Complete),
        Just(JobEvent::Cancelled),
        Just(JobEvent::Error),
        Just(JobEvent::Standby)
    ];
    let input = prop_oneof![
        3 => any::<bool>().prop_map(|printer_free| Input::Start { printer_free }),
        1 => Just(Input::Pause),
        3 => (any::<bool>(), 0..3_usize).prop_map(|(reset, count)| Input::Add { jobs: vec![waiting(""); count], reset }),
        2 => proptest::collection::vec(id(), 0..3).prop_map(|ids| Input::Remove { ids }),
        1 => Just(Input::Clear),
        2 => id().prop_map(|id| Input::Jump { id }),
        1 => Just(Input::BedClear),
        3 => event.prop_map(Input::Job),
        1 => Just(Input::HostReady),
        1 => Just(Input::HostShutdown),
        5 => any::<bool>().prop_map(|printer_free| Input::Due { printer_free }),
        3 => any::<bool>().prop_map(|ok| Input::Transitioned { ok }),
        5 => any::<bool>().prop_map(|ok| Input::Started { ok }),
    ];
    proptest::collection::vec(input, 0..80)
}

proptest! {
    /// Whatever happens: no job is lost or doubled, only one start is under way, and every change is told.
    #[test]
    fn random_events(inputs in inputs(), automatic in any::<bool>(), gate in any::<bool>(), startup in any::<bool>()) {
        let rules = Rules { automatic_transition: automatic, confirm_bed_clear: gate, load_on_startup: startup, ..PLAIN };
        let mut queue = Model::new(rules, VecDeque::new());
        let mut reference = Reference::default();
        let (mut next_id, mut launching, mut paused_by_somebody) = (0, None::<String>, false);
        for mut input in inputs {
            match &mut input {
                Input::Add { jobs, reset } => {
                    for job in jobs.iter_mut() {
                        job.id = next_id.to_string();
                        next_id += 1;
                    }
                    if *reset {
                        reference.jobs.clear();
                    }
                    reference.jobs.extend(jobs.iter().map(|job| job.id.clone()));
                }
                Input::Remove { ids } => reference.jobs.retain(|id| !ids.contains(id)),
                Input::Clear => reference.jobs.clear(),
                Input::Jump { id } => {
                    if let Some(place) = reference.jobs.iter().position(|known| known == id) {
                        let moved = reference.jobs.remove(place);
                        reference.jobs.insert(0, moved);
                    }
                }
                // The worker reports the end of a start only when there is one.
                Input::Started { .. } if launching.is_none() => continue,
                Input::Started { ok: true } => reference.jobs.retain(|id| Some(id) != launching.as_ref()),
                Input::Pause => paused_by_somebody = true,
                // The owner's standing order.
                Input::HostReady if startup => paused_by_somebody = false,
                Input::Start { .. } if !matches!(queue.state, Loading | Starting) => paused_by_somebody = false,
                _ => {}
            }
            if matches!(input, Input::Started { .. }) {
                launching = None;
            }
            let (state, order) = (queue.state, queue.jobs.clone());
            let effects = queue.step(input.clone());
            let ids: Vec<_> = queue.jobs.iter().map(|job| job.id.clone()).collect();
            prop_assert_eq!(&ids, &reference.jobs, "after {:?}", input);
            prop_assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len());
            if queue.state != state {
                prop_assert!(!told(&effects).is_empty(), "{:?} changed the state silently", input);
            }
            if queue.jobs != order {
                prop_assert!(effects.contains(&Effect::Keep) && !told(&effects).is_empty(), "{:?} changed the jobs silently", input);
            }
            for effect in &effects {
                if let Effect::Launch(job) = effect {
                    prop_assert!(launching.is_none(), "two starts at once");
                    prop_assert!(!paused_by_somebody, "a start although the queue is paused");
                    prop_assert_eq!(Some(&job.id), ids.first());
                    launching = Some(job.id.clone());
                }
            }
            prop_assert_eq!(queue.state == Starting && launching.is_none(), false);
        }
    }
}
