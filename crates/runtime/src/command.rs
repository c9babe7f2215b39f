//! Other programs: started with a list of arguments, never through a shell, with limits on time and output.
//!
//! ```text
//! start ─► write standard input ─┐
//!          read both outputs ────┴─► both ended ─► exit status
//!                 └─ too slow, too much, dropped ─► killed and reaped
//! ```

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::time::timeout;
use zeroize::Zeroizing;

use crate::Secret;

/// Time for a program when nothing else is said.
const DEFAULT_LIMIT: Duration = Duration::from_secs(10);
/// Bytes that are taken from each output of a program.
const MAX_OUTPUT: usize = 1024 * 1024;
/// Characters of the error output that stand in the text of a failure.
const MAX_COMPLAINT: usize = 500;

/// A program to be run.
#[derive(Debug)]
pub struct Command {
    program: PathBuf,
    command: std::process::Command,
    input: Option<Secret<Zeroizing<String>>>,
    limit: Duration,
}

/// What a program said before it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Exit code; none when a signal ended it.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Error output.
    pub stderr: String,
}

/// Why a program gave nothing.
#[derive(Debug)]
pub enum CommandError {
    /// It cannot be started.
    Start(PathBuf, io::Error),
    /// It took longer than the limit and was killed.
    Slow(PathBuf, Duration),
    /// It wrote more than the limit and was killed.
    TooMuch(PathBuf),
    /// The connection to it failed.
    Io(PathBuf, io::Error),
    /// It ended with another code than 0.
    Failed(PathBuf, Output),
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |path: &Path| path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        match self {
            Self::Start(path, error) => write!(f, "{} cannot be started: {error}", name(path)),
            Self::Slow(path, limit) => write!(f, "{} did not end within {} s", name(path), limit.as_secs_f32()),
            Self::TooMuch(path) => write!(f, "{} wrote more than {MAX_OUTPUT} bytes", name(path)),
            Self::Io(path, error) => write!(f, "{}: {error}", name(path)),
            Self::Failed(path, output) => {
                let complaint: String = output.stderr.trim().chars().take(MAX_COMPLAINT).collect();
                match output.code {
                    Some(code) => write!(f, "{} ended with code {code}: {complaint}", name(path)),
                    None => write!(f, "{} was ended by a signal: {complaint}", name(path)),
                }
            }
        }
    }
}

impl std::error::Error for CommandError {}

impl Command {
    /// A program; a name without a slash is looked for in `PATH`. Its language is set to `C`, so that its texts can be read.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        let program = program.into();
        let mut command = std::process::Command::new(&program);
        command.env("LC_ALL", "C").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self { program, command, input: None, limit: DEFAULT_LIMIT }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.command.arg(argument);
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.command.args(arguments);
        self
    }

    /// What it reads from its standard input; without this it reads nothing.
    #[must_use]
    pub fn input(mut self, input: Secret<Zeroizing<String>>) -> Self {
        self.command.stdin(Stdio::piped());
        self.input = Some(input);
        self
    }

    /// Time until it is killed.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Runs it and gives what it wrote, whatever its exit code is.
    ///
    /// # Errors
    /// When it cannot be started, takes too long or writes too much.
    pub async fn output(mut self) -> Result<Output, CommandError> {
        let program = self.program;
        let child = self.command.spawn().map_err(|error| CommandError::Start(program.clone(), error))?;
        let mut guard = Guard(Some(child));
        let talking = guard.talk(self.input);
        match timeout(self.limit, talking).await {
            Err(_) => Err(CommandError::Slow(program, self.limit)),
            Ok(Err(error)) if error.kind() == io::ErrorKind::FileTooLarge => Err(CommandError::TooMuch(program)),
            Ok(Err(error)) => Err(CommandError::Io(program, error)),
            Ok(Ok((stdout, stderr))) => {
                let code = guard.reap().await.map_err(|error| CommandError::Io(program, error))?;
                let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
                Ok(Output { code, stdout: text(stdout), stderr: text(stderr) })
            }
        }
    }

    /// Runs it and gives its standard output.
    ///
    /// # Errors
    /// As [`Command::output`], and when it ends with another code than 0.
    pub async fn text(self) -> Result<String, CommandError> {
        let program = self.program.clone();
        let output = self.output().await?;
        if output.code == Some(0) { Ok(output.stdout) } else { Err(CommandError::Failed(program, output)) }
    }
}

