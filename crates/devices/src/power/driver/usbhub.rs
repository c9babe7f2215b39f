//! Type `usbhub`: a port of a USB hub, switched by the program `uhubctl`.

use std::ffi::OsString;
use std::process::Stdio;

use rpc::transfer::Boxed;
use tokio::process::Command;

use super::{Driver, Fault};
use crate::power::build::Section;
use crate::power::model::Reading;
use crate::power::options::HubOptions;

/// The program, looked up in `PATH`.
const PROGRAM: &str = "uhubctl";

/// Characters of the program's words of failure that are shown.
const SHOWN: usize = 200;

#[derive(Debug)]
pub(crate) struct Usbhub {
    program: OsString,
    location: String,
    port: Option<u16>,
}

pub(crate) fn read(section: &mut Section<'_, '_, '_>) -> Option<Usbhub> {
    let options = section.take::<HubOptions>()?;
    let is_place = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
    if !options.location.starts_with(|first: char| first.is_ascii_digit()) || !options.location.bytes().all(is_place) {
        return section.reject("location", "expected the place of a hub, such as `1-1`");
    }
    Some(Usbhub { program: PROGRAM.into(), location: options.location, port: options.port })
}

impl Usbhub {
    async fn run(&self, action: Option<bool>) -> Result<bool, Fault> {
        let mut command = Command::new(&self.program);
        command.args(["-l", &self.location]);
        if let Some(port) = self.port {
            command.args(["-p", &port.to_string()]);
        }
        if let Some(on) = action {
            command.args(["-a", if on { "on" } else { "off" }]);
        }
        command.stdin(Stdio::null()).kill_on_drop(true);
        let output = command.output().await.map_err(|error| Fault::new(format!("{PROGRAM} cannot be run: {error}")))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let head = if action.is_some() { "New status" } else { "Current status" };
        let state = state_after(&text, &format!("{head} for hub {}", self.location), self.port);
        state.ok_or_else(|| {
            let words = String::from_utf8_lossy(&output.stderr);
            let words = if words.trim().is_empty() { "its output does not name the port" } else { words.trim() };
            Fault::new(format!("{PROGRAM}: {words:.SHOWN$}"))
        })
    }
}

/// Whether the first port after the line that begins with `head` has power.
fn state_after(text: &str, head: &str, port: Option<u16>) -> Option<bool> {
    let mut lines = text.lines().skip_while(|line| !starts_with(line, head)).skip(1);
    lines.find_map(|line| {
        let (number, flags) = line.trim().strip_prefix("Port ")?.split_once(": ")?;
        if port.is_some_and(|port| number.trim().parse() != Ok(port)) {
            return None;
        }
        let mut words = flags.split_whitespace();
        let is_status = |word: &str| word.len() == 4 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
        words.next().filter(|word| is_status(word))?;
        match words.next()? {
            "power" => Some(true),
            "off" => Some(false),
            _ => None,
        }
    })
}

/// True for `head` itself and `head [more]`, not for a longer place.
fn starts_with(line: &str, head: &str) -> bool {
    line.strip_prefix(head).is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace))
}

impl Driver for Usbhub {
    fn query(&mut self) -> Boxed<'_, Result<Reading, Fault>> {
        Box::pin(async move { self.run(None).await.map(Reading::from) })
    }

    fn switch(&mut self, on: bool) -> Boxed<'_, Result<bool, Fault>> {
        Box::pin(async move { self.run(Some(on)).await })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use proptest::prelude::*;

    const OUTPUT: &str = "Current status for hub 1-1.4 [x]\n  Port 2: 0100 power\nCurrent status for hub 1-1 [2109:3431, USB 2.10, 4 ports]\n  \
                          Port 1: 0503 power highspeed enable connect [1a2b:3c4d A thing]\n  Port 2: 0000 off\n";

    #[test]
    fn ports_are_found_in_the_output() {
        let state = |location: &str, port| state_after(OUTPUT, &format!("Current status for hub {location}"), port);
        assert_eq!((state("1-1", None), state("1-1", Some(2)), state("1-1.4", Some(2))), (Some(true), Some(false), Some(true)));
        assert_eq!((state("1-1", Some(3)), state("1", None), state("2-1", None)), (None, None, None));
    }

    #[tokio::test]
    async fn the_program_is_run_with_its_arguments() {
        let folder = tempfile::tempdir().unwrap();
        let (program, log) = (folder.path().join("uhubctl"), folder.path().join("log"));
        let script = format!(
            "#!/bin/sh\necho \"$@\" >> {0}\ncase \"$*\" in *on) echo 'New status for hub 1-1';; *) echo 'Current status for hub 1-1';; esac\n\
             grep -q on {0} && echo '  Port 2: 0100 power' || echo '  Port 2: 0000 off'\n",
            log.display()
        );
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let mut hub = Usbhub { program: program.into(), location: "1-1".into(), port: Some(2) };
        assert_eq!(hub.query().await, Ok(Reading::Off));
        assert_eq!(hub.switch(true).await, Ok(true));
        assert_eq!(std::fs::read_to_string(log).unwrap(), "-l 1-1 -p 2\n-l 1-1 -p 2 -a on\n");
    }

    #[tokio::test]
    async fn a_program_that_is_missing_or_fails_is_a_reason() {
        let mut hub = Usbhub { program: "/nonexistent/uhubctl".into(), location: "1-1".into(), port: None };
        assert!(hub.query().await.unwrap_err().message.starts_with("uhubctl cannot be run: No such file"));
        hub.program = "false".into();
        assert_eq!(hub.query().await.unwrap_err(), Fault::new("uhubctl: its output does not name the port"));
    }

    proptest! {
        #[test]
        fn no_output_breaks_it(text in "((Current|New) status for hub 1-1( x)?\n|  Port [0-9]{0,6}: [0-9a-f]{0,5} (power|off)?.{0,9}\n|.{0,20}\n){0,6}") {
            let _ = state_after(&text, "Current status for hub 1-1", Some(2));
        }
    }
}
