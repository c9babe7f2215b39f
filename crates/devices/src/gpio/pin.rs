//! Names of lines in the configuration.

use config::{Context, OptionValue};
use serde_json::Value;

/// What a pin looks like, for messages.
const EXPECTED: &str = "a pin such as `gpio17` or `gpiochip1/gpio4`, after `^` (pull-up), `~` (pull-down) and `!` (inverted) if needed";

/// A resistor within the chip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bias {
    /// `^`.
    PullUp,
    /// `~`.
    PullDown,
}

/// A line and how it is wired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    /// Name of the chip's device file.
    pub chip: String,
    /// Number of the line within the chip.
    pub line: u32,
    /// For inputs.
    pub bias: Option<Bias>,
    /// True when electrically low means on.
    pub is_inverted: bool,
}

impl Pin {
    /// Reads `[^|~][!][gpiochipN/]gpioM`.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let text = text.trim();
        let (bias, rest) = match text.as_bytes().first()? {
            b'^' => (Some(Bias::PullUp), &text[1..]),
            b'~' => (Some(Bias::PullDown), &text[1..]),
            _ => (None, text),
        };
        let (is_inverted, rest) = rest.strip_prefix('!').map_or((false, rest), |rest| (true, rest));
        let (chip, line) = rest.split_once('/').unwrap_or(("gpiochip0", rest));
        number(chip.strip_prefix("gpiochip")?)?;
        Some(Self { chip: chip.to_owned(), line: number(line.strip_prefix("gpio")?)?, bias, is_inverted })
    }

    /// True when both are the same line, however it is wired.
    #[must_use]
    pub fn is_same_line(&self, other: &Self) -> bool {
        (&self.chip, self.line) == (&other.chip, other.line)
    }
}

/// Digits and nothing else: no sign.
fn number(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

impl OptionValue for Pin {
    const EXPECTED: &'static str = EXPECTED;
    type Literal = &'static str;

    fn parse(text: &str, _: &Context) -> Result<Self, String> {
        Self::read(text).ok_or_else(|| EXPECTED.to_owned())
    }

    fn from_literal(literal: &'static str, _: &Context) -> Self {
        Self::read(literal).unwrap_or(Self { chip: "gpiochip0".to_owned(), line: 0, bias: None, is_inverted: false })
    }

    fn to_json(&self) -> Value {
        let bias = match self.bias {
            Some(Bias::PullUp) => "^",
            Some(Bias::PullDown) => "~",
            None => "",
        };
        format!("{bias}{}{}/gpio{}", if self.is_inverted { "!" } else { "" }, self.chip, self.line).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pins_are_read_whole() {
        let plain = Pin { chip: "gpiochip0".into(), line: 17, bias: None, is_inverted: false };
        assert_eq!(Pin::read(" gpio17 "), Some(plain.clone()));
        assert_eq!(Pin::read("^!gpiochip12/gpio3").unwrap().to_json(), "^!gpiochip12/gpio3");
        assert_eq!(Pin::read("~gpio3").unwrap().bias, Some(Bias::PullDown));
        for bad in [
            "",
            "^",
            "17",
            "gpio",
            "gpio17x",
            "gpio-1",
            "gpio+1",
            "gpiochip0/17",
            "gpiochip/gpio1",
            "../gpio1",
            "!^gpio1",
            "gpio99999999999",
        ] {
            assert_eq!(Pin::read(bad), None, "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn no_text_breaks_it_and_what_is_read_is_written_the_same(text in "[\\^~!]{0,2}(gpiochip[0-9]{0,3}/)?gpio[0-9]{0,11}|.{0,20}") {
            if let Some(pin) = Pin::read(&text) {
                let written = pin.to_json();
                prop_assert_eq!(Pin::read(written.as_str().unwrap()), Some(pin));
            }
        }
    }
}
