//! A system bus of its own with the systemd and the logind of python-dbusmock, which others wrote after the real ones.

use std::fs::File;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::wait;

const CONFIG: &str = r#"<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN" "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>unix:path=SOCKET</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*"/><allow receive_sender="*"/><allow own="*"/></policy></busconfig>"#;

/// Adds units, and the three methods that the package's systemd lacks.
const SET_UP: &str = "
import dbus, sys, time
bus = dbus.SystemBus()
while not all(bus.name_has_owner(name) for name in ('org.freedesktop.systemd1', 'org.freedesktop.login1')):
    time.sleep(0.02)
MANAGER = 'org.freedesktop.systemd1.Manager'
mock = dbus.Interface(bus.get_object('org.freedesktop.systemd1', '/org/freedesktop/systemd1'), 'org.freedesktop.DBus.Mock')
for name in sys.argv[1:]:
    mock.AddMockUnit(name)
rows = '''ret = dbus.Array([
    (name, name, 'loaded', objects[path].props['org.freedesktop.systemd1.Unit']['ActiveState'], 'sub', '',
     dbus.ObjectPath(path), dbus.UInt32(0), '', dbus.ObjectPath('/'))
    for name, path in self.units.items()], signature='(ssssssouso)')'''
mock.AddMethods(MANAGER, [
    ('Subscribe', '', '', ''),
    ('ListUnits', '', 'a(ssssssouso)', rows),
    ('RestartUnit', 'ss', 'o', 'self.StopUnit(args[0], args[1]); ret = self.StartUnit(args[0], args[1])'),
])
mock.AddProperties(MANAGER, {'Virtualization': ''})
";

/// A running bus with everything on it.
pub(crate) struct Bus {
    folder: TempDir,
    python: &'static str,
    processes: Vec<Child>,
}

impl Drop for Bus {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Bus {
    /// A bus whose systemd has these units; `None`, with a line that says so, where a part is missing.
    pub(crate) async fn start(units: &[&str]) -> Option<Self> {
        // Packages of distributions belong to the Python of the distribution.
        let has_mock = |python: &&str| {
            Command::new(python).args(["-c", "import dbus, dbusmock, gi"]).output().is_ok_and(|output| output.status.success())
        };
        let python = ["python3", "/usr/bin/python3"].into_iter().find(has_mock);
        let has_daemon = Command::new("dbus-daemon").arg("--version").output().is_ok();
        let Some(python) = python.filter(|_| has_daemon) else {
            println!("skipped: needs dbus-daemon and python-dbusmock");
            return None;
        };
        let mut bus = Self { folder: tempfile::tempdir().unwrap(), python, processes: Vec::new() };
        let config = CONFIG.replace("SOCKET", bus.folder.path().join("bus").to_str().unwrap());
        std::fs::write(bus.folder.path().join("config"), config).unwrap();
        bus.start_again(units).await;
        Some(bus)
    }

    /// Where the program finds it.
    pub(crate) fn address(&self) -> String {
        format!("unix:path={}/bus", self.folder.path().display())
    }

    /// Starts everything, also after [`Bus::kill`].
    pub(crate) async fn start_again(&mut self, units: &[&str]) {
        let config = format!("--config-file={}/config", self.folder.path().display());
        self.launch(Command::new("dbus-daemon").args([&config, "--nofork", "--nopidfile"]));
        let socket = self.folder.path().join("bus");
        wait::until("the bus opens", || async { std::os::unix::net::UnixStream::connect(&socket).is_ok() }, |opens| *opens).await;
        for template in ["systemd", "logind"] {
            let log = self.folder.path().join(template);
            self.launch(Command::new(self.python).args(["-m", "dbusmock", "--template", template, "-l"]).arg(log));
        }
        let mut set_up = Command::new(self.python);
        set_up.args(["-c", SET_UP]).args(units).env("DBUS_SYSTEM_BUS_ADDRESS", self.address());
        let mut set_up = set_up.stdin(Stdio::null()).spawn().unwrap();
        let done = || {
            let ended = set_up.try_wait().unwrap();
            async move { ended }
        };
        let status = wait::until("systemd and logind are there", done, Option::is_some).await;
        assert!(status.unwrap().success());
    }

    fn launch(&mut self, command: &mut Command) {
        let errors = File::options().create(true).append(true).open(self.folder.path().join("errors")).unwrap();
        command.env("DBUS_SYSTEM_BUS_ADDRESS", self.address()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
        self.processes.push(command.spawn().unwrap());
    }

    /// Ends everything without warning.
    pub(crate) fn kill(&mut self) {
        for mut process in self.processes.drain(..) {
            let _ = process.kill();
            let _ = process.wait();
        }
        let _ = std::fs::remove_file(self.folder.path().join("bus"));
    }

    /// What one of the two was asked to do: names of methods with their arguments, in order.
    pub(crate) fn calls(&self, template: &str) -> Vec<String> {
        let log = std::fs::read_to_string(self.folder.path().join(template)).unwrap();
        let calls = log.lines().filter_map(|line| line.split_once(' ')).map(|(_, call)| call);
        calls.filter(|call| !call.starts_with("emit ")).map(str::to_owned).collect()
    }
}
