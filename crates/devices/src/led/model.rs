//! Which commands a change needs, and what is known of the strip afterwards. No I/O.

use protocol::led::{LedState, LedStatus};
use serde::Serialize;
use serde_json::{Value, json};

use super::options::LedOptions;

/// Full brightness.
const FULL: u8 = 255;

/// A command in the JSON of the controller; members in the order in which they are sent.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub(crate) struct Command {
    /// Asks for the whole state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) v: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    on: Option<bool>,
    /// Preset.
    #[serde(skip_serializing_if = "Option::is_none")]
    ps: Option<i32>,
    /// Time of the transition.
    #[serde(skip_serializing_if = "Option::is_none")]
    tt: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bri: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seg: Option<Segment>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
struct Segment {
    #[serde(skip_serializing_if = "Option::is_none")]
    bri: Option<u8>,
    /// Intensity of the effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    ix: Option<u8>,
    /// Speed of the effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    sx: Option<u8>,
    /// Pixels.
    #[serde(skip_serializing_if = "Option::is_none")]
    i: Option<Vec<Value>>,
}

impl Command {
    /// Asks for the state: is it there, and is it what we think it is?
    pub(crate) fn greeting() -> Self {
        Self { v: Some(true), ..Self::default() }
    }

    fn pixels(brightness: u8, pixels: Vec<Value>) -> Self {
        let segment = Segment { bri: Some(brightness), i: Some(pixels), ..Segment::default() };
        Self { on: Some(true), tt: Some(0), bri: Some(brightness), seg: Some(segment), ..Self::default() }
    }
}

/// What `action` of the operation says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Light it: preset or initial colours.
    On,
    /// Darken it.
    Off,
    /// The other of both.
    Toggle,
    /// Only levels.
    Control,
}

/// Levels to be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Levels {
    /// 1 to 255.
    pub brightness: Option<u8>,
    /// 0 to 255; ignored without a preset.
    pub intensity: Option<u8>,
    /// 0 to 255; ignored without a preset.
    pub speed: Option<u8>,
}

impl Levels {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Something that a client or a macro wants of a strip.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// Switch it, with levels that count afterwards.
    Switch {
        /// What to do.
        action: Action,
        /// Instead of the initial one.
        preset: Option<i32>,
        /// At once; those of a strip that is off are only kept.
        levels: Levels,
    },
    /// Colour all LEDs, or one.
    Color {
        /// Red, green, blue, white.
        color: [u8; 4],
        /// Which, counted from 1; all without.
        index: Option<u32>,
        /// False: not yet, but with the next one.
        transmit: bool,
    },
}

impl Change {
    /// Without preset and levels.
    #[must_use]
    pub fn switch(action: Action) -> Self {
        Self::Switch { action, preset: None, levels: Levels::default() }
    }
}

/// What is known of a strip.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Model {
    initial_preset: Option<i32>,
    initial_color: [u8; 4],
    is_on: bool,
    preset: Option<i32>,
    brightness: Option<u8>,
    intensity: Option<u8>,
    speed: Option<u8>,
    pixels: Vec<[u8; 4]>,
    /// The controller has not all pixels as they are here.
    has_unsent: bool,
}

impl Model {
    pub(crate) fn new(options: &LedOptions) -> Self {
        let color = options.initial_color();
        Self {
            initial_preset: (options.initial_preset >= 0).then_some(options.initial_preset),
            initial_color: color,
            is_on: false,
            preset: None,
            brightness: None,
            intensity: None,
            speed: None,
            pixels: vec![color; options.chain_count as usize],
            has_unsent: true,
        }
    }

    pub(crate) fn status(&self, strip: &str, error: Option<String>) -> LedStatus {
        let level = |level: Option<u8>| level.map_or(-1, i32::from);
        LedStatus {
            strip: strip.to_owned(),
            status: if self.is_on { LedState::On } else { LedState::Off },
            chain_count: u32::try_from(self.pixels.len()).unwrap_or(u32::MAX),
            preset: self.preset.unwrap_or(-1),
            brightness: level(self.brightness),
            intensity: level(self.intensity),
            speed: level(self.speed),
            error,
        }
    }

    /// A command was lost on its way: nobody knows which pixels arrived.
    pub(crate) fn doubt(&mut self) {
        self.has_unsent = true;
    }

    /// Carries a change out; the commands are to be sent in their order.
    pub(crate) fn apply(&mut self, change: &Change) -> Vec<Command> {
        match change {
            Change::Switch { action, preset, levels } => {
                let lights = match action {
                    Action::On => Some(true),
                    Action::Off => Some(false),
                    Action::Toggle => Some(!self.is_on),
                    Action::Control => None,
                };
                let first = match lights {
                    Some(true) => Some(self.light(*preset)),
                    Some(false) => Some(self.darken()),
                    None => None,
                };
                first.into_iter().chain(self.control(levels)).collect()
            }
            Change::Color { color, index, transmit } => self.color(*color, *index, *transmit),
        }
    }