/// A program that is killed when nobody waits for it any more.
struct Guard(Option<Child>);

impl Guard {
    async fn talk(&mut self, input: Option<Secret<Zeroizing<String>>>) -> io::Result<(Vec<u8>, Vec<u8>)> {
        let Some(child) = &mut self.0 else { return Err(io::ErrorKind::NotConnected.into()) };
        let stdout = child.stdout.take().map(OwnedFd::from);
        let stderr = child.stderr.take().map(OwnedFd::from);
        let stdin = child.stdin.take().map(OwnedFd::from);
        let write = async {
            if let (Some(pipe), Some(input)) = (stdin, input) {
                // A program that ends without reading tells why by its output and code.
                let _ = pipe::Sender::from_owned_fd(pipe)?.write_all(input.expose().as_bytes()).await;
            }
            Ok(())
        };
        let (stdout, stderr, ()) = tokio::try_join!(read_all(stdout), read_all(stderr), write)?;
        Ok((stdout, stderr))
    }

    /// Waits for a program that closed its outputs. It may go on without them, so that the time is limited here, too.
    async fn reap(&mut self) -> io::Result<Option<i32>> {
        let Some(mut child) = self.0.take() else { return Err(io::ErrorKind::NotConnected.into()) };
        if let Some(status) = child.try_wait()? {
            return Ok(status.code());
        }
        let waiting = tokio::task::spawn_blocking(move || child.wait());
        Ok(waiting.await.map_err(io::Error::other)??.code())
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            // A killed program ends at once, but its parent has to look.
            std::thread::spawn(move || child.wait());
        }
    }
}

async fn read_all(pipe: Option<OwnedFd>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        read_bounded(pipe::Receiver::from_owned_fd(pipe)?, &mut bytes).await?;
    }
    Ok(bytes)
}

async fn read_bounded(reader: impl AsyncRead + Unpin, bytes: &mut Vec<u8>) -> io::Result<()> {
    reader.take(MAX_OUTPUT as u64 + 1).read_to_end(bytes).await?;
    if bytes.len() > MAX_OUTPUT { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn sh(script: &str) -> Command {
        Command::new("sh").arg("-c").arg(script)
    }

    #[tokio::test]
    async fn outputs_input_and_code_come_through() {
        let output =
            sh("cat; echo $LC_ALL; echo no >&2; exit 3").input(Secret::new(Zeroizing::new("secret\n".to_owned()))).output().await.unwrap();
        assert_eq!(output, Output { code: Some(3), stdout: "secret\nC\n".into(), stderr: "no\n".into() });
        assert_eq!(sh("echo $0 \"$@\"").args(["a b", "$(id)"]).text().await.unwrap(), "a b $(id)\n");
        assert_eq!(sh("echo bad >&2; exit 1").text().await.unwrap_err().to_string(), "sh ended with code 1: bad");
        assert!(Command::new("/none/such").text().await.unwrap_err().to_string().starts_with("such cannot be started: "));
    }

    #[tokio::test]
    async fn slow_and_noisy_programs_are_killed() {
        let start = Instant::now();
        let error = Command::new("sleep").arg("60").limit(Duration::from_millis(50)).output().await.unwrap_err();
        assert!(matches!(error, CommandError::Slow(..)), "{error}");
        let error = sh("exec yes").output().await.unwrap_err();
        assert!(matches!(error, CommandError::TooMuch(_)), "{error}");
        assert!(start.elapsed() < Duration::from_secs(30));
    }

    #[tokio::test]
    async fn input_that_nobody_reads_is_no_fault() {
        let input = Secret::new(Zeroizing::new("x".repeat(1 << 20)));
        assert_eq!(sh("exec <&-; echo done").input(input).text().await.unwrap(), "done\n");
    }
}
