//! The state machine of a power device: what is seen of it, and what follows. Pure; the worker carries the effects out.
//!
//! ```text
//!              first answer; then `initial_state` is applied
//!       init ──────────────────────────────────────────────► on ◄─── switched, or seen ───► off
//!       ▲  │ no answer: stays init, with a reason,            │                              │
//!       │  └─ and is asked again                              │ asked or switched in vain    │
//!       │     no hope of one: error                           ▼                              ▼
//!       └──────────── what it hangs on is away ◄──────────── error ─── the next answer ───► on, off
//! ```
//!
//! What hangs on something that was away begins anew, with `initial_state`. A device that was given up in `init` has lost its: what it says hours later,
//! because somebody pressed its button, is nobody's reason to switch it.
//!
//! After a change through us: notification, services, firmware restart, timer. After a change from outside the same without the timer, or only
//! the notification with `restrict_action_processing`.

use std::sync::Arc;

use protocol::power::PowerState;

/// What a device says, or what is said about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reading {
    /// It is on.
    On,
    /// It is off.
    Off,
    /// What it hangs on is away, so that nothing can be known.
    Away,
    /// It does not answer, or not sensibly.
    Fault(Arc<str>),
    /// The same, and asking again would not help: whatever it says next, it says by itself.
    Lost(Arc<str>),
}

impl From<bool> for Reading {
    fn from(is_on: bool) -> Self {
        if is_on { Self::On } else { Self::Off }
    }
}

/// What somebody wants of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Switch on.
    On,
    /// Switch off.
    Off,
    /// Switch on what is off, and off what is anything else.
    Toggle,
}

impl Action {
    /// Reads the wire form.
    #[must_use]
    pub fn from_wire(text: &str) -> Option<Self> {
        match text {
            "on" => Some(Self::On),
            "off" => Some(Self::Off),
            "toggle" => Some(Self::Toggle),
            _ => None,
        }
    }

    /// Whether a device in this state is to be on afterwards.
    pub(crate) fn wants(self, state: PowerState) -> bool {
        match self {
            Self::On => true,
            Self::Off => false,
            Self::Toggle => state == PowerState::Off,
        }
    }
}

/// What the worker is to do, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Tell all clients.
    Notify,
    /// Switch to the configured initial state.
    Apply(bool),
    /// Start or stop the bound services.
    Services(bool),
    /// The firmware has power again.
    Powered,
    /// Begin the time until it goes off by itself.
    StartTimer,
}

/// What the owner decided.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Rules {
    /// `initial_state`.
    pub(crate) initial: Option<bool>,
    /// `restrict_action_processing`.
    pub(crate) restricted: bool,
}

/// A device as it is known.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) state: PowerState,
    /// What is wrong, in `init` and `error`.
    pub(crate) fault: Option<Arc<str>>,
    /// It has answered, or was given up: what comes now is no first answer.
    is_known: bool,
    rules: Rules,
}

impl Model {
    pub(crate) fn new(rules: Rules) -> Self {
        Self { state: PowerState::Init, fault: None, is_known: false, rules }
    }

    /// It was asked, or it said by itself.
    pub(crate) fn seen(&mut self, reading: Reading) -> Vec<Effect> {
        let before = self.state;
        let Some(is_on) = self.take(reading) else {
            return self.notify_if_not(before);
        };
        if !std::mem::replace(&mut self.is_known, true) {
            return match self.rules.initial {
                Some(initial) if initial != is_on => vec![Effect::Apply(initial)],
                Some(_) => vec![Effect::Notify, Effect::Services(is_on)],
                None => vec![Effect::Notify],
            };
        }
        let mut effects = self.notify_if_not(before);
        if !effects.is_empty() && !self.rules.restricted {
            effects.extend(followers(is_on));
        }
        effects
    }

    /// It was switched through us.
    pub(crate) fn switched(&mut self, reading: Reading) -> Vec<Effect> {
        let before = self.state;
        self.is_known = true;
        let taken = self.take(reading);
        let mut effects = self.notify_if_not(before);
        if let Some(is_on) = taken {
            if !effects.is_empty() {
                effects.extend(followers(is_on));
            }
            if is_on {
                effects.push(Effect::StartTimer);
            }
        }
        effects
    }

    /// Takes a reading over; whether it is on, when it says so.
    fn take(&mut self, reading: Reading) -> Option<bool> {
        let (state, fault) = match reading {
            Reading::On => (PowerState::On, None),
            Reading::Off => (PowerState::Off, None),
            Reading::Away => {
                self.is_known = false;
                (PowerState::Init, None)
            }
            Reading::Lost(fault) => {
                self.is_known = true;
                (PowerState::Error, Some(fault))
            }
            Reading::Fault(fault) => (if self.is_known { PowerState::Error } else { PowerState::Init }, Some(fault)),
        };
        (self.state, self.fault) = (state, fault);
        match state {
            PowerState::On => Some(true),
            PowerState::Off => Some(false),
            PowerState::Init | PowerState::Error => None,
        }
    }

    fn notify_if_not(&self, before: PowerState) -> Vec<Effect> {
        if self.state == before { Vec::new() } else { vec![Effect::Notify] }
    }
}

