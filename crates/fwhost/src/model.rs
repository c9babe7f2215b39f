//! The state machine of the link: what happens, what follows from it. Pure; the session carries the effects out.
//!
//! ```text
//!             Connected / Greet
//!   Away ───────────────────────► Greeting ── first answer / Identified ──┐
//!    ▲                                                                    ▼
//!    │                     ┌──────────────── Starting ◄── host says startup / Follow
//!    │                     │ host says ready, error, shutdown / Load
//!    │                     ▼
//!    │                  Loading ── Loaded / Started, Ready or Shutdown ──► Settled
//!    │                     ▲                                                │  │
//!    │                     └──────────── host says ready again / Load ──────┘  │ host says shutdown / Shutdown
//!    │                                                                         └──► Settled
//!    └── Lost / Teardown (and Disconnected, if it had been identified) ── from everywhere
//! ```
//!
//! Clients see `disconnected` in Away and Greeting: a dying host still accepts connections for a moment, and nobody shall hear of those.
//! They see `startup` until Settled, whatever the host says (wire/1-core.md section 8.3). A shutdown during Loading is told after it.

use protocol::FwhostState;

/// Where the link stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// No connection.
    Away,
    /// Connected, but nothing was answered yet.
    Greeting,
    /// The host is starting.
    Starting,
    /// The host has started and we are reading everything that we need.
    Loading {
        /// What the host says now.
        host: FwhostState,
        /// It shut down before our eyes, which is still to be told.
        owed_shutdown: bool,
    },
    /// Everything is known.
    Settled(FwhostState),
}

/// Something happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Input {
    /// The socket accepted us.
    Connected,
    /// The host told its state: by an answer to `info`, or by a change of the object `webhooks`.
    Host(FwhostState),
    /// The gcode output announced a change of state; faster than the next status update.
    Hint,
    /// Everything that [`Effect::Load`] asked for has come.
    Loaded,
    /// The connection is over: closed, silent, replaced, or full of rubbish.
    Lost,
}

/// What is to be done, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Introduce ourselves; subscribe to the output; register remote methods.
    Greet,
    /// Callers may send requests from now on; tell that the host is known.
    Identified,
    /// Ask `info`.
    AskInfo,
    /// Follow the state of a host that is starting; nothing else can be followed yet.
    Follow,
    /// Read what there is to read in this state.
    Load(FwhostState),
    /// Tell that the start sequence is done.
    Started(FwhostState),
    /// Tell that the host is ready.
    Ready,
    /// Tell that the host shut down.
    Shutdown,
    /// Abort pending requests, forget the cache, end the subscriptions.
    Teardown,
    /// Tell that the host is gone.
    Disconnected,
}

/// The machine.
#[derive(Debug)]
pub(crate) struct Model {
    phase: Phase,
}

impl Model {
    pub(crate) fn new() -> Self {
        Self { phase: Phase::Away }
    }

    pub(crate) fn phase(&self) -> Phase {
        self.phase
    }

    /// The state that clients see.
    pub(crate) fn state(&self) -> FwhostState {
        match self.phase {
            Phase::Away | Phase::Greeting => FwhostState::Disconnected,
            Phase::Starting | Phase::Loading { .. } => FwhostState::Startup,
            Phase::Settled(host) => host,
        }
    }

