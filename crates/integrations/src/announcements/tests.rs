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
