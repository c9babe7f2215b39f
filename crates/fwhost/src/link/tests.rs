//! The link over real unix sockets, with shortened intervals.

use std::path::PathBuf;
use std::time::Duration;

use protocol::FwhostState;
use tempfile::TempDir;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::handle::FwHost;
use crate::options::{Options, Timing};
use crate::testing::{Events, FakeHost, until};

/// A running link and the place where hosts listen.
struct Place {
    _folder: TempDir,
    socket: PathBuf,
    host: FwHost,
    events: Events,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

fn short() -> Timing {
    let ms = Duration::from_millis;
    Timing {
        poll: ms(5),
        backoff_max: ms(40),
        heartbeat: ms(40),
        info_timeout: ms(200),
        probe_timeout: ms(60),
        drain: ms(50),
        sample: ms(10),
        ..Timing::default()
    }
}

impl Place {
    fn new(timing: Timing) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("fwhost.sock");
        let host = FwHost::new(Options { timing, ..Options::new(&socket, "Bowsprit", "v1") });
        let events = Events::of(&host);
        let stop = CancellationToken::new();
        let (runner, token) = (host.clone(), stop.clone());
        let task = tokio::spawn(async move { runner.run(token).await });
        Self { _folder: folder, socket, host, events, stop, task }
    }

    fn listen(&self) -> UnixListener {
        let _ = std::fs::remove_file(&self.socket);
        UnixListener::bind(&self.socket).unwrap()
    }

    async fn accept(listener: &UnixListener) -> FakeHost<UnixStream> {
        FakeHost::new(listener.accept().await.unwrap().0)
    }

    async fn is(&self, state: FwhostState) {
        until(state.as_str(), || self.host.status().state == state).await;
    }

    async fn end(self) {
        self.stop.cancel();
        tokio::time::timeout(Duration::from_secs(5), self.task).await.unwrap().unwrap();
    }
}

/// Answers in the background until the connection ends or the task is aborted.
fn serve(mut fake: FakeHost<UnixStream>) -> JoinHandle<()> {
    tokio::spawn(async move { fake.serve().await })
}

#[tokio::test]
async fn hosts_come_and_go() {
    let place = Place::new(short());
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(place.host.status().state, FwhostState::Disconnected);
    for round in 1..=3 {
        let listener = place.listen();
        let host = serve(Place::accept(&listener).await);
        place.is(FwhostState::Ready).await;
        until("a sample", || place.host.temperature_store(false).contains("21.5")).await;
        host.abort();
        drop(listener);
        place.is(FwhostState::Disconnected).await;
        until("told", || place.events.count("Disconnected") == round).await;
        assert_eq!(place.events.count("Ready"), round);
    }
    let temperatures = place.host.temperature_store(false);
    let temperatures: serde_json::Value = serde_json::from_str(&temperatures).unwrap();
    let series = temperatures["extruder"]["temperatures"].as_array().unwrap();
    assert!(!series.is_empty() && series.iter().all(|value| *value == 21.5));
    place.end().await;
}

#[tokio::test]
async fn a_killed_host_leaves_its_socket_file_and_the_next_one_is_found_soon() {
    let place = Place::new(Timing { backoff_max: Duration::from_secs(60), ..short() });
    drop(place.listen());
    // Long enough for several refused attempts: the pause has grown far beyond the deadline below.
    tokio::time::sleep(Duration::from_millis(150)).await;
    let listener = place.listen();
    let host = tokio::time::timeout(Duration::from_secs(2), Place::accept(&listener)).await.unwrap();
    let host = serve(host);
    place.is(FwhostState::Ready).await;
    host.abort();
    place.end().await;
}

#[tokio::test]
async fn a_dying_listener_is_nobody() {
    let place = Place::new(short());
    let listener = place.listen();
    for _ in 0..3 {
        drop(listener.accept().await.unwrap());
    }
    let host = serve(Place::accept(&listener).await);
    place.is(FwhostState::Ready).await;
    assert_eq!(place.events.count("Disconnected"), 0);
    host.abort();
    place.end().await;
}

#[tokio::test]
async fn a_zombie_is_left_for_the_host_that_listens_now() {
    // No heart-beat within the test: the socket file alone must tell.
    let never = Duration::from_secs(600);
    let place = Place::new(Timing { heartbeat: never, info_timeout: never, second_look: never, ..short() });
    let listener = place.listen();
    let mut zombie = Place::accept(&listener).await;
    zombie.bring_up().await;
    place.is(FwhostState::Ready).await;
    // Restarted in the same process: the old connection stays open and silent, the path has a new listener.
    let pending = {
        let host = place.host.clone();
        tokio::spawn(async move { host.gcode("FIRMWARE_RESTART", false).await })
    };
    zombie.answer_until("gcode/script").await;
    let listener = place.listen();
    let host = serve(Place::accept(&listener).await);
    until("ready again", || place.events.count("Ready") == 2).await;
    assert_eq!(place.events.count("Disconnected"), 1);
    assert_eq!(&*pending.await.unwrap().unwrap_err().message, "Klippy Disconnected");
    host.abort();
    place.end().await;
}

#[tokio::test]
async fn a_hanging_host_is_left_and_joined_again() {
    let place = Place::new(short());
    let listener = place.listen();
    let mut hanging = Place::accept(&listener).await;
    hanging.bring_up().await;
    place.is(FwhostState::Ready).await;
    // It keeps the connection and answers no more.
    place.is(FwhostState::Disconnected).await;
    let host = serve(Place::accept(&listener).await);
    until("ready again", || place.events.count("Ready") == 2).await;
    host.abort();
    place.end().await;
}

#[tokio::test]
async fn rubbish_is_no_reason_to_give_up() {
    let place = Place::new(short());
    let listener = place.listen();
    for _ in 0..3 {
        let mut mad = Place::accept(&listener).await;
        mad.send("}{").await;
    }
    let host = serve(Place::accept(&listener).await);
    place.is(FwhostState::Ready).await;
    host.abort();
    place.end().await;
}

#[tokio::test]
async fn stopping_answers_everybody() {
    let place = Place::new(short());
    let listener = place.listen();
    let mut fake = Place::accept(&listener).await;
    fake.bring_up().await;
    place.is(FwhostState::Ready).await;
    let host = place.host.clone();
    let call = tokio::spawn(async move { host.gcode("G28", false).await });
    fake.answer_until("gcode/script").await;
    let (host, events) = (place.host.clone(), place.events.clone());
    place.end().await;
    assert_eq!(&*call.await.unwrap().unwrap_err().message, "Klippy Disconnected");
    assert_eq!(host.status().state, FwhostState::Disconnected);
    assert_eq!(events.count("Disconnected"), 0, "our own end is no event of the host");
}
