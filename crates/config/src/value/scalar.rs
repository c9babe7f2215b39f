//! Text, numbers, switches and lengths of time.

use std::time::Duration;

use serde_json::Value;

use super::{Context, OptionValue};

impl OptionValue for String {
    const EXPECTED: &'static str = "text";
    type Literal = &'static str;

    fn parse(text: &str, _: &Context) -> Result<Self, String> {
        Ok(text.trim().to_owned())
    }

    fn from_literal(literal: &'static str, _: &Context) -> Self {
        literal.to_owned()
    }

    fn to_json(&self) -> Value {
        self.as_str().into()
    }
}

impl OptionValue for bool {
    const EXPECTED: &'static str = "true or false (also yes/no, on/off, 1/0)";
    type Literal = bool;

    fn parse(text: &str, _: &Context) -> Result<Self, String> {
        match text.trim().to_ascii_lowercase().as_str() {
            "1" | "yes" | "true" | "on" => Ok(true),
            "0" | "no" | "false" | "off" => Ok(false),
            _ => Err(Self::EXPECTED.to_owned()),
        }
    }

    fn from_literal(literal: bool, _: &Context) -> Self {
        literal
    }

    fn to_json(&self) -> Value {
        (*self).into()
    }
}

macro_rules! integers {
    ($($type:ty: $expected:literal),+ $(,)?) => {$(
        impl OptionValue for $type {
            const EXPECTED: &'static str = $expected;
            type Literal = $type;

            fn parse(text: &str, _: &Context) -> Result<Self, String> {
                text.trim().parse().map_err(|_| Self::EXPECTED.to_owned())
            }

            fn from_literal(literal: $type, _: &Context) -> Self {
                literal
            }

            fn to_json(&self) -> Value {
                (*self).into()
            }

            // Limits are small numbers; rounding of huge values does not change the comparison.
            #[allow(clippy::cast_lossless, clippy::cast_precision_loss)]
            fn number(&self) -> Option<f64> {
                Some(*self as f64)
            }
        }
    )+};
}

integers! {
    u8: "a whole number from 0 to 255",
    u16: "a whole number from 0 to 65535",
    u32: "a whole number, 0 or more",
    u64: "a whole number, 0 or more",
    usize: "a whole number, 0 or more",
    i32: "a whole number",
    i64: "a whole number",
}

impl OptionValue for f64 {
    const EXPECTED: &'static str = "a number";
    type Literal = f64;

    fn parse(text: &str, _: &Context) -> Result<Self, String> {
        text.trim().parse().ok().filter(|number: &f64| number.is_finite()).ok_or_else(|| Self::EXPECTED.to_owned())
    }

    fn from_literal(literal: f64, _: &Context) -> Self {
        literal
    }

    fn to_json(&self) -> Value {
        (*self).into()
    }

    fn number(&self) -> Option<f64> {
        Some(*self)
    }
}

impl OptionValue for Duration {
    const EXPECTED: &'static str = "a number of seconds, 0 or more";
    type Literal = f64;

    fn parse(text: &str, _: &Context) -> Result<Self, String> {
        let seconds = text.trim().parse().ok();
        seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).ok_or_else(|| Self::EXPECTED.to_owned())
    }

    fn from_literal(literal: f64, _: &Context) -> Self {
        Duration::try_from_secs_f64(literal).unwrap_or_default()
    }

    fn to_json(&self) -> Value {
        self.as_secs_f64().into()
    }

    fn number(&self) -> Option<f64> {
        Some(self.as_secs_f64())
    }
}
