//! "Acknowledged means on disk": a writing process is killed without warning, and everything it was told to be stored
//! is still there. The process is this test program itself, started again with [`DATABASE`] set.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use store::{Key, Namespace, Namespaces, Store};
use tempfile::TempDir;

/// Environment variable that makes [`writing_process`] write; holds the path of the database.
const DATABASE: &str = "STORE_TEST_KILLED_DATABASE";

/// Environment variable with the round, which becomes part of the keys.
const ROUND: &str = "STORE_TEST_KILLED_ROUND";

const FRUIT: Namespace = Namespace::fixed("fruit");

/// Acknowledgements to wait for before the kill.
const ENOUGH: usize = 50;

/// Kills, one after the other on the same database: each hits another moment of a commit.
const ROUNDS: usize = 8;

/// Tasks that write at once, so that the kill hits commits of several jobs.
const WRITERS: usize = 8;

/// No test of its own: does nothing unless it is started by the test below. Then it writes until it is killed.
#[test]
fn writing_process() {
    let Some(path) = std::env::var_os(DATABASE).map(PathBuf::from) else { return };
    let round = std::env::var(ROUND).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    runtime.block_on(async move {
        let namespaces = Namespaces::new(Store::open(&path, &[]).unwrap().store);
        let writers: Vec<_> =
            (0..WRITERS).map(|writer| tokio::spawn(write_forever(namespaces.clone(), format!("r{round}w{writer}")))).collect();
        for writer in writers {
            writer.await.unwrap();
        }
    });
}

async fn write_forever(namespaces: Namespaces, writer: String) {
    for number in 0_u64.. {
        let key = Key::parse(&format!("{writer}n{number}")).unwrap();
        namespaces.save(&FRUIT, &key, &"x".repeat(500)).await.unwrap();
        // Not `println!`: the test harness would keep it back. One write call, so that lines do not mix.
        std::io::stdout().write_all(format!("ack {key}\n").as_bytes()).unwrap();
    }
}

/// Runs the writing process, kills it (SIGKILL on Unix) and returns the keys that it reported as acknowledged.
fn write_and_kill(path: &Path, round: usize) -> HashSet<String> {
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "killed::writing_process", "--nocapture", "--test-threads=1"])
        .env(DATABASE, path)
        .env(ROUND, round.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let mut acknowledged = HashSet::new();
    let mut collect = |line: String| acknowledged.extend(line.split_once("ack ").map(|(_, key)| key.to_owned()));
    lines.by_ref().take(ENOUGH).map_while(Result::ok).for_each(&mut collect);
    process.kill().unwrap();
    process.wait().unwrap();
    // What it reported between our decision and its end counts too. Lines are whole: pipes take short writes at once.
    let rest: Vec<_> = lines.map_while(Result::ok).collect();
    rest.into_iter().for_each(&mut collect);
    acknowledged
}

#[tokio::test]
async fn no_acknowledged_write_is_lost_when_the_process_is_killed() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("test.db");
    let mut acknowledged = HashSet::new();
    for round in 1..=ROUNDS {
        let before = acknowledged.len();
        acknowledged.extend(write_and_kill(&path, round));
        assert!(acknowledged.len() >= before + ENOUGH / 2, "round {round}: only {} acknowledged", acknowledged.len());

        let opened = Store::open(&path, &[]).unwrap();
        assert_eq!(opened.warnings, [""; 0]);
        let stored = Namespaces::new(opened.store.clone()).get(&FRUIT, None).await.unwrap();
        let stored: serde_json::Map<String, serde_json::Value> = serde_json::from_str(stored.get()).unwrap();
        let lost: Vec<_> = acknowledged.iter().filter(|key| !stored.contains_key(*key)).collect();
        assert!(lost.is_empty(), "round {round}: lost {lost:?}");
        opened.store.close().await;
    }
}
