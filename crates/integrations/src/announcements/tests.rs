use super::*;
use outbound::Client;
use protocol::Form;
use rpc::Connections;
use std::sync::Arc;
use store::Store;

async fn board(store: &Store) -> Arc<Announcements> {
    let board = Announcements::new(Settings::default(), store.clone(), Arc::new(Connections::default()), Client::new("Test/1"));
    board.load().await;
    board
}

#[tokio::test]
async fn entries_of_components_come_and_go_and_are_kept() {
    let store = Store::in_memory(&[]).unwrap();
    let first = board(&store).await;
    let notice = Notice { feed: "machine".into(), title: "t".into(), description: "d".into(), url: String::new(), is_high: true };
    let id = first.announce(notice).await.unwrap();
    assert!(id.starts_with("machine/20") && id.len() == "machine/YYYY-MM-DDTHH:MM:SS".len(), "{id}");
    first.dismiss(&id, Some(3600.0)).await.unwrap();
    let again = board(&store).await;
    let entry = &again.entries(Form::Neutral, true)[0];
    assert_eq!((entry.entry_id.as_str(), entry.source.as_str(), entry.priority.as_str()), (id.as_str(), "internal", "high"));
    assert!(entry.dismiss_wake.is_some_and(|left| left > 3500.0 && left <= 3600.0), "{entry:?}");
    again.withdraw(&id).await.unwrap();
    assert!(board(&store).await.entries(Form::Neutral, true).is_empty());
}

#[tokio::test]
async fn a_component_replaces_what_it_said_before() {
    let store = Store::in_memory(&[]).unwrap();
    let board = board(&store).await;
    let says =
        |text: &str| Notice { feed: "machine".into(), title: text.into(), description: String::new(), url: String::new(), is_high: true };
    let titles = || board.entries(Form::Neutral, true).into_iter().map(|entry| (entry.title, entry.dismissed)).collect::<Vec<_>>();
    board.announce(Notice { feed: "other".into(), ..says("x") }).await.unwrap();
    board.replace("machine", Some(says("a"))).await.unwrap();
    let first = board.entries(Form::Neutral, true).into_iter().find(|entry| entry.title == "a").unwrap();
    board.dismiss(&first.entry_id, None).await.unwrap();
    board.replace("machine", Some(says("a"))).await.unwrap();
    assert!(titles().contains(&("a".to_owned(), true)) && titles().len() == 2, "the same again stays dismissed");
    board.replace("machine", Some(says("b"))).await.unwrap();
    assert!(titles().contains(&("b".to_owned(), false)) && titles().len() == 2, "{:?}", titles());
    board.replace("machine", None).await.unwrap();
    assert_eq!(titles(), [("x".to_owned(), false)]);
}

#[tokio::test]
async fn dismissals_that_are_nearly_over_end_at_the_start() {
    let store = Store::in_memory(&[]).unwrap();
    let first = board(&store).await;
    let notice = Notice { feed: "machine".into(), title: "t".into(), description: String::new(), url: String::new(), is_high: false };
    let id = first.announce(notice).await.unwrap();
    first.dismiss(&id, Some(5.0)).await.unwrap();
    assert!(first.entries(Form::Neutral, false).is_empty());
    assert_eq!(board(&store).await.entries(Form::Neutral, false).len(), 1);
}

#[tokio::test]
async fn a_local_feed_that_could_not_be_kept_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let feed = "<rss><channel><item><title>T</title><link>L</link><description>D</description><guid>G</guid></item></channel></rss>";
    std::fs::write(folder.path().join("moonraker.xml"), feed).unwrap();
    let store = Store::in_memory(&[]).unwrap();
    let options = AnnouncementOptions { dev_mode: true, ..AnnouncementOptions::default() };
    let settings = Settings { options, folder: folder.path().to_owned() };
    let board = Announcements::new(settings, store.clone(), Arc::new(Connections::default()), Client::new("Test/1"));
    board.load().await;
    let is_full = "CREATE TRIGGER full BEFORE INSERT ON namespace_store BEGIN SELECT RAISE(ABORT, 'full'); END";
    store.write(|conn| Ok(conn.execute_batch(is_full)?)).await.unwrap();
    let look = || board.look_at(vec!["moonraker".to_owned()]);
    assert!(!look().await);
    store.write(|conn| Ok(conn.execute_batch("DROP TRIGGER full")?)).await.unwrap();
    assert!(look().await, "what could not be kept was taken for known");
    assert_eq!(board.entries(Form::Neutral, true).len(), 1);
    assert!(!look().await, "the same file again");
}