    /// Takes one step.
    pub(crate) fn step(&mut self, input: Input) -> Vec<Effect> {
        let before = self.phase;
        match (before, input) {
            (Phase::Away, Input::Connected) => {
                self.phase = Phase::Greeting;
                vec![Effect::Greet]
            }
            (Phase::Away, _) | (_, Input::Connected) => vec![],
            (Phase::Greeting, Input::Lost) => {
                self.phase = Phase::Away;
                vec![Effect::Teardown]
            }
            (_, Input::Lost) => {
                self.phase = Phase::Away;
                vec![Effect::Teardown, Effect::Disconnected]
            }
            (Phase::Greeting, Input::Host(host)) => {
                let mut effects = vec![Effect::Identified];
                effects.extend(self.host_says(host, false));
                effects
            }
            (Phase::Starting, Input::Host(FwhostState::Startup)) => vec![],
            (Phase::Starting, Input::Host(host)) => self.host_says(host, host == FwhostState::Shutdown),
            (Phase::Loading { host: before, owed_shutdown }, Input::Host(host)) => self.while_loading(before, host, owed_shutdown),
            (Phase::Settled(before), Input::Host(host)) => self.while_settled(before, host),
            (Phase::Loading { host, owed_shutdown }, Input::Loaded) => self.settle(host, owed_shutdown),
            (Phase::Starting | Phase::Settled(_), Input::Hint) => vec![Effect::AskInfo],
            (Phase::Greeting | Phase::Starting | Phase::Settled(_), Input::Loaded) => vec![],
            (Phase::Greeting | Phase::Loading { .. }, Input::Hint) => vec![],
        }
    }

    /// Starting or just identified: start to load, unless there is nothing to load yet.
    fn host_says(&mut self, host: FwhostState, owed_shutdown: bool) -> Vec<Effect> {
        if host == FwhostState::Startup {
            self.phase = Phase::Starting;
            return vec![Effect::Follow];
        }
        self.phase = Phase::Loading { host, owed_shutdown };
        vec![Effect::Load(host)]
    }

    fn while_loading(&mut self, before: FwhostState, host: FwhostState, owed_shutdown: bool) -> Vec<Effect> {
        match (before, host) {
            (before, host) if before == host => vec![],
            (_, FwhostState::Startup) => self.host_says(host, false),
            (_, FwhostState::Shutdown) => {
                self.phase = Phase::Loading { host, owed_shutdown: true };
                vec![]
            }
            // Ready after an error was not loaded completely: once more.
            _ => self.host_says(host, owed_shutdown),
        }
    }

    fn while_settled(&mut self, before: FwhostState, host: FwhostState) -> Vec<Effect> {
        match (before, host) {
            (before, host) if before == host => vec![],
            (_, FwhostState::Startup | FwhostState::Ready) => self.host_says(host, false),
            (_, FwhostState::Shutdown) => {
                self.phase = Phase::Settled(host);
                vec![Effect::AskInfo, Effect::Shutdown]
            }
            _ => {
                self.phase = Phase::Settled(host);
                vec![Effect::AskInfo]
            }
        }
    }

