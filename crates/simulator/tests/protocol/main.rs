//! The simulator as its clients see it: over a real unix socket.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests fail as tests do")]

mod client;
mod faults;
mod life;
mod requests;
mod status;

use std::path::PathBuf;
use std::time::Duration;

use client::{Client, DEADLINE};
use simulator::{Control, HostState, Options, Simulator};
use tempfile::TempDir;

/// A simulator in its own folder.
struct Bench {
    simulator: Simulator,
    control: Control,
    socket: PathBuf,
    folder: TempDir,
}

impl Bench {
    /// Starts a simulator, quick to be ready, at many times real speed.
    async fn start(change: impl FnOnce(&mut Options)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["comms", "gcodes"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        let socket = folder.path().join("comms/host.sock");
        let mut options = Options::new(&socket);
        options.startup = Duration::from_millis(20);
        options.restart_gap = Duration::from_millis(20);
        options.speed = 200.0;
        change(&mut options);
        let simulator = Simulator::start(options).await.unwrap();
        Self { control: simulator.control(), simulator, socket, folder }
    }

    /// A simulator that is ready.
    async fn ready() -> Self {
        let bench = Self::start(|_| {}).await;
        bench.wait_state(HostState::Ready).await;
        bench
    }

    async fn wait_state(&self, state: HostState) {
        self.wait(|s| s.state == state && s.listening).await;
    }

    async fn wait(&self, wanted: impl FnMut(&simulator::Snapshot) -> bool) {
        tokio::time::timeout(DEADLINE, self.control.wait_until(wanted)).await.expect("the printer never gets there").unwrap();
    }

    async fn connect(&self) -> Client {
        Client::connect(&self.socket).await
    }

    fn write_gcode(&self, name: &str, text: &str) {
        let path = self.folder.path().join("gcodes").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}
