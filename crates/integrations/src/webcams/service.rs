//! The handle: all webcams, in memory and in the clients' database.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use outbound::Client;
use protocol::webcam::{Webcam, WebcamList};
use protocol::{ApiError, Event};
use rpc::Connections;
use serde_json::value::RawValue;
use store::{Key, Namespace, Namespaces, StoreError};
use tokio::sync::Mutex;
use uuid::Uuid;

use super::list::{self, Fields, Which};
use super::probe::{self, WebcamTest};
use super::record;
use crate::fault::to_api;

/// Shared with front ends, which may read and write it themselves; read at start only.
const NAMESPACE: Namespace = Namespace::fixed("webcams");

/// All webcams.
pub struct Webcams {
    /// What clients see; replaced as a whole after each change is kept.
    shown: ArcSwap<Vec<Webcam>>,
    /// One change at a time.
    changing: Mutex<()>,
    namespaces: Namespaces,
    connections: Arc<Connections>,
    client: Client,
}

impl Webcams {
    /// The webcams of the configuration; those of clients follow with [`Webcams::load`].
    #[must_use]
    pub fn new(configured: Vec<Webcam>, namespaces: Namespaces, connections: Arc<Connections>, client: Client) -> Arc<Self> {
        Arc::new(Self { shown: ArcSwap::from_pointee(configured), changing: Mutex::default(), namespaces, connections, client })
    }

    /// Adds the webcams that clients have made. What cannot be used is left in the database and logged.
    pub async fn load(&self) {
        let _changing = self.changing.lock().await;
        let kept = match self.namespaces.get(&NAMESPACE, None).await {
            Ok(records) => read_all(&records),
            Err(StoreError::NotFound(_)) => return,
            Err(error) => return tracing::error!(%error, "the webcams of the database cannot be read"),
        };
        let (list, moved) = list::merge(self.shown.load().to_vec(), kept, new_uid);
        for (former, webcam) in moved {
            tracing::warn!(name = webcam.name, former, uid = webcam.uid, "webcam got a new id: its former one is taken");
            if let Err(error) = self.keep(&webcam, Some(former)).await {
                tracing::error!(%error, "the new id of a webcam cannot be kept");
            }
        }
        self.shown.store(Arc::new(list));
    }

    pub(super) fn all(&self) -> WebcamList {
        WebcamList { webcams: self.shown.load_full() }
    }

    pub(super) fn get(&self, which: &Which) -> Result<Webcam, ApiError> {
        let webcams = self.shown.load();
        Ok(webcams[list::find(&webcams, which)?].clone())
    }

    pub(super) async fn put(&self, fields: Fields) -> Result<Webcam, ApiError> {
        let _changing = self.changing.lock().await;
        let (list, position) = list::put(&self.shown.load(), fields, new_uid)?;
        let webcam = list[position].clone();
        self.keep(&webcam, None).await.map_err(to_api)?;
        self.show(list);
        Ok(webcam)
    }

    pub(super) async fn remove(&self, which: &Which) -> Result<Webcam, ApiError> {
        let _changing = self.changing.lock().await;
        let (list, removed) = list::remove(&self.shown.load(), which)?;
        match self.namespaces.delete(&NAMESPACE, &key(&removed.uid).map_err(to_api)?).await {
            // A front end may have removed it there itself.
            Ok(_) | Err(StoreError::NotFound(_)) => {}
            Err(error) => return Err(to_api(error)),
        }
        self.show(list);
        Ok(removed)
    }

    pub(super) async fn test(&self, which: &Which) -> Result<WebcamTest, ApiError> {
        let webcam = self.get(which)?;
        Ok(probe::test(&self.client, &webcam).await)
    }

    /// Writes an entry under its id and removes the one under `former`.
    async fn keep(&self, webcam: &Webcam, former: Option<String>) -> Result<(), StoreError> {
        let value = record::write(webcam).map_err(|error| StoreError::BadValue(error.to_string()))?;
        self.namespaces.post(&NAMESPACE, &key(&webcam.uid)?, value).await?;
        match former {
            // A configured entry has this id now and must not find a record of a stranger.
            Some(former) => self.namespaces.delete(&NAMESPACE, &key(&former)?).await.map(drop),
            None => Ok(()),
        }
    }

    fn show(&self, list: Vec<Webcam>) {
        self.shown.store(Arc::new(list));
        self.connections.emit(&Event::WebcamsChanged(self.all()));
    }
}

fn new_uid() -> String {
    Uuid::new_v4().to_string()
}

/// Ids of records that front ends made may hold dots.
fn key(uid: &str) -> Result<Key, StoreError> {
    Key::from_parts([uid.to_owned()])
}

fn read_all(records: &RawValue) -> Vec<Webcam> {
    let records: BTreeMap<String, Box<RawValue>> = serde_json::from_str(records.get()).unwrap_or_default();
    let read = |(uid, json): (String, Box<RawValue>)| match record::read(&uid, json.get()) {
        Ok(webcam) => Some(webcam),
        Err(reason) => {
            tracing::warn!(uid, reason, "webcam of the database ignored");
            None
        }
    };
    records.into_iter().filter_map(read).collect()
}
