//! Faults that the simulator can be given, at start (`--fault NAME=VALUE`) or at run time, to see how a server copes.

use std::fmt;
use std::str::FromStr;

/// A fault. All seconds are wall seconds unless they are "of printing".
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// Start-up takes this long.
    Startup {
        /// Wall seconds from listening to ready.
        seconds: f64,
    },
    /// Start-up ends in `error` because of the configuration; `RESTART` helps once the fault is cleared.
    ConfigError,
    /// Start-up ends in `error` because of the microcontroller; `FIRMWARE_RESTART` helps once the fault is cleared.
    McuError,
    /// The printer shuts down during a print, once.
    ShutdownAfter {
        /// Seconds of printing (`print_stats.total_duration`).
        seconds: f64,
    },
    /// The host dies during a print, once.
    DieAfter {
        /// Seconds of printing (`print_stats.total_duration`).
        seconds: f64,
    },
    /// The host dies: connections end abruptly, nobody listens, the socket file stays.
    Die,
    /// The host hangs: the socket stays open, nothing is answered or pushed until the fault is cleared.
    Hang {
        /// Wall seconds from now (from listening, if given at start).
        seconds: f64,
    },
    /// Every answer comes late.
    SlowReplies {
        /// Milliseconds.
        ms: u64,
    },
    /// Every answer is padded with white space to at least this size.
    HugeReplies {
        /// Bytes.
        bytes: usize,
    },
    /// Before every message comes a frame that is no JSON.
    InvalidJson,
    /// The next message is cut in the middle and its connection closed, once.
    HalfMessage,
    /// Readings hold the bare words that one of the real host's encoders writes for not-a-number.
    NonFinite,
    /// The next restart leaves the old connections open and silent while a new listener takes the path, once
    /// (wire document 5, section 12, no. 1).
    Zombie,
    /// The printer lacks an object, for example `virtual_sdcard`; from the next start-up on.
    Without {
        /// Object name.
        object: String,
    },
}

/// One line per fault for a command's help: how it is written and what it does.
pub const FAULT_HELP: &[(&str, &str)] = &[
    ("startup=SECONDS", "start-up takes this long"),
    ("config-error", "start-up fails because of the configuration"),
    ("mcu-error", "start-up fails because of the microcontroller"),
    ("shutdown-after=SECONDS", "shut down after this long of printing"),
    ("die-after=SECONDS", "die after this long of printing"),
    ("die", "close everything abruptly; the socket file stays"),
    ("hang=SECONDS", "answer nothing any more, from this long after listening on"),
    ("slow-replies=MS", "delay every answer"),
    ("huge-replies=BYTES", "pad every answer to this size"),
    ("invalid-json", "send a frame that is no JSON before every message"),
    ("half-message", "cut the next message in the middle and close its connection"),
    ("non-finite", "send NaN as bare word in readings"),
    ("zombie", "at the next restart leave old connections open and silent"),
    ("without=OBJECT", "lack a printer object, for example virtual_sdcard"),
];

impl Fault {
    /// Whether both are the same kind of fault, whatever their values.
    pub fn same_kind(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Without { object: a }, Self::Without { object: b }) => a == b,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Startup { seconds } => write!(f, "startup={seconds}"),
            Self::ConfigError => f.write_str("config-error"),
            Self::McuError => f.write_str("mcu-error"),
            Self::ShutdownAfter { seconds } => write!(f, "shutdown-after={seconds}"),
            Self::DieAfter { seconds } => write!(f, "die-after={seconds}"),
            Self::Die => f.write_str("die"),
            Self::Hang { seconds } => write!(f, "hang={seconds}"),
            Self::SlowReplies { ms } => write!(f, "slow-replies={ms}"),
            Self::HugeReplies { bytes } => write!(f, "huge-replies={bytes}"),
            Self::InvalidJson => f.write_str("invalid-json"),
            Self::HalfMessage => f.write_str("half-message"),
            Self::NonFinite => f.write_str("non-finite"),
            Self::Zombie => f.write_str("zombie"),
            Self::Without { object } => write!(f, "without={object}"),
        }
    }
}

/// A text that names no fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FaultParseError {
    /// No fault has this name.
    #[error("unknown fault '{0}'")]
    Unknown(String),
    /// The fault needs another value.
    #[error("fault '{name}' needs {wanted}")]
    Value {
        /// Name of the fault.
        name: String,
        /// What kind of value.
        wanted: &'static str,
    },
}

impl FromStr for Fault {
    type Err = FaultParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        let wrong = |wanted| FaultParseError::Value { name: name.to_owned(), wanted };
        let seconds = || {
            let number = value.and_then(|v| v.parse::<f64>().ok()).filter(|s| s.is_finite() && *s >= 0.0);
            number.ok_or(wrong("a number of seconds"))
        };
        let plain = |fault: Self| if value.is_none() { Ok(fault) } else { Err(wrong("no value")) };
        match name {
            "startup" => Ok(Self::Startup { seconds: seconds()? }),
            "config-error" => plain(Self::ConfigError),
            "mcu-error" => plain(Self::McuError),
            "shutdown-after" => Ok(Self::ShutdownAfter { seconds: seconds()? }),
            "die-after" => Ok(Self::DieAfter { seconds: seconds()? }),
            "die" => plain(Self::Die),
            "hang" if value.is_none() => Ok(Self::Hang { seconds: 0.0 }),
            "hang" => Ok(Self::Hang { seconds: seconds()? }),
            "slow-replies" => {
                value.and_then(|v| v.parse().ok()).map(|ms| Self::SlowReplies { ms }).ok_or(wrong("a number of milliseconds"))
            }
            "huge-replies" => value.and_then(|v| v.parse().ok()).map(|bytes| Self::HugeReplies { bytes }).ok_or(wrong("a number of bytes")),
            "invalid-json" => plain(Self::InvalidJson),
            "half-message" => plain(Self::HalfMessage),
            "non-finite" => plain(Self::NonFinite),
            "zombie" => plain(Self::Zombie),
            "without" => {
                let object = value.filter(|v| !v.is_empty()).ok_or(wrong("the name of an object"))?;
                Ok(Self::Without { object: object.to_owned() })
            }
            _ => Err(FaultParseError::Unknown(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_in_the_help_parses_and_prints_the_same() {
        for (usage, _) in FAULT_HELP {
            let text = match usage.split_once('=') {
                Some((name, "OBJECT")) => format!("{name}=virtual_sdcard"),
                Some((name, _)) => format!("{name}=5"),
                None => (*usage).to_owned(),
            };
            let fault: Fault = text.parse().unwrap();
            assert_eq!(fault.to_string(), text);
            assert!(fault.same_kind(&fault.clone()));
        }
        assert_eq!("startup=0.25".parse(), Ok(Fault::Startup { seconds: 0.25 }));
        assert_eq!("hang".parse(), Ok(Fault::Hang { seconds: 0.0 }));
        for bad in ["", "nope", "startup", "startup=x", "startup=-1", "die=3", "without=", "slow-replies"] {
            assert!(bad.parse::<Fault>().is_err(), "{bad}");
        }
    }
}