    fn settle(&mut self, host: FwhostState, owed_shutdown: bool) -> Vec<Effect> {
        self.phase = Phase::Settled(host);
        let mut effects = vec![Effect::Started(host)];
        if host == FwhostState::Ready {
            effects.push(Effect::Ready);
        }
        if owed_shutdown {
            effects.push(Effect::Shutdown);
        }
        effects
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use FwhostState::{Disconnected, Error, Ready, Shutdown, Startup};
    use Input::{Connected, Hint, Host, Loaded, Lost};

    type Step = (Input, &'static [Effect], FwhostState);

    const GREET: Step = (Connected, &[Effect::Greet], Disconnected);

    fn run(name: &str, steps: &[Step]) -> Phase {
        let mut model = Model::new();
        for (index, (input, effects, state)) in steps.iter().enumerate() {
            assert_eq!(model.step(*input), *effects, "{name}, step {index}: {input:?}");
            assert_eq!(model.state(), *state, "{name}, step {index}: {input:?}");
        }
        model.phase()
    }

    #[test]
    fn table() {
        let identified_ready: &[Effect] = &[Effect::Identified, Effect::Load(Ready)];
        let started_ready: &[Effect] = &[Effect::Started(Ready), Effect::Ready];
        let gone: &[Effect] = &[Effect::Teardown, Effect::Disconnected];
        let stories: &[(&str, &[Step])] = &[
            ("connecting to a ready host", &[GREET, (Host(Ready), identified_ready, Startup), (Loaded, started_ready, Ready)]),
            (
                "a host that starts",
                &[
                    GREET,
                    (Host(Startup), &[Effect::Identified, Effect::Follow], Startup),
                    (Hint, &[Effect::AskInfo], Startup),
                    (Host(Startup), &[], Startup),
                    (Host(Ready), &[Effect::Load(Ready)], Startup),
                    (Host(Ready), &[], Startup),
                    (Loaded, started_ready, Ready),
                    (Host(Ready), &[], Ready),
                    (Loaded, &[], Ready),
                    (Lost, gone, Disconnected),
                ],
            ),
            (
                "a configuration error",
                &[
                    GREET,
                    (Host(Error), &[Effect::Identified, Effect::Load(Error)], Startup),
                    (Loaded, &[Effect::Started(Error)], Error),
                    (Host(Shutdown), &[Effect::AskInfo, Effect::Shutdown], Shutdown),
                ],
            ),
            (
                "found in shutdown: nothing to tell",
                &[
                    GREET,
                    (Host(Shutdown), &[Effect::Identified, Effect::Load(Shutdown)], Startup),
                    (Loaded, &[Effect::Started(Shutdown)], Shutdown),
                    (Host(Shutdown), &[], Shutdown),
                ],
            ),
            (
                "shutdown while loading is told afterwards",
                &[
                    GREET,
                    (Host(Ready), identified_ready, Startup),
                    (Host(Shutdown), &[], Startup),
                    (Host(Shutdown), &[], Startup),
                    (Loaded, &[Effect::Started(Shutdown), Effect::Shutdown], Shutdown),
                ],
            ),
            (
                "emergency stop during startup",
                &[
                    GREET,
                    (Host(Startup), &[Effect::Identified, Effect::Follow], Startup),
                    (Host(Shutdown), &[Effect::Load(Shutdown)], Startup),
                    (Loaded, &[Effect::Started(Shutdown), Effect::Shutdown], Shutdown),
                ],
            ),
            (
                "shutdown later",
                &[
                    GREET,
                    (Host(Ready), identified_ready, Startup),
                    (Loaded, started_ready, Ready),
                    (Hint, &[Effect::AskInfo], Ready),
                    (Host(Shutdown), &[Effect::AskInfo, Effect::Shutdown], Shutdown),
                    (Host(Shutdown), &[], Shutdown),
                    (Lost, gone, Disconnected),
                    GREET,
                ],
            ),
            ("a dying host accepts for a moment", &[GREET, (Lost, &[Effect::Teardown], Disconnected), (Lost, &[], Disconnected), GREET]),
            (
                "a host that restarts on the same connection",
                &[
                    GREET,
                    (Host(Ready), identified_ready, Startup),
                    (Loaded, started_ready, Ready),
                    (Host(Startup), &[Effect::Follow], Startup),
                    (Host(Ready), &[Effect::Load(Ready)], Startup),
                    (Loaded, started_ready, Ready),
                ],
            ),
            (
                "lost while loading",
                &[GREET, (Host(Ready), identified_ready, Startup), (Lost, gone, Disconnected), (Loaded, &[], Disconnected)],
            ),
        ];
        for (name, steps) in stories {
            run(name, steps);
        }
    }

    #[test]
    fn ready_and_disconnected_come_at_most_once_per_connection_of_a_normal_host() {
        // Every order of what a normal host does after it is ready, three steps deep.
        let later = [Host(Ready), Host(Shutdown), Hint, Loaded];
        for a in later {
            for b in later {
                for c in later {
                    let mut model = Model::new();
                    let effects: Vec<Effect> =
                        [Connected, Host(Ready), Loaded, a, b, c, Lost, Lost].into_iter().flat_map(|input| model.step(input)).collect();
                    let count = |wanted: Effect| effects.iter().filter(|effect| **effect == wanted).count();
                    assert_eq!(count(Effect::Disconnected), 1);
                    let came_back = [a, b, c].windows(2).any(|pair| pair[0] == Host(Shutdown) && pair[1] == Host(Ready))
                        || (a == Host(Shutdown) && c == Host(Ready));
                    assert!(count(Effect::Ready) == 1 || came_back, "{a:?} {b:?} {c:?}");
                }
            }
        }
    }
}
