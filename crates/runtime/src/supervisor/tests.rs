//! Scenarios in virtual time: pauses and deadlines cost nothing.

use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::task::yield_now;

use super::*;

type Failed = Result<(), &'static str>;

/// Lets all tasks run until each of them waits for something.
async fn settle() {
    for _ in 0..20 {
        yield_now().await;
    }
}

fn only(supervisor: &Supervisor) -> TaskReport {
    let mut report = supervisor.report();
    assert_eq!(report.len(), 1, "{report:?}");
    report.remove(0)
}

/// A supervisor with a task `name` that fails at each start, and the count of its starts.
fn with_failing_task(name: &str, fail: impl Fn() -> Failed + Clone + Send + 'static) -> (Supervisor, Arc<AtomicUsize>) {
    let (supervisor, starts) = (Supervisor::new(), Arc::new(AtomicUsize::new(0)));
    let counted = starts.clone();
    supervisor.spawn(name, move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        let fail = fail.clone();
        async move { fail() }
    });
    (supervisor, starts)
}

#[tokio::test(start_paused = true)]
async fn a_task_runs_until_it_is_stopped_and_then_is_forgotten() {
    let supervisor = Supervisor::new();
    supervisor.spawn("pump", |stop| async move { stop.cancelled().await });
    settle().await;
    let task = only(&supervisor);
    assert_eq!((&*task.name, task.state, task.restarts), ("pump", TaskState::Running, 0));

    assert!(supervisor.stop(Duration::from_secs(5)).await.is_clean());
    assert!(supervisor.report().is_empty());
    assert!(supervisor.stop_token().is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn a_task_that_returns_is_done() {
    let supervisor = Supervisor::new();
    supervisor.spawn("short", |_| async { Failed::Ok(()) });
    supervisor.spawn_once("once", async {});
    settle().await;
    assert!(supervisor.report().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_error_and_a_panic_restart_after_a_pause() {
    for (fail, text) in
        [((|| Err("no printer")) as fn() -> Failed, "no printer"), ((|| panic!("index {}", 7)) as fn() -> Failed, "panic: index 7")]
    {
        let (supervisor, starts) = with_failing_task("link", fail);
        settle().await;
        let task = only(&supervisor);
        assert_eq!((task.state, task.restarts, task.last_failure.as_deref()), (TaskState::Pausing, 0, Some(text)));

        sleep(FIRST_DELAY).await;
        settle().await;
        assert_eq!(only(&supervisor).restarts, 1);
        assert_eq!(starts.load(Ordering::Relaxed), 2);
        let begun = Instant::now();
        assert!(supervisor.stop(Duration::from_secs(1)).await.is_clean());
        assert_eq!(begun.elapsed(), Duration::ZERO, "a pause ends at the stop");
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_the_factory_counts_like_one_of_its_future() {
    let supervisor = Supervisor::new();
    supervisor.spawn("maker", |_| -> std::future::Ready<()> { panic!("cannot make") });
    settle().await;
    assert_eq!(only(&supervisor).last_failure.as_deref(), Some("panic: cannot make"));
}

#[tokio::test(start_paused = true)]
async fn patience_ends_and_the_failure_stays_visible() {
    let (supervisor, starts) = with_failing_task("hopeless", || Err("broken"));
    sleep(WINDOW).await;
    let task = only(&supervisor);
    assert_eq!((task.state, task.restarts), (TaskState::Failed, MAX_RESTARTS as u64));
    assert_eq!(task.last_failure.as_deref(), Some("broken"));
    assert_eq!(starts.load(Ordering::Relaxed), 1 + MAX_RESTARTS);

    assert!(supervisor.stop(Duration::from_secs(1)).await.is_clean(), "a failed task holds nobody up");
    assert_eq!(only(&supervisor).state, TaskState::Failed);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_recovers_runs_on() {
    let (supervisor, starts) = (Supervisor::new(), Arc::new(AtomicUsize::new(0)));
    let counted = starts.clone();
    supervisor.spawn("flaky", move |stop| {
        let start = counted.fetch_add(1, Ordering::Relaxed);
        async move {
            if start < 3 {
                return Err("not yet");
            }
            stop.cancelled().await;
            Ok(())
        }
    });
    sleep(Duration::from_secs(60)).await;
    let task = only(&supervisor);
    assert_eq!((task.state, task.restarts, starts.load(Ordering::Relaxed)), (TaskState::Running, 3, 4));
}

#[tokio::test(start_paused = true)]
async fn work_that_runs_once_fails_once() {
    let supervisor = Supervisor::new();
    supervisor.spawn_once("import", async { Failed::Err("no such file") });
    sleep(WINDOW).await;
    let task = only(&supervisor);
    assert_eq!((task.state, task.restarts, task.last_failure.as_deref()), (TaskState::Failed, 0, Some("no such file")));
}

#[tokio::test(start_paused = true)]
async fn failures_are_remembered_within_limits() {
    let supervisor = Supervisor::new();
    for number in 0..MAX_FAILED + 10 {
        supervisor.spawn_once(format!("{number}"), async { Err("é".repeat(10_000)) });
    }
    settle().await;
    let report = supervisor.report();
    assert_eq!((report.len(), &*report[0].name), (MAX_FAILED, "10"));
    assert_eq!(report[0].last_failure.as_ref().unwrap().chars().count(), MAX_FAILURE_CHARS);
}

#[tokio::test(start_paused = true)]
async fn one_task_can_be_stopped_alone() {
    let supervisor = Supervisor::new();
    let first = supervisor.spawn("first", |stop| async move { stop.cancelled().await });
    supervisor.spawn("second", |stop| async move { stop.cancelled().await });
    first.cancel();
    settle().await;
    assert_eq!(&*only(&supervisor).name, "second");
}

#[tokio::test(start_paused = true)]
async fn the_deadline_names_and_aborts_who_is_left() {
    struct Flag(Arc<AtomicUsize>);
    impl Drop for Flag {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let (supervisor, dropped) = (Supervisor::new(), Arc::new(AtomicUsize::new(0)));
    let held = Flag(dropped.clone());
    supervisor.spawn("good", |stop| async move { stop.cancelled().await });
    supervisor.spawn("deaf", |_| pending::<()>());
    supervisor.spawn_once("deaf once", async move {
        let _held = held;
        pending::<()>().await;
    });
    supervisor.tracker().spawn(pending::<()>());
    settle().await;

    let begun = Instant::now();
    let report = supervisor.stop(Duration::from_secs(5)).await;
    assert_eq!(begun.elapsed().as_secs(), 5);
    assert_eq!(report, StopReport { aborted: vec!["deaf".into(), "deaf once".into()], left_running: 1 });
    assert_eq!(dropped.load(Ordering::Relaxed), 1, "an aborted task lets go before the stop returns");
    assert!(supervisor.report().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_stop_waits_for_what_still_works() {
    let (supervisor, done) = (Supervisor::new(), Arc::new(Mutex::new(Vec::new())));
    let (by_task, by_once, by_short) = (done.clone(), done.clone(), done.clone());
    supervisor.spawn("saver", move |stop| {
        let done = by_task.clone();
        async move {
            stop.cancelled().await;
            sleep(Duration::from_secs(1)).await;
            done.lock().push("task");
        }
    });
    supervisor.spawn_once("upload", async move {
        sleep(Duration::from_secs(2)).await;
        by_once.lock().push("once");
    });
    supervisor.tracker().spawn(async move {
        sleep(Duration::from_secs(3)).await;
        by_short.lock().push("short");
    });
    settle().await;
    assert!(supervisor.stop(Duration::from_secs(4)).await.is_clean());
    assert_eq!(*done.lock(), ["task", "once", "short"]);
}

#[tokio::test(start_paused = true)]
async fn nothing_starts_after_the_stop() {
    let (supervisor, started) = (Supervisor::new(), Arc::new(AtomicUsize::new(0)));
    assert!(supervisor.stop(Duration::from_secs(1)).await.is_clean());
    let (by_task, by_once) = (started.clone(), started.clone());
    let token = supervisor.spawn("late", move |_| {
        by_task.fetch_add(1, Ordering::Relaxed);
        pending::<()>()
    });
    supervisor.spawn_once("late once", async move {
        by_once.fetch_add(1, Ordering::Relaxed);
    });
    settle().await;
    assert!(token.is_cancelled() && supervisor.report().is_empty());
    assert_eq!(started.load(Ordering::Relaxed), 0);
    assert!(supervisor.stop(Duration::from_secs(1)).await.is_clean(), "a second stop is harmless");
}
