//! Hosts that send rubbish, fall silent, die in the middle, or are replaced.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use protocol::FwhostState;
use serde_json::json;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

use crate::handle::FwHost;
use crate::options::Options;
use crate::quirks::Quirks;
use crate::session::{Lost, Session};
use crate::socket::Change;
use crate::testing::{Rig, settle};

#[tokio::test(start_paused = true)]
async fn rubbish_ends_the_connection() {
    let rubbish: [(&str, &str); 7] = [
        ("not json at all", "not JSON"),
        ("[1,2]", "neither answer nor call"),
        (r#"{"id":99999,"result":{}}"#, "never made"),
        (r#"{"id":"x","result":{}}"#, "never made"),
        (r#"{"result":{}}"#, "never made"),
        (r#"{"method":"STATUS","params":{"eventtime":1.0,"status":5}}"#, "malformed status"),
        (r#"{"method":"OUTPUT","params":{"response":7}}"#, "malformed gcode output"),
    ];
    for (text, reason) in rubbish {
        let mut rig = Rig::ready().await;
        let text = text.replace("STATUS", &rig.fake.status_method).replace("OUTPUT", &rig.fake.output_method);
        rig.fake.send(&text).await;
        let ending = timeout(Duration::from_millis(50), &mut rig.ending).await.unwrap().unwrap();
        assert!(ending.lost.is_fault() && ending.lost.to_string().contains(reason), "{text}: {}", ending.lost);
        assert_eq!(rig.events.count("Disconnected"), 1);
        assert_eq!(rig.host.status().state, FwhostState::Disconnected);
    }
}

#[tokio::test(start_paused = true)]
async fn oddities_that_are_no_rubbish() {
    let mut rig = Rig::ready().await;
    let batch_of_a_dump = r#"{"params":{"data":[[1.0,2]]}}"#;
    for text in ["", " \n", r#"{"method":"unknown","params":{}}"#, r#"{"params":{"data":[]},"method":"x","extra":1}"#, batch_of_a_dump] {
        rig.fake.send(text).await;
    }
    settle().await;
    assert!(!rig.ending.is_finished());
}

#[tokio::test(start_paused = true)]
async fn death_in_the_middle_of_a_message() {
    let mut rig = Rig::ready().await;
    rig.fake.send_unfinished(r#"{"id":5,"resu"#).await;
    let (_, _, ending) = rig.close().await;
    assert!(matches!(ending.lost, Lost::MidMessage));
}

#[tokio::test(start_paused = true)]
async fn a_silent_host_is_found_dead_by_its_heartbeat() {
    let mut rig = Rig::ready().await;
    let start = Instant::now();
    let ending = (&mut rig.ending).await.unwrap();
    assert!(matches!(&ending.lost, Lost::Silent(endpoint) if &**endpoint == "info"), "{}", ending.lost);
    let waited = start.elapsed();
    assert!(waited > Duration::from_secs(10) && waited < Duration::from_secs(13), "{waited:?}");
    assert_eq!(rig.events.count("Disconnected"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_host_with_nothing_to_say_lives_as_long_as_it_answers() {
    let mut rig = Rig::ready().await;
    for _ in 0..60 {
        sleep(Duration::from_secs(1)).await;
        rig.fake.answer_all().await;
    }
    assert!(!rig.ending.is_finished());
    let beats = rig.fake.asked("info").len();
    assert!((20..40).contains(&beats), "{beats}");
}

#[tokio::test(start_paused = true)]
async fn a_host_that_talks_needs_no_heartbeat() {
    let mut rig = Rig::ready().await;
    let before = rig.fake.asked("info").len();
    for index in 0..200 {
        sleep(Duration::from_millis(250)).await;
        rig.fake.push(json!({"toolhead": {"position": [index]}})).await;
    }
    rig.fake.answer_all().await;
    assert_eq!(rig.fake.asked("info").len(), before);
}

#[tokio::test(start_paused = true)]
async fn a_listener_that_never_answers_is_nobody() {
    let mut rig = Rig::new();
    let ending = (&mut rig.ending).await.unwrap();
    assert!(matches!(ending.lost, Lost::Silent(_)) && !ending.settled);
    assert!(rig.events.take().is_empty(), "nobody heard of it");

    let rig = Rig::new();
    let (_, events, ending) = rig.close().await;
    assert!(!ending.settled);
    assert!(events.take().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_pause_of_our_own_is_not_held_against_the_host() {
    let mut rig = Rig::ready().await;
    // The heart-beat is asked, and before its answer is written everything stands still for a minute.
    let asked = rig.fake.expect("info").await;
    tokio::time::advance(Duration::from_secs(60)).await;
    settle().await;
    assert!(!rig.ending.is_finished());
    rig.fake.answer_normally(&asked).await;
    rig.fake.answer_all().await;
    assert!(!rig.ending.is_finished());
}

#[tokio::test(start_paused = true)]
async fn a_replaced_socket_is_left_at_once() {
    let mut rig = Rig::ready().await;
    rig.changes.send(Change::Replaced).await.unwrap();
    let ending = timeout(Duration::from_millis(10), &mut rig.ending).await.unwrap().unwrap();
    assert!(matches!(ending.lost, Lost::Replaced) && !ending.lost.is_fault());
}

#[tokio::test(start_paused = true)]
async fn a_touched_socket_makes_the_host_prove_itself() {
    let mut rig = Rig::ready().await;
    rig.changes.send(Change::Touched).await.unwrap();
    rig.fake.answer_all().await;
    sleep(Duration::from_secs(1)).await;
    rig.fake.answer_all().await;
    assert!(!rig.ending.is_finished(), "it was only a change of permissions");

    let start = Instant::now();
    rig.changes.send(Change::Touched).await.unwrap();
    let ending = (&mut rig.ending).await.unwrap();
    assert!(matches!(ending.lost, Lost::Silent(_)));
    assert!(start.elapsed() < Duration::from_secs(4), "a zombie is left sooner than by the usual heart-beat");
}

/// A host that always has something to say, faster than anybody can listen, and never answers.
struct Chatter;

impl AsyncRead for Chatter {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        let coop = std::task::ready!(tokio::task::coop::poll_proceed(context));
        buffer.put_slice(b"{\"method\":\"unknown\"}\x03");
        coop.made_progress();
        Poll::Ready(Ok(()))
    }
}

#[tokio::test]
async fn a_host_that_never_stops_talking_does_not_stop_the_clock() {
    let mut options = Options::new("/nowhere", "Bowsprit", "v1");
    options.timing.poll = Duration::from_millis(2);
    options.timing.info_timeout = Duration::from_millis(20);
    let shared = FwHost::new(options).shared;
    let (_changes, mut changed) = mpsc::channel(1);
    let mut quirks = Quirks::default();
    let session = Session::new(&shared, &mut quirks).serve(Chatter, tokio::io::sink(), &mut changed);
    let ending = timeout(Duration::from_secs(10), session).await.unwrap();
    assert!(matches!(ending.lost, Lost::Silent(_)));
}

#[tokio::test(start_paused = true)]
async fn a_stopped_session_leaves_nobody_waiting_and_tells_no_story() {
    let mut rig = Rig::ready().await;
    let host = rig.host.clone();
    let call = tokio::spawn(async move { host.gcode("G28", false).await });
    rig.fake.expect("gcode/script").await;
    rig.events.take();
    rig.ending.abort();
    let error = call.await.unwrap().unwrap_err();
    assert_eq!(&*error.message, "Klippy Disconnected");
    assert!(rig.events.take().is_empty(), "nothing happened to the host");
    assert_eq!(rig.host.status().state, FwhostState::Disconnected);
}
