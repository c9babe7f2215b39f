//! A server process of its own for every test: temporary data folder, free port, simulated printer beside it.

use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use simulator::{Control, Fault, Options, Simulator};
use tempfile::TempDir;

use super::http::Http;
use super::rpc::Rpc;
use super::unix::Unix;
use super::wait;
use super::ws::{Bridge, Frames, Ws};

/// The program under test.
pub(crate) const BOWSPRIT: &str = env!("CARGO_BIN_EXE_bowsprit");

/// Times another port is tried when somebody took ours between choosing and binding.
const PORT_ATTEMPTS: u32 = 5;

const TRUST_LOOPBACK: &str = "[authorization]\ntrusted_clients:\n    127.0.0.1\n";

/// Fills a data folder.
type Prepare = Box<dyn FnOnce(&Path)>;
/// From the data folder to the words before the program: strace, unshare.
type Wrapper = Box<dyn Fn(&Path) -> Vec<String>>;

/// What a server is started with.
pub(crate) struct Builder {
    config_name: &'static str,
    server: String,
    authorization: String,
    speed: f64,
    faults: Vec<Fault>,
    has_simulator: bool,
    args: Vec<String>,
    prepare: Option<Prepare>,
    wrapper: Option<Wrapper>,
}

impl Builder {
    /// Another name of the configuration file.
    pub(crate) fn config_name(mut self, name: &'static str) -> Self {
        self.config_name = name;
        self
    }

    /// A further line in `[server]`, or further sections.
    pub(crate) fn config(mut self, text: &str) -> Self {
        self.server.push_str(text);
        self.server.push('\n');
        self
    }

    /// Another `[authorization]` section than the one that trusts loopback; empty for none.
    pub(crate) fn authorization(mut self, text: &str) -> Self {
        self.authorization = text.to_owned();
        self
    }

    /// How much faster than a real printer the simulated one is.
    pub(crate) fn speed(mut self, speed: f64) -> Self {
        self.speed = speed;
        self
    }

    /// A fault from the start.
    pub(crate) fn fault(mut self, fault: Fault) -> Self {
        self.faults.push(fault);
        self
    }

    /// No firmware host at all.
    pub(crate) fn without_printer(mut self) -> Self {
        self.has_simulator = false;
        self
    }

    /// Arguments of `serve` besides the data folder; by default, no log file is written.
    pub(crate) fn args(mut self, args: &[&str]) -> Self {
        self.args = args.iter().map(ToString::to_string).collect();
        self
    }

    /// Fills the data folder before the first start.
    pub(crate) fn prepare(mut self, prepare: impl FnOnce(&Path) + 'static) -> Self {
        self.prepare = Some(Box::new(prepare));
        self
    }

    /// Runs the program under another one, which may stand under others. It must replace itself by the program, so that signals reach it.
    pub(crate) fn under(mut self, wrapper: impl Fn(&Path) -> Vec<String> + 'static) -> Self {
        let inner = self.wrapper.take();
        self.wrapper = Some(Box::new(move |folder| {
            let inner = inner.as_ref().map(|inner| inner(folder)).unwrap_or_default();
            [wrapper(folder), inner].concat()
        }));
        self
    }

