//! What only a process of its own can show: the global subscriber and the panic hook. One test, as both are global.

use std::fs;
use std::time::Duration;

use runtime::log::{self, LogOptions};
use runtime::{Supervisor, TaskTracker};

#[tokio::test(start_paused = true)]
async fn a_panic_of_a_task_is_in_the_log_with_its_place_and_its_task() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("logs").join("core.log");
    let logging = log::init(&LogOptions { file: Some(path.clone()), ..LogOptions::default() });
    assert_eq!((logging.warnings.len(), logging.handle.file()), (0, Some(&*path)));

    let supervisor = Supervisor::new();
    supervisor.spawn("hub", |_| async { lose_the_map() });
    let tracker: &TaskTracker = supervisor.tracker();
    tracker.spawn(async { tracing::info!("short work") });
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert!(supervisor.stop(Duration::from_secs(1)).await.is_clean());
    assert!(logging.handle.flush(Duration::from_secs(2)));

    let text = fs::read_to_string(&path).unwrap();
    let panic = text.lines().find(|line| line.contains("panic: lost the map location=")).unwrap();
    assert!(panic.contains(" ERROR ") && panic.contains("tests/process_log.rs:"), "{panic}");
    let failures: Vec<_> = text.lines().filter(|line| line.contains("task failed and will be restarted")).collect();
    assert_eq!(failures.len(), 1, "{text}");
    assert!(failures[0].contains("task=\"hub\"") && failures[0].contains("pause_ms=250"), "{}", failures[0]);
    assert!(text.contains("short work"));

    let again = log::init(&LogOptions::default());
    assert_eq!(again.warnings, ["Logging had been set up before; the new settings are not used."]);
}

#[expect(clippy::panic, reason = "the panic is what the test is about")]
fn lose_the_map() {
    panic!("lost the map");
}
