//! The history against what the simulated printer really did, while the server or the firmware host dies at random moments. `BOWSPRIT_CRASHES=500`
//! asks for more rounds than the few of every run, `BOWSPRIT_SEED` repeats one.

use std::time::Duration;

use serde_json::Value;
use simulator::{Fault, PrintState};
use tokio::time::sleep;

use crate::harness::printer::{job, long_job};
use crate::harness::wait::until;
use crate::harness::{TestServer, within};
use crate::history::{finished, records};

/// Rounds of each test unless the environment asks for more.
const ROUNDS: u64 = 20;

/// Random numbers that a seed repeats (xorshift).
struct Dice(u64);

impl Dice {
    fn new() -> Self {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let seed = std::env::var("BOWSPRIT_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(now.as_nanos() as u64 | 1);
        println!("BOWSPRIT_SEED={seed}");
        Self(seed)
    }

    fn below(&mut self, limit: u64) -> u64 {
        for shift in [13_i32, -7, 17] {
            self.0 ^= if shift > 0 { self.0 << shift } else { self.0 >> -shift };
        }
        self.0 % limit
    }

    async fn a_while(&mut self, most_ms: u64) {
        sleep(Duration::from_millis(self.below(most_ms))).await;
    }
}

fn rounds() -> u64 {
    std::env::var("BOWSPRIT_CRASHES").ok().and_then(|count| count.parse().ok()).unwrap_or(ROUNDS)
}

/// How a print goes, with the status that its record must get.
const ENDINGS: [(&str, &str); 4] = [("short", "completed"), ("bad", "error"), ("cancelled", "cancelled"), ("paused", "completed")];

async fn prepared() -> TestServer {
    let server = TestServer::start().await;
    // The first record: from now on the server knows the printer.
    server.upload("first.gcode", &job(2)).await;
    server.printer().run_gcode("SDCARD_PRINT_FILE FILENAME=first.gcode").await.unwrap();
    finished(&server, 1).await;
    server
}

/// Prints a file of its own at the printer itself and waits for its end.
async fn print(server: &TestServer, name: &str, ending: &str, dice: u64) {
    let printer = server.printer();
    let gcode = match ending {
        "bad" => job(dice as u32 % 8).replace("M84", "NO_SUCH_COMMAND\nG1 X9999"),
        "cancelled" => long_job(),
        _ => job(8 + dice as u32 % 10),
    };
    std::fs::write(server.path("gcodes").join(name), gcode).unwrap();
    // The script fails when the file's first line does.
    let _ = printer.run_gcode(&format!("SDCARD_PRINT_FILE FILENAME={name}")).await;
    sleep(Duration::from_millis(dice % 300)).await;
    match ending {
        "cancelled" => printer.run_gcode("CANCEL_PRINT").await.unwrap(),
        "paused" => {
            let _ = printer.run_gcode("PAUSE").await;
            sleep(Duration::from_millis(dice % 200)).await;
            let _ = printer.run_gcode("RESUME").await;
        }
        _ => {}
    }
    let over = |state| !matches!(state, PrintState::Printing | PrintState::Paused | PrintState::Standby);
    within("the end of a print", printer.wait_until(|seen| over(seen.print_state) && seen.print_file == name)).await.unwrap();
}

/// The records are exactly these, and the totals are their sum.
async fn assert_history(server: &TestServer, expected: &[(String, &str)]) {
    let jobs = finished(server, expected.len()).await;
    let seen: Vec<_> = jobs.iter().map(|job| (job["filename"].as_str().unwrap(), job["status"].as_str().unwrap())).collect();
    let wanted: Vec<_> = expected.iter().map(|(name, status)| (name.as_str(), *status)).collect();
    assert_eq!(seen, wanted);
    let ids: Vec<_> = jobs.iter().map(|job| job["job_id"].as_str().unwrap()).collect();
    assert!(ids.windows(2).all(|pair| pair[0] < pair[1]), "{ids:?}");
    let totals = server.http().get("/server/history/totals").await.result()["job_totals"].take();
    let sum = |field: &str| jobs.iter().map(|job| job[field].as_f64().unwrap()).sum::<f64>();
    let longest = jobs.iter().map(|job| job["total_duration"].as_f64().unwrap()).fold(0.0, f64::max);
    assert_eq!(totals["total_jobs"], jobs.len());
    for (field, expected) in [
        ("total_time", sum("total_duration")),
        ("total_print_time", sum("print_duration")),
        ("total_filament_used", sum("filament_used")),
        ("longest_job", longest),
    ] {
        assert!((totals[field].as_f64().unwrap() - expected).abs() < 1e-6, "{field}: {totals}, expected {expected}");
    }
}

#[tokio::test]
async fn kill_9_at_any_moment_of_a_print_leaves_a_true_history() {
    let mut server = prepared().await;
    let mut dice = Dice::new();
    let mut expected = vec![("first.gcode".to_owned(), "completed")];
    for round in 0..rounds() {
        let (ending, status) = ENDINGS[dice.below(ENDINGS.len() as u64) as usize];
        let name = format!("r{round}-{ending}.gcode");
        let roll = dice.below(1000);
        let (pause, away) = (dice.below(700), dice.below(500));
        let crash = async {
            sleep(Duration::from_millis(pause)).await;
            kill(&server);
        };
        tokio::join!(print(&server, &name, ending, roll), crash);
        server.ended().await;
        sleep(Duration::from_millis(away)).await;
        server.start_again().await;
        expected.push((name, status));
        assert_history(&server, &expected).await;
    }
}

fn kill(server: &TestServer) {
    server.signal(rustix::process::Signal::KILL);
}

#[tokio::test]
async fn a_firmware_host_that_dies_at_any_moment_of_a_print_is_on_record() {
    let server = prepared().await;
    let mut dice = Dice::new();
    let mut expected = vec![("first.gcode".to_owned(), "completed")];
    let printer = server.printer();
    for round in 0..rounds() {
        server.wait_for_state("ready").await;
        let name = format!("r{round}.gcode");
        std::fs::write(server.path("gcodes").join(&name), long_job()).unwrap();
        printer.run_gcode(&format!("SDCARD_PRINT_FILE FILENAME={name}")).await.unwrap();
        let open = |jobs: &Vec<Value>| jobs.last().is_some_and(|job| job["filename"] == name.as_str());
        until("the record", || records(&server), open).await;
        dice.a_while(400).await;
        if dice.below(2) == 0 {
            printer.inject(Fault::Die).await.unwrap();
            expected.push((name, "klippy_disconnect"));
            assert_history(&server, &expected).await;
            printer.clear_all().await.unwrap();
            printer.revive().await.unwrap();
        } else {
            printer.shutdown("a test").await.unwrap();
            expected.push((name, "klippy_shutdown"));
            assert_history(&server, &expected).await;
            printer.restart(true).await.unwrap();
        }
    }
}
