//! System calls of the program under test, as strace saw them: in which order things reached the disk and the client.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::TestServer;
use super::server::Builder;
use super::wait::until;

const CALLS: &str = "openat,openat2,write,pwrite64,writev,sendto,sendmsg,fsync,fdatasync,rename,renameat,renameat2,mkdir,mkdirat,unlink,unlinkat,rmdir,symlink,symlinkat,copy_file_range,sendfile";
const FILE: &str = "strace.txt";

/// A finished call.
#[derive(Debug)]
pub(crate) struct Step {
    /// `name(arguments) = result`; files that are open show as `number</path>`.
    text: String,
    /// Lines in which it began and ended.
    began: usize,
    ended: usize,
}

/// What to look for: name of the call (any of several, with `|` between) and a part of its text.
pub(crate) type Wanted<'w> = (&'w str, &'w str);

impl Step {
    fn is(&self, (names, part): Wanted<'_>) -> bool {
        self.text.contains(part) && names.split('|').any(|name| self.text.strip_prefix(name).is_some_and(|rest| rest.starts_with('(')))
    }
}

/// True when programs may be traced here; says so when not.
pub(crate) fn can_trace() -> bool {
    let can = Command::new("strace").args(["-D", "-o", "/dev/null", "true"]).output().is_ok_and(|output| output.status.success());
    if !can {
        println!("skipped: strace is not installed, or may not trace");
    }
    can
}

/// Traces the program from its start.
pub(crate) fn traced(builder: Builder) -> Builder {
    builder.under(|folder| {
        let output = output(folder);
        let words = ["strace", "-D", "-f", "-y", "-s", "64", "--seccomp-bpf", "-o", &output.to_string_lossy(), "-e"];
        words.into_iter().map(str::to_owned).chain([format!("trace={CALLS}")]).collect()
    })
}

fn output(folder: &Path) -> PathBuf {
    folder.join(FILE)
}

/// Stops the program and gives its calls.
pub(crate) async fn steps(server: &mut TestServer) -> Vec<Step> {
    assert_eq!(server.stop().await, Some(0));
    let read = || async { std::fs::read_to_string(server.path(FILE)).unwrap() };
    let pid = server.pid().to_string();
    let is_end = |line: &str| line.split_once(' ').is_some_and(|(of, what)| of == pid && what.trim_start().starts_with("+++ exited"));
    parse(&until("the end of the trace", read, |text| text.lines().any(is_end)).await)
}

fn parse(text: &str) -> Vec<Step> {
    let (mut steps, mut begun) = (Vec::new(), std::collections::HashMap::new());
    for (number, line) in text.lines().enumerate() {
        let Some((pid, call)) = line.split_once(' ') else { continue };
        let call = call.trim_start();
        if let Some(call) = call.strip_suffix("<unfinished ...>") {
            begun.insert(pid, (call.to_owned(), number));
        } else if let Some((_, rest)) = call.strip_prefix("<... ").and_then(|call| call.split_once(" resumed>")) {
            let Some((start, began)) = begun.remove(pid) else { continue };
            steps.push(Step { text: start + rest, began, ended: number });
        } else {
            steps.push(Step { text: call.to_owned(), began: number, ended: number });
        }
    }
    steps
}

/// Finds these calls, each begun after the one before has ended successfully.
pub(crate) fn assert_order(steps: &[Step], wanted: &[Wanted<'_>]) {
    let mut after = None;
    for one in wanted {
        let is_next = |step: &&Step| step.is(*one) && !step.text.contains(" = -1 ") && after.is_none_or(|after| step.began > after);
        let Some(step) = steps.iter().find(is_next) else {
            let all: Vec<_> = steps.iter().filter(|step| step.text.contains("bowsprit-e2e")).map(|step| &step.text).collect();
            panic!("{one:?} is missing after line {after:?} of {wanted:?} in {all:#?}");
        };
        after = Some(step.ended);
    }
}

/// Asserts that after the first call nothing like the second follows.
pub(crate) fn assert_not_after(steps: &[Step], first: Wanted<'_>, never: Wanted<'_>) {
    let done = steps.iter().find(|step| step.is(first)).unwrap_or_else(|| panic!("no {first:?}"));
    let late: Vec<_> = steps.iter().filter(|step| step.is(never) && step.ended > done.began).collect();
    assert!(late.is_empty(), "{late:?} after {done:?}");
}

#[test]
fn calls_are_put_together() {
    let text = "7 write(3</a>, \"x\", 1 <unfinished ...>\n8 fsync(4</b>) = 0\n7 <... write resumed>) = 1\n7 fsync(3</a>)     = 0\n";
    let steps = parse(text);
    assert_eq!(steps[1].text, "write(3</a>, \"x\", 1 ) = 1");
    assert_order(&steps, &[("write", "</a>"), ("fsync", "</a>")]);
    assert_order(&steps, &[("fsync", "</b>"), ("fdatasync|fsync", "</a>")]);
    assert!(std::panic::catch_unwind(|| assert_order(&parse(text), &[("write", "</a>"), ("fsync", "</b>")])).is_err());
}