    fn light(&mut self, preset: Option<i32>) -> Command {
        self.is_on = true;
        (self.intensity, self.speed) = (None, None);
        self.pixels.fill(self.initial_color);
        self.preset = preset.or(self.initial_preset);
        if self.preset.is_some() {
            (self.brightness, self.has_unsent) = (None, true);
            return Command { on: Some(true), ps: self.preset, ..Command::default() };
        }
        (self.brightness, self.has_unsent) = (Some(FULL), false);
        self.all_alike(FULL, self.initial_color)
    }

    fn darken(&mut self) -> Command {
        (self.is_on, self.has_unsent) = (false, true);
        Command { on: Some(false), ..Command::default() }
    }

    /// Levels of a strip that is off are known, but not sent: a controller lights up with any brightness, and that is not asked for.
    fn control(&mut self, levels: &Levels) -> Option<Command> {
        let shown = match self.preset {
            Some(_) => *levels,
            None => Levels { brightness: levels.brightness, ..Levels::default() },
        };
        self.brightness = shown.brightness.or(self.brightness);
        self.intensity = shown.intensity.or(self.intensity);
        self.speed = shown.speed.or(self.speed);
        if !self.is_on || shown.is_empty() {
            return None;
        }
        let segment = Segment { bri: shown.brightness, ix: shown.intensity, sx: shown.speed, i: None };
        Some(Command { tt: Some(0), bri: shown.brightness, seg: self.preset.map(|_| segment), ..Command::default() })
    }

    fn color(&mut self, color: [u8; 4], index: Option<u32>, transmit: bool) -> Vec<Command> {
        // 0 is no LED: it becomes a place that does not exist.
        let place = index.map(|index| (index as usize).wrapping_sub(1));
        match place {
            None => self.pixels.fill(color),
            Some(place) => match self.pixels.get_mut(place) {
                Some(pixel) => *pixel = color,
                None => return Vec::new(),
            },
        }
        if !transmit {
            self.has_unsent = true;
            return Vec::new();
        }
        // A colour ends the preset, and is sent with a brightness: that one is known from here on.
        self.preset = None;
        let brightness = *self.brightness.get_or_insert(FULL);
        let command = match place {
            None => self.all_alike(brightness, color),
            Some(_) if self.has_unsent => Command::pixels(brightness, self.pixels.iter().map(|pixel| json!(pixel)).collect()),
            Some(place) => Command::pixels(brightness, vec![json!(place), json!(color)]),
        };
        self.has_unsent = false;
        // A controller that is off lights up with the first one and takes the pixels from the second one only.
        let times = if self.is_on { 1 } else { 2 };
        self.is_on = true;
        vec![command; times]
    }