    /// Starts everything; returns when the server answers, and when the printer is ready if it can become so.
    pub(crate) async fn start(self) -> TestServer {
        let folder = tempfile::Builder::new().prefix("bowsprit-e2e-").tempdir().unwrap();
        for name in ["config", "gcodes", "comms"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        let becomes_ready = self.has_simulator && self.faults.is_empty();
        let simulator = if self.has_simulator { Some(start_simulator(folder.path(), self.speed, self.faults).await) } else { None };
        if let Some(prepare) = self.prepare {
            prepare(folder.path());
        }
        let config = ConfigFile {
            path: folder.path().join("config").join(self.config_name),
            server: self.server,
            authorization: self.authorization,
        };
        let wrapper = self.wrapper;
        let mut server = TestServer { folder, port: 0, child: None, simulator, args: self.args, config, wrapper };
        server.spawn_on_a_free_port().await;
        if becomes_ready {
            server.wait_for_state("ready").await;
        }
        server
    }
}

async fn start_simulator(folder: &Path, speed: f64, faults: Vec<Fault>) -> Simulator {
    let quick = std::time::Duration::from_millis(50);
    let socket = folder.join("comms/firmware.sock");
    let log_file = Some(folder.join("logs/klippy.log"));
    Simulator::start(Options { speed, startup: quick, restart_gap: quick, faults, log_file, ..Options::new(socket) }).await.unwrap()
}

struct ConfigFile {
    path: PathBuf,
    server: String,
    authorization: String,
}

impl ConfigFile {
    fn text(&self, port: u16) -> String {
        let (server, authorization) = (&self.server, &self.authorization);
        let fixed = format!("[server]\nhost: 127.0.0.1\nport: {port}\nfwhost_uds_address: {{data_path}}/comms/firmware.sock\n");
        // Tests ask nobody outside of this machine.
        let feeds = if server.contains("[announcements]") { "" } else { "[announcements]\nenable_remote_feeds: false\n" };
        // Nor may they switch off the machine that they run on.
        let machine = if server.contains("[machine]") { "" } else { "[machine]\nprovider: none\n" };
        format!("{fixed}{server}\n{authorization}\n{feeds}{machine}")
    }
}

/// A running server with what belongs to it. Dropping it kills the process and removes the folder.
pub(crate) struct TestServer {
    folder: TempDir,
    pub(crate) port: u16,
    child: Option<Child>,
    simulator: Option<Simulator>,
    args: Vec<String>,
    config: ConfigFile,
    wrapper: Option<Wrapper>,
}

impl TestServer {
    pub(crate) fn builder() -> Builder {
        Builder {
            config_name: "bowsprit.conf",
            server: String::new(),
            authorization: TRUST_LOOPBACK.to_owned(),
            speed: 50.0,
            faults: Vec::new(),
            has_simulator: true,
            args: vec!["-n".to_owned()],
            prepare: None,
            wrapper: None,
        }
    }

    /// A server that trusts loopback, with a ready printer.
    pub(crate) async fn start() -> Self {
        Self::builder().start().await
    }

    /// A server that trusts loopback, without a printer.
    pub(crate) async fn without_printer() -> Self {
        Self::builder().without_printer().start().await
    }

    async fn spawn_on_a_free_port(&mut self) {
        for _ in 0..PORT_ATTEMPTS {
            self.port = free_port();
            std::fs::write(&self.config.path, self.config.text(self.port)).unwrap();
            self.spawn();
            if self.answers().await {
                return;
            }
            assert!(self.stderr().contains("cannot listen"), "the server did not start:\n{}", self.stderr());
        }
        panic!("no free port");
    }

