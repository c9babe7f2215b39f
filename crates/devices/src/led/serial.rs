//! A controller at a serial line: the same JSON without a terminator, answers as lines. Nothing but JSON may be sent there, because controllers
//! tell protocols apart by their first byte.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::termios::{ControlModes, OptionalActions, ioctl_tiocexcl, tcgetattr, tcsetattr};
use tokio::io::unix::AsyncFd;
use tokio::time::timeout;

/// Time in which an LED strip at a serial line takes a command, and in which it answers the greeting.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// Longest line in bytes that an LED strip may answer.
pub const MAX_LINE: usize = 64 * 1024;

/// The line; opened when something is to be sent, and again after a fault.
pub(super) struct Serial {
    path: PathBuf,
    baud: u32,
    port: Option<AsyncFd<File>>,
}

impl Serial {
    pub(super) fn new(path: PathBuf, baud: u32) -> Self {
        Self { path, baud, port: None }
    }

    /// Sends bytes; waits for a line with an object when there must be an answer.
    pub(super) async fn send(&mut self, body: &[u8], is_answered: bool) -> Result<(), String> {
        let outcome = self.exchange(body, is_answered).await;
        if outcome.is_err() {
            self.port = None;
        }
        outcome
    }

    async fn exchange(&mut self, body: &[u8], is_answered: bool) -> Result<(), String> {
        let port = match self.port.take() {
            Some(port) => port,
            None => self.open().await?,
        };
        let port = self.port.insert(port);
        drain(port)?;
        timeout(ANSWER_TIMEOUT, write(port, body)).await.map_err(|_| "it does not take what is sent".to_owned())??;
        if is_answered {
            timeout(ANSWER_TIMEOUT, answer(port)).await.map_err(|_| format!("no answer within {} s", ANSWER_TIMEOUT.as_secs()))??;
        }
        Ok(())
    }

    async fn open(&self) -> Result<AsyncFd<File>, String> {
        let (path, baud) = (self.path.clone(), self.baud);
        let opened = tokio::task::spawn_blocking(move || open(&path, baud)).await.map_err(|error| error.to_string())?;
        let file = opened.map_err(|error| format!("{} cannot be opened: {error}", self.path.display()))?;
        // What replaces it is unsafe, for types that do not own what they lend; a file does.
        #[allow(deprecated)]
        AsyncFd::new(file).map_err(|error| error.to_string())
    }
}

/// 8N1, raw, nobody else's.
fn open(path: &Path, baud: u32) -> std::io::Result<File> {
    let fd = rustix::fs::open(path, OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?;
    ioctl_tiocexcl(&fd)?;
    let mut line = tcgetattr(&fd)?;
    line.make_raw();
    line.control_modes.insert(ControlModes::CREAD | ControlModes::CLOCAL);
    line.control_modes.remove(ControlModes::CRTSCTS | ControlModes::CSTOPB);
    line.set_speed(baud)?;
    tcsetattr(&fd, OptionalActions::Now, &line)?;
    Ok(File::from(fd))
}

/// Throws away what came since the last time: answers that nobody waits for.
fn drain(port: &AsyncFd<File>) -> Result<(), String> {
    let mut bytes = [0; 1024];
    for _ in 0..=MAX_LINE / bytes.len() {
        match port.get_ref().read(&mut bytes) {
            Ok(0) => return Err("the line was closed".to_owned()),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(())
}

async fn write(port: &AsyncFd<File>, mut body: &[u8]) -> Result<(), String> {
    while !body.is_empty() {
        let mut ready = port.writable().await.map_err(|error| error.to_string())?;
        if let Ok(written) = ready.try_io(|port| port.get_ref().write(body)) {
            let written = written.map_err(|error| error.to_string())?;
            body = body.get(written..).unwrap_or_default();
        }
    }
    Ok(())
}

/// Waits for a line that is an object; other lines are messages of the controller to people.
async fn answer(port: &AsyncFd<File>) -> Result<(), String> {
    let mut line = Vec::new();
    let mut bytes = [0; 1024];
    loop {
        let mut ready = port.readable().await.map_err(|error| error.to_string())?;
        let Ok(read) = ready.try_io(|port| port.get_ref().read(&mut bytes)) else { continue };
        let read = match read.map_err(|error| error.to_string())? {
            0 => return Err("the line was closed".to_owned()),
            read => bytes.get(..read).unwrap_or_default(),
        };
        for byte in read {
            if *byte != b'\n' {
                line.push(*byte);
                continue;
            }
            if serde_json::from_slice::<serde_json::Map<_, _>>(&line).is_ok() {
                return Ok(());
            }
            line.clear();
        }
        if line.len() > MAX_LINE {
            return Err(format!("it sends lines of more than {MAX_LINE} bytes"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

    /// The controller's end of a line, and the path of ours.
    fn line() -> (File, PathBuf) {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let path = PathBuf::from(ptsname(&master, Vec::new()).unwrap().into_string().unwrap());
        (File::from(master), path)
    }

    fn read(controller: &mut File, length: usize) -> String {
        let mut bytes = vec![0; length];
        controller.read_exact(&mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[tokio::test]
    async fn commands_arrive_as_they_are_and_answers_are_lines() {
        let (mut controller, path) = line();
        let mut serial = Serial::new(path.clone(), 115_200);
        let other_side = tokio::task::spawn_blocking(move || {
            let greeting = read(&mut controller, 10);
            controller.write_all(b"Ada\nbooting...\n{\"state\":{\"on\":true}}\n").unwrap();
            let command = read(&mut controller, 12);
            controller.write_all(b"{\"success\":true}\n").unwrap();
            let next = read(&mut controller, 11);
            (greeting, command, next)
        });
        serial.send(br#"{"v":true}"#, true).await.unwrap();
        serial.send(br#"{"on":false}"#, false).await.unwrap();
        assert!(open(&path, 115_200).is_err() || rustix::process::geteuid().is_root(), "nobody else may open it");
        serial.send(br#"{"on":true}"#, false).await.unwrap();
        let (greeting, command, next) = other_side.await.unwrap();
        assert_eq!((greeting.as_str(), command.as_str(), next.as_str()), (r#"{"v":true}"#, r#"{"on":false}"#, r#"{"on":true}"#));
    }

    #[tokio::test]
    async fn silence_and_a_pulled_plug_are_faults_and_a_new_one_is_used() {
        let mut serial = Serial::new("/nowhere/tty".into(), 115_200);
        assert!(serial.send(b"{}", false).await.unwrap_err().contains("cannot be opened"));
        let (controller, path) = line();
        serial = Serial::new(path, 115_200);
        timeout(ANSWER_TIMEOUT * 3, async {
            assert_eq!(serial.send(b"{}", true).await.unwrap_err(), "no answer within 2 s");
        })
        .await
        .unwrap();
        serial.send(b"{}", false).await.unwrap();
        drop(controller);
        assert!(serial.send(b"{}", false).await.is_err());
        let (_controller, path) = line();
        serial.path = path;
        serial.send(b"{}", false).await.unwrap();
    }
}
