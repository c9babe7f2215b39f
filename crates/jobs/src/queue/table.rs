//! The queue on disk. Only what changed is written: a jump or an addition costs one row, whatever the length of the queue.

use std::collections::{HashMap, HashSet, VecDeque};

use store::StoreError;
use store::rusqlite::{Connection, params};

use super::model::Waiting;

/// Where each kept job stands.
pub(crate) type Places = HashMap<String, i64>;

/// What has to be written.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Changes {
    removed: Vec<String>,
    moved: Vec<(String, i64)>,
    added: Vec<(Waiting, i64)>,
}

/// All jobs in order, and where they stand.
pub(crate) fn load(conn: &Connection) -> Result<(VecDeque<Waiting>, Places), StoreError> {
    let mut statement = conn.prepare("SELECT id, filename, user, time_added, position FROM queued_job ORDER BY position")?;
    let rows = statement.query_map([], |row| {
        Ok((Waiting { id: row.get(0)?, filename: row.get(1)?, user: row.get(2)?, time_added: row.get(3)? }, row.get::<_, i64>(4)?))
    })?;
    let (mut jobs, mut places) = (VecDeque::new(), Places::new());
    for row in rows {
        let (job, place) = row?;
        places.insert(job.id.clone(), place);
        jobs.push_back(job);
    }
    Ok((jobs, places))
}

/// Compares the queue with what is kept of it; `places` becomes what will be kept.
pub(crate) fn changes(places: &mut Places, jobs: &VecDeque<Waiting>) -> Changes {
    let mut changes = Changes::default();
    let present: HashSet<&str> = jobs.iter().map(|job| job.id.as_str()).collect();
    changes.removed = places.keys().filter(|id| !present.contains(id.as_str())).cloned().collect();
    places.retain(|id, _| present.contains(id.as_str()));
    let mut last = places.values().copied().max().unwrap_or(0);
    for job in jobs {
        if !places.contains_key(&job.id) {
            last += 1;
            places.insert(job.id.clone(), last);
            changes.added.push((job.clone(), last));
        }
    }
    // From the back: whatever does not stand before its follower was moved there.
    let mut follower = i64::MAX;
    for job in jobs.iter().rev() {
        let Some(place) = places.get_mut(&job.id) else { continue };
        if *place >= follower {
            *place = follower - 1;
            changes.moved.push((job.id.clone(), *place));
        }
        follower = *place;
    }
    changes
}

/// Writes.
pub(crate) fn write(conn: &Connection, changes: &Changes) -> Result<(), StoreError> {
    let mut remove = conn.prepare_cached("DELETE FROM queued_job WHERE id = ?1")?;
    for id in &changes.removed {
        remove.execute([id])?;
    }
    let mut add = conn.prepare_cached("INSERT INTO queued_job (id, position, filename, user, time_added) VALUES (?1, ?2, ?3, ?4, ?5)")?;
    for (job, place) in &changes.added {
        add.execute(params![job.id, place, job.filename, job.user, job.time_added])?;
    }
    let mut shift = conn.prepare_cached("UPDATE queued_job SET position = ?2 WHERE id = ?1")?;
    for (id, place) in &changes.moved {
        shift.execute(params![id, place])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::Store;

    fn waiting(id: &str) -> Waiting {
        Waiting { id: id.to_owned(), filename: "a".to_owned(), user: None, time_added: 1.5 }
    }

    #[tokio::test]
    async fn the_queue_comes_back_in_its_order_and_little_is_written() {
        let store = Store::in_memory(&[crate::SCHEMA]).unwrap();
        let work = |conn: &Connection| {
            let mut places = Places::new();
            let mut written = Vec::new();
            for order in ["abc", "cab", "cabde", "ab", "ba", "", "xyz", "zxy", "yzxw"] {
                let jobs: VecDeque<_> = order.chars().map(|id| waiting(&id.to_string())).collect();
                let changes = changes(&mut places, &jobs);
                written.push((changes.removed.len(), changes.moved.len(), changes.added.len()));
                write(conn, &changes)?;
                let (kept, kept_places) = load(conn)?;
                assert_eq!((kept, &kept_places), (jobs, &places), "{order}");
            }
            Ok(written)
        };
        let written = store.write(work).await.unwrap();
        let expected = [(0, 0, 3), (0, 1, 0), (0, 0, 2), (3, 0, 0), (0, 1, 0), (2, 0, 0), (0, 0, 3), (0, 1, 0), (0, 1, 1)];
        assert_eq!(written, expected);
    }
}