    fn spawn(&mut self) {
        let stderr = File::options().create(true).append(true).open(self.stderr_path()).unwrap();
        let mut words = self.wrapper.as_ref().map(|wrapper| wrapper(self.folder.path())).unwrap_or_default();
        words.push(BOWSPRIT.to_owned());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).arg("serve").arg("-d").arg(self.folder.path()).args(&self.args);
        self.child = Some(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr).spawn().unwrap());
    }

    /// Waits until the server answers (true) or its process has ended (false).
    async fn answers(&mut self) -> bool {
        let http = self.http();
        let child = std::cell::RefCell::new(self.child.as_mut().unwrap());
        let look = || async {
            match child.borrow_mut().try_wait().unwrap() {
                Some(_) => Some(false),
                // A stranger is answered, too, only differently.
                None => http.try_send("GET", "/server/info", &[], b"").await.map(|_| true),
            }
        };
        wait::until("the server answers", look, Option::is_some).await == Some(true)
    }

    /// Ends the process with SIGTERM and gives its exit code.
    pub(crate) async fn stop(&mut self) -> Option<i32> {
        self.signal(Signal::TERM);
        self.ended().await
    }

    /// Ends the process without any warning.
    pub(crate) async fn kill9(&mut self) {
        self.signal(Signal::KILL);
        self.ended().await;
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.pid().cast_signed()).unwrap(), signal).unwrap();
    }

    /// Waits for the end of the process; gives its exit code, if it was not killed.
    pub(crate) async fn ended(&mut self) -> Option<i32> {
        let child = std::cell::RefCell::new(self.child.as_mut().unwrap());
        let status = wait::until("the process ends", || async { child.borrow_mut().try_wait().unwrap() }, Option::is_some).await;
        status.unwrap().code()
    }

    /// Starts the process again, after its end.
    pub(crate) async fn start_again(&mut self) {
        self.spawn();
        assert!(self.answers().await, "the server did not start again:\n{}", self.stderr());
    }

    /// Stops and starts the process.
    pub(crate) async fn restart(&mut self) {
        assert_eq!(self.stop().await, Some(0), "{}", self.stderr());
        self.start_again().await;
    }

    /// True while the process lives.
    pub(crate) fn is_alive(&mut self) -> bool {
        self.child.as_mut().is_some_and(|child| child.try_wait().unwrap().is_none())
    }

    /// Resident memory of the process in KiB.
    pub(crate) fn resident_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    }

    /// Id of the process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    /// Writes the configuration anew; it counts from the next start on.
    pub(crate) fn write_config(&self, edit: impl Fn(String) -> String) {
        std::fs::write(&self.config.path, edit(self.config.text(self.port))).unwrap();
    }

    /// A path below the data folder.
    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.folder.path().join(relative)
    }

    fn stderr_path(&self) -> PathBuf {
        self.path("stderr.txt")
    }

    /// What the process has written to standard error so far.
    pub(crate) fn stderr(&self) -> String {
        std::fs::read_to_string(self.stderr_path()).unwrap_or_default()
    }

    /// Steers the simulated printer.
    pub(crate) fn printer(&self) -> Control {
        self.simulator.as_ref().unwrap().control()
    }

    pub(crate) fn http(&self) -> Http {
        Http { port: self.port }
    }

    pub(crate) async fn ws(&self) -> Ws {
        self.try_ws(&[]).await.unwrap()
    }

    /// A websocket with further headers; a refusal gives its HTTP status.
    pub(crate) async fn try_ws(&self, headers: &[(&str, &str)]) -> Result<Ws, u16> {
        Frames::open(self.port, "/websocket", headers).await.map(Rpc::over)
    }

    pub(crate) async fn try_ws_at(&self, path: &str, headers: &[(&str, &str)]) -> Result<Ws, u16> {
        Ok(Rpc::over(Frames::open(self.port, path, headers).await?))
    }

    pub(crate) async fn bridge(&self) -> Result<Bridge, u16> {
        self.bridge_at("/fwhostsocket").await
    }

    pub(crate) async fn bridge_at(&self, path: &str) -> Result<Bridge, u16> {
        Frames::open(self.port, path, &[]).await.map(Bridge)
    }

    /// A bridge whose opener shows these headers.
    pub(crate) async fn bridge_with(&self, headers: &[(&str, &str)]) -> Result<Bridge, u16> {
        Frames::open(self.port, "/fwhostsocket", headers).await.map(Bridge)
    }

    pub(crate) async fn unix(&self) -> Unix {
        Unix::connect(&self.path("comms/core.sock")).await
    }

    /// Server info, over the unix socket, which needs no trust.
    pub(crate) async fn info(&self) -> Value {
        self.unix().await.ok("server.info", serde_json::json!({})).await
    }

    /// Waits until the firmware host's state is `state`.
    pub(crate) async fn wait_for_state(&self, state: &str) -> Value {
        wait::until(&format!("state {state}"), || self.info(), |info| info["klippy_state"] == state).await
    }

    /// Uploads a gcode file that must be accepted.
    pub(crate) async fn upload(&self, name: &str, gcode: &str) {
        let reply = self.http().upload(super::Form::default().file(name, gcode.as_bytes())).await;
        assert_eq!(reply.status, 201, "{}", reply.text());
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
        if std::thread::panicking() {
            // The test's own output: nextest shows it with the failure.
            println!("--- standard error of the server ---\n{}", self.stderr());
        }
    }
}

/// Names of all files below a folder, hidden ones too.
pub(crate) fn files_below(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let names = |path: PathBuf| match path.is_dir() {
        true => files_below(&path),
        false => vec![path.file_name().unwrap().to_string_lossy().into_owned()],
    };
    entries.flat_map(names).collect()
}

/// A port that was free a moment ago.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}
