//! `[button name]`.

use std::time::Duration;

use config::{OptionSet, Reader, Secrets};
use serde_json::{Map, Value};
use template::{Context, Template};

use crate::gpio::Pin;
use crate::script::CALL_METHOD;

/// Buttons of one configuration.
pub const MAX_BUTTONS: usize = 32;

config::choices! {
    /// What a button is connected to.
    pub enum ButtonKind {
        /// A pin of this machine.
        Gpio = "gpio",
    }
}

config::options! {
    /// A button or switch at a pin of this machine. At least one of the templates is required. See docs/buttons.md.
    pub struct ButtonOptions: "button <name>" {
        /// What it is connected to: `gpio`.
        r#type: ButtonKind = ButtonKind::Gpio,
        /// Its pin: `gpio17`, `gpiochip1/gpio4`, with `^` (pull-up) or `~` (pull-down) and `!` (pressed when low) before it.
        pin: Pin,
        /// Seconds after the first change of the line until its level counts. Contacts bounce for some milliseconds.
        debounce_period: Duration { min 0.01, max 10 } = 0.05,
        /// Seconds that the change before must be past; earlier ones do nothing.
        minimum_event_time: Duration { max 3600 } = 0.0,
        /// What happens when it goes down. It may call `call_method` and `send_notification`, and sees `event` and `user_data`.
        on_press: Option<Template> = None,
        /// What happens when it goes up; as `on_press`.
        on_release: Option<Template> = None,
    }
}

/// A button that can be used.
#[derive(Debug, Clone)]
pub struct ConfiguredButton {
    /// What follows `button` in the section's name.
    pub name: String,
    /// Its options.
    pub options: ButtonOptions,
    /// What its templates see besides the event.
    pub context: Context,
}

impl ConfiguredButton {
    /// All sections that can be used. The others are reported to the reader.
    pub fn read(reader: &mut Reader<'_>, secrets: &Secrets) -> Vec<Self> {
        let mut usable: Vec<Self> = Vec::new();
        for entry in reader.read_all::<ButtonOptions>() {
            let (section, name) = (entry.section.clone(), entry.name.clone());
            let Ok(mut options) = entry.sound() else { continue };
            let fault = if options.on_press.is_none() && options.on_release.is_none() {
                Some(("on_press", "expected a template here or in `on_release`".to_owned()))
            } else if usable.iter().any(|known| known.options.pin.is_same_line(&options.pin)) {
                Some(("pin", "another button has this line".to_owned()))
            } else if usable.len() >= MAX_BUTTONS {
                Some(("pin", format!("more than {MAX_BUTTONS} buttons")))
            } else {
                None
            };
            if let Some((option, message)) = fault {
                reader.reject(&section, option, message);
                continue;
            }
            options.on_press = options.on_press.map(|template| template.of(&format!("[{section}] on_press")));
            options.on_release = options.on_release.map(|template| template.of(&format!("[{section}] on_release")));
            let context = Context::new(secrets).with_function(CALL_METHOD).with_function("send_notification");
            usable.push(Self { name, options, context });
        }
        usable
    }

    /// Typed values, for `server.config`.
    #[must_use]
    pub fn effective(&self) -> Map<String, Value> {
        self.options.effective()
    }

    /// The name that clients are told: the last word, as existing configurations have it.
    #[must_use]
    pub fn told_name(&self) -> &str {
        self.name.split_whitespace().next_back().unwrap_or(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Vec<ConfiguredButton>, Vec<String>) {
        crate::reading::options(text, |reader| ConfiguredButton::read(reader, &Secrets::default()))
    }

    #[test]
    fn buttons_are_read_with_the_usual_values() {
        let (buttons, problems) = read(
            "[button left door]\npin: ^!gpiochip1/gpio4\non_release: x\n[button stop]\ntype: GPIO\npin: gpio4\ndebounce_period: 0.2\nminimum_event_time: 2.\non_press: y\n",
        );
        assert_eq!(problems, [""; 0]);
        let (door, stop) = (&buttons[0], &buttons[1]);
        assert_eq!((door.name.as_str(), door.told_name()), ("left door", "door"));
        assert_eq!((door.options.debounce_period, door.options.minimum_event_time), (Duration::from_millis(50), Duration::ZERO));
        assert!(door.options.on_press.is_none() && door.options.on_release.is_some());
        assert_eq!(stop.options.minimum_event_time, Duration::from_secs(2));
        assert_eq!(Value::Object(door.effective())["pin"], "^!gpiochip1/gpio4");
    }

    #[test]
    fn faulty_buttons_are_left_out_and_named() {
        for (lines, expected) in [
            ("pin: gpio4", "[button b] on_press: expected a template here or in `on_release`"),
            ("on_press: x", "[button b] pin: expected a pin"),
            ("pin: gpio4x\non_press: x", "[button b] pin: expected a pin"),
            ("pin: gpio4\non_press: {call_method(}", "[button b] on_press: expected a template"),
            ("pin: gpio4\non_press: x\ndebounce_period: 0", "[button b] debounce_period: expected"),
            ("pin: gpio4\non_press: x\nminimum_event_time: -1", "[button b] minimum_event_time: expected"),
            ("pin: !gpiochip0/gpio9\non_press: x", "[button b] pin: another button has this line"),
        ] {
            let (buttons, problems) = read(&format!("[button a]\npin: gpio9\non_press: x\n[button b]\n{lines}\n"));
            assert!(buttons.len() == 1 && problems.iter().any(|problem| problem.contains(expected)), "{lines}: {problems:?}");
        }
    }
}