    fn all_alike(&self, brightness: u8, color: [u8; 4]) -> Command {
        Command::pixels(brightness, vec![json!(0), json!(self.pixels.len()), json!(color)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(text: &str) -> Model {
        let loaded = config::load_text("c", &format!("[led a]\naddress: a\n{text}"));
        let context = config::Context::default();
        let mut reader = config::Reader::new(&loaded.document, &context);
        Model::new(&LedOptions::read(&mut reader)[0].1)
    }

    fn sent(model: &mut Model, change: &Change) -> Vec<String> {
        model.apply(change).iter().map(|command| serde_json::to_string(command).unwrap()).collect()
    }

    fn on(preset: Option<i32>, levels: Levels) -> Change {
        Change::Switch { action: Action::On, preset, levels }
    }

    fn shown(model: &Model) -> (LedState, i32, i32, i32, i32) {
        let status = model.status("a", None);
        (status.status, status.preset, status.brightness, status.intensity, status.speed)
    }

    #[test]
    fn colours_and_presets_at_the_start_and_at_on() {
        let mut plain = model("chain_count: 3\ninitial_red: 1\ninitial_green: 0\n");
        let colours = r#"{"on":true,"tt":0,"bri":255,"seg":{"bri":255,"i":[0,3,[255,0,128,128]]}}"#;
        assert_eq!(sent(&mut plain, &Change::switch(Action::On)), [colours]);
        assert_eq!(shown(&plain), (LedState::On, -1, 255, -1, -1));
        assert_eq!(sent(&mut plain, &on(Some(4), Levels::default())), [r#"{"on":true,"ps":4}"#]);
        assert_eq!(shown(&plain), (LedState::On, 4, -1, -1, -1));
        assert_eq!(sent(&mut plain, &Change::switch(Action::Toggle)), [r#"{"on":false}"#]);
        assert_eq!(shown(&plain), (LedState::Off, 4, -1, -1, -1), "other fields stay");
        assert_eq!(sent(&mut plain, &Change::switch(Action::Toggle)), [colours]);
        let mut preset = model("initial_preset: 0\n");
        assert_eq!(sent(&mut preset, &Change::switch(Action::On)), [r#"{"on":true,"ps":0}"#]);
    }

    #[test]
    fn levels_follow_the_rules_of_presets() {
        let levels = Levels { brightness: Some(9), intensity: Some(8), speed: Some(0) };
        let control = Change::Switch { action: Action::Control, preset: None, levels };
        let mut strip = model("");
        assert!(sent(&mut strip, &control).is_empty(), "nothing while off");
        assert_eq!(shown(&strip), (LedState::Off, -1, 9, -1, -1), "but it is known");
        strip.apply(&Change::switch(Action::On));
        assert_eq!(sent(&mut strip, &control), [r#"{"tt":0,"bri":9}"#]);
        assert_eq!(shown(&strip), (LedState::On, -1, 9, -1, -1));
        let speed = Change::Switch { action: Action::Control, preset: None, levels: Levels { speed: Some(7), ..Levels::default() } };
        assert!(sent(&mut strip, &speed).is_empty(), "no speed without a preset");
        assert_eq!(sent(&mut strip, &on(Some(1), levels)), [r#"{"on":true,"ps":1}"#, r#"{"tt":0,"bri":9,"seg":{"bri":9,"ix":8,"sx":0}}"#]);
        assert_eq!(sent(&mut strip, &speed), [r#"{"tt":0,"seg":{"sx":7}}"#]);
        assert_eq!(shown(&strip), (LedState::On, 1, 9, 8, 7));
        let off = Change::Switch { action: Action::Off, preset: None, levels };
        assert_eq!(sent(&mut strip, &off), [r#"{"on":false}"#], "levels are sent only when it is lit");
        assert_eq!(shown(&strip), (LedState::Off, 1, 9, 8, 0));
        strip.apply(&Change::switch(Action::On));
        assert_eq!(shown(&strip), (LedState::On, -1, 255, -1, -1), "switching it on resets what is not given with it");
    }

    #[test]
    fn a_colour_ends_the_preset_and_makes_the_brightness_known() {
        let control = |levels| Change::Switch { action: Action::Control, preset: None, levels };
        let speed = control(Levels { speed: Some(9), ..Levels::default() });
        for index in [None, Some(1)] {
            let color = Change::Color { color: [1, 2, 3, 4], index, transmit: true };
            let mut strip = model("");
            strip.apply(&on(Some(4), Levels::default()));
            let held = Change::Color { color: [0; 4], index, transmit: false };
            assert!(sent(&mut strip, &held).is_empty() && strip.preset == Some(4), "what is kept back ends nothing");
            assert!(sent(&mut strip, &color)[0].contains(r#""bri":255"#));
            assert_eq!(shown(&strip), (LedState::On, -1, 255, -1, -1), "{index:?}");
            assert!(sent(&mut strip, &speed).is_empty(), "no speed without a preset");
            strip.apply(&Change::switch(Action::Off));
            strip.apply(&control(Levels { brightness: Some(33), ..Levels::default() }));
            assert!(sent(&mut strip, &color)[0].contains(r#""bri":33"#), "{index:?}");
        }
    }

    #[test]
    fn single_leds_send_the_whole_chain_only_when_needed() {
        let color = |index, transmit| Change::Color { color: [1, 2, 3, 4], index, transmit };
        let mut strip = model("chain_count: 2\n");
        let first = sent(&mut strip, &color(Some(2), true));
        let whole = r#"{"on":true,"tt":0,"bri":255,"seg":{"bri":255,"i":[[128,128,128,128],[1,2,3,4]]}}"#;
        assert_eq!(first, [whole, whole], "twice while off");
        assert_eq!(sent(&mut strip, &color(Some(1), true)), [r#"{"on":true,"tt":0,"bri":255,"seg":{"bri":255,"i":[0,[1,2,3,4]]}}"#]);
        assert!(sent(&mut strip, &color(Some(1), false)).is_empty());
        assert_eq!(sent(&mut strip, &color(Some(2), true)).len(), 1);
        assert_eq!(sent(&mut strip, &color(None, true)), [r#"{"on":true,"tt":0,"bri":255,"seg":{"bri":255,"i":[0,2,[1,2,3,4]]}}"#]);
        for outside in [0, 3, u32::MAX].map(|index| Change::Color { color: [0; 4], index: Some(index), transmit: true }) {
            let before = strip.clone();
            assert!(sent(&mut strip, &outside).is_empty());
            assert_eq!(strip, before);
        }
    }
}
