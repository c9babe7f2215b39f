use super::*;
use store::Store;

fn new_job(filename: &str, start_time: f64) -> NewJob {
    NewJob {
        filename: filename.to_owned(),
        user: Some("Ada".to_owned()).filter(|_| filename.starts_with('a')),
        start_time,
        numbers: Numbers::default(),
        metadata: "{}".to_owned(),
        auxiliary: "[]".to_owned(),
        gathered: "{}".to_owned(),
    }
}

fn end(status: JobStatus, seconds: f64) -> Finish {
    let numbers = Numbers { total_duration: seconds, print_duration: seconds / 2.0, filament_used: 10.0 };
    Finish { status, end_time: Some(9.0), numbers, user: None, metadata: None, auxiliary: None, gathered: None, contributions: Vec::new() }
}

fn ids(conn: &Connection, filter: &Filter) -> Vec<JobId> {
    let mut ids = Vec::new();
    list(conn, filter, |record| {
        ids.push(record.id);
        Ok(())
    })
    .unwrap();
    ids
}

async fn on_a_store(work: impl FnOnce(&Connection) + Send + 'static) {
    let store = Store::in_memory(&[SCHEMA]).unwrap();
    store
        .write(move |conn| {
            work(conn);
            Ok(())
        })
        .await
        .unwrap();
}

#[tokio::test]
async fn a_record_is_finished_and_counted_once() {
    on_a_store(|conn| {
        let id = start(conn, &new_job("a.gcode", 1.0)).unwrap();
        assert_eq!(open(conn).unwrap(), [id]);
        save(conn, id, Numbers { total_duration: 5.0, ..Numbers::default() }, "{}").unwrap();
        let record = finish(conn, id, &end(JobStatus::Completed, 20.0)).unwrap().unwrap();
        assert_eq!((record.status, record.numbers.total_duration, record.end_time), (JobStatus::Completed, 20.0, Some(9.0)));
        assert_eq!(finish(conn, id, &end(JobStatus::Error, 30.0)).unwrap(), None);
        save(conn, id, Numbers::default(), "{}").unwrap();
        assert_eq!(get(conn, id).unwrap().unwrap().numbers.total_duration, 20.0, "counters of a finished record stay");
        let totals = own_totals(conn).unwrap();
        assert_eq!((totals.total_jobs, totals.total_time, totals.total_print_time), (1, 20.0, 10.0));
        assert_eq!((totals.longest_job, totals.longest_print, totals.total_filament_used), (20.0, 10.0, 10.0));
    })
    .await;
}

#[tokio::test]
async fn a_record_that_is_opened_again_counts_once_in_the_end() {
    on_a_store(|conn| {
        let id = start(conn, &new_job("a.gcode", 1.0)).unwrap();
        assert!(!reopen(conn, id, &[]).unwrap(), "it is open");
        let some = |value| vec![Contribution { provider: "sensor s".into(), field: "f".into(), value }];
        finish(conn, id, &Finish { contributions: some(3.0), ..end(JobStatus::FwhostDisconnect, 20.0) }).unwrap();
        assert!(reopen(conn, id, &some(3.0)).unwrap());
        assert_eq!(get(conn, id).unwrap().unwrap().end_time, None);
        finish(conn, id, &Finish { contributions: some(4.0), ..end(JobStatus::Completed, 30.0) }).unwrap();
        let counted = own_totals(conn).unwrap();
        assert_eq!((counted.total_jobs, counted.total_time, counted.longest_job), (1, 30.0, 30.0));
        assert_eq!(totals::get(conn, "sensor s", "f").unwrap(), (4.0, 4.0));
        totals::reset(conn).unwrap();
        assert!(reopen(conn, id, &[]).unwrap());
        assert_eq!(own_totals(conn).unwrap(), JobTotals::default());
        assert!(!reopen(conn, 99, &[]).unwrap());
    })
    .await;
}

#[tokio::test]
async fn ids_are_never_used_again_and_open_records_stay() {
    on_a_store(|conn| {
        let first = start(conn, &new_job("a.gcode", 1.0)).unwrap();
        finish(conn, first, &end(JobStatus::Completed, 1.0)).unwrap();
        let second = start(conn, &new_job("a.gcode", 2.0)).unwrap();
        assert!(!delete(conn, second).unwrap());
        assert_eq!(delete_all(conn).unwrap(), [first]);
        finish(conn, second, &end(JobStatus::Completed, 1.0)).unwrap();
        assert!(delete(conn, second).unwrap());
        assert!(start(conn, &new_job("a.gcode", 3.0)).unwrap() > second);
        assert_eq!(own_totals(conn).unwrap().total_jobs, 2, "deleting does not uncount");
    })
    .await;
}

#[tokio::test]
async fn lists_are_filtered_ordered_and_cut() {
    on_a_store(|conn| {
        for (number, name) in ["a.gcode", "b_1.gcode", "bx1.gcode", "sub/Cube.gcode"].iter().enumerate() {
            let id = start(conn, &new_job(name, number as f64)).unwrap();
            finish(conn, id, &end(if number == 1 { JobStatus::Error } else { JobStatus::Completed }, 1.0)).unwrap();
        }
        let all = || Filter { newest_first: true, ..Filter::default() };
        let text = |text: &str| Some(text.to_owned());
        let table = [
            (all(), vec![4, 3, 2, 1]),
            (Filter::default(), vec![1, 2, 3, 4]),
            (Filter { limit: Some(2), offset: 1, ..all() }, vec![3, 2]),
            (Filter { limit: Some(u64::MAX), offset: u64::MAX, ..all() }, vec![]),
            (Filter { since: Some(1.0), ..all() }, vec![4, 3]),
            (Filter { before: Some(1.0), ..all() }, vec![1]),
            (Filter { since: Some(3.0), before: Some(1.0), ..all() }, vec![]),
            (Filter { statuses: vec![JobStatus::Error, JobStatus::Cancelled], ..all() }, vec![2]),
            (Filter { filename: text("sub/Cube.gcode"), ..all() }, vec![4]),
            (Filter { search: text("CUBE"), ..all() }, vec![4]),
            (Filter { search: text("b_1"), ..all() }, vec![2]),
            (Filter { search: text("gcode ada"), ..all() }, vec![1]),
            (Filter { search: text("' OR 1"), ..all() }, vec![]),
        ];
        for (filter, expected) in table {
            assert_eq!(ids(conn, &filter), expected, "{filter:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn the_mark_comes_back_as_it_was() {
    on_a_store(|conn| {
        assert_eq!(mark(conn).unwrap(), None);
        let kept = Mark {
            job: Some(3),
            filename: "a".into(),
            state: PrintState::Paused,
            numbers: Numbers { total_duration: 1.25, print_duration: 0.5, filament_used: -1.0 },
            start_time: 2.0,
            seen_at: 3.0,
            host: Some(u64::MAX),
            orderly: true,
        };
        set_mark(conn, &kept).unwrap();
        let newer = Mark { job: None, orderly: false, ..kept };
        set_mark(conn, &newer).unwrap();
        assert_eq!(mark(conn).unwrap(), Some(newer));
    })
    .await;
}