/// What comes with a change.
fn followers(is_on: bool) -> Vec<Effect> {
    if is_on { vec![Effect::Services(true), Effect::Powered] } else { vec![Effect::Services(false)] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Effect::{Apply, Notify, Powered, Services, StartTimer};
    use proptest::prelude::*;

    fn fault() -> Reading {
        Reading::Fault("no answer".into())
    }

    fn known(state: Reading, restricted: bool) -> Model {
        let mut model = Model::new(Rules { initial: None, restricted });
        model.seen(state);
        model
    }

    #[test]
    fn the_first_answer_ends_init_and_brings_the_initial_state() {
        let first = |initial, reading| Model::new(Rules { initial, restricted: true }).seen(reading);
        assert_eq!(first(None, Reading::On), [Notify]);
        assert_eq!(first(Some(true), Reading::On), [Notify, Services(true)]);
        assert_eq!(first(Some(true), Reading::Off), [Apply(true)]);
        let mut model = Model::new(Rules { initial: Some(false), restricted: true });
        assert_eq!((model.seen(fault()), model.state), (vec![], PowerState::Init), "never answered: still init");
        assert_eq!(model.fault.as_deref(), Some("no answer"));
        assert_eq!(model.seen(Reading::On), [Apply(false)]);
        assert_eq!(model.switched(Reading::Off), [Notify, Services(false)]);
        assert_eq!((model.seen(Reading::On), model.fault), (vec![Notify], None), "only once");
    }

    #[test]
    fn what_was_away_begins_anew_and_what_was_given_up_does_not() {
        let mut model = Model::new(Rules { initial: Some(true), restricted: true });
        assert_eq!((model.seen(Reading::On), model.seen(Reading::Away)), (vec![Notify, Services(true)], vec![Notify]));
        assert_eq!(model.seen(Reading::Off), [Apply(true)]);
        let mut model = Model::new(Rules { initial: Some(false), restricted: true });
        assert_eq!((model.seen(Reading::Lost("no answer".into())), model.state), (vec![Notify], PowerState::Error));
        assert_eq!((model.seen(Reading::On), model.state), (vec![Notify], PowerState::On));
    }

    #[test]
    fn a_change_through_us_has_all_consequences() {
        let mut model = known(Reading::Off, true);
        assert_eq!(model.switched(Reading::On), [Notify, Services(true), Powered, StartTimer]);
        assert_eq!(model.switched(Reading::On), [StartTimer], "nothing new");
        assert_eq!(model.switched(Reading::Off), [Notify, Services(false)]);
        assert_eq!((model.switched(fault()), model.state), (vec![Notify], PowerState::Error));
    }

    #[test]
    fn a_change_from_outside_has_consequences_only_when_wanted() {
        assert_eq!(known(Reading::Off, true).seen(Reading::On), [Notify]);
        assert_eq!(known(Reading::Off, false).seen(Reading::On), [Notify, Services(true), Powered]);
        assert_eq!(known(Reading::On, false).seen(Reading::On), []);
    }

    #[test]
    fn faults_pass() {
        let mut model = known(Reading::On, true);
        assert_eq!((model.seen(fault()), model.state), (vec![Notify], PowerState::Error));
        assert_eq!(model.seen(fault()), []);
        assert_eq!((model.seen(Reading::Off), model.fault.clone()), (vec![Notify], None));
        assert_eq!((model.seen(Reading::Away), model.state), (vec![Notify], PowerState::Init));
        assert_eq!((model.seen(Reading::On), model.state), (vec![Notify], PowerState::On));
    }

    #[test]
    fn toggle_switches_off_whatever_is_not_off() {
        let states = [PowerState::Off, PowerState::On, PowerState::Error, PowerState::Init];
        assert_eq!(states.map(|state| Action::Toggle.wants(state)), [true, false, false, false]);
    }

    fn readings() -> impl Strategy<Value = Reading> {
        prop_oneof![Just(Reading::On), Just(Reading::Off), Just(Reading::Away), Just(fault()), Just(Reading::Lost("given up".into()))]
    }

    proptest! {
        #[test]
        fn clients_are_told_of_every_change_once_and_faults_have_reasons(
            initial: Option<bool>,
            restricted: bool,
            steps in prop::collection::vec((any::<bool>(), readings()), 0..20),
        ) {
            let mut model = Model::new(Rules { initial, restricted });
            for (is_ours, reading) in steps {
                let before = model.state;
                let effects = if is_ours { model.switched(reading) } else { model.seen(reading) };
                let told = effects.iter().filter(|effect| **effect == Notify).count();
                let applied = effects.iter().any(|effect| matches!(effect, Apply(_)));
                prop_assert_eq!(told, usize::from(model.state != before && !applied));
                prop_assert!(!applied || effects.len() == 1, "nothing else happens before the initial state is set");
                prop_assert_eq!(model.state == PowerState::Error, model.fault.is_some() && model.state != PowerState::Init);
                prop_assert!(!matches!(model.state, PowerState::On | PowerState::Off) || model.fault.is_none());
            }
        }
    }
}
