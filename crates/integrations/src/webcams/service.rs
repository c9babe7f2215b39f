//! The handle: all webcams, in memory and in the clients' database.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use arc_swap::ArcSwap;
use outbound::Client;
use protocol::webcam::{Webcam, WebcamList};
use protocol::{ApiError, Event};
use rpc::Connections;
use rpc::pictures::{Camera, Cameras, Picture, Pictures};
use rpc::transfer::Boxed;
use serde_json::value::RawValue;
use store::{Key, Namespace, Namespaces, StoreError};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::list::{self, Fields, Which};
use super::probe::{self, WebcamTest};
use super::record;
use super::relay::{Places, Relay};
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
    relay: Arc<Relay>,
}

/// What webcams are made of.
pub struct Parts {
    /// Where entries of clients are kept.
    pub namespaces: Namespaces,
    /// Who hears of changes.
    pub connections: Arc<Connections>,
    /// Fetches pictures.
    pub client: Client,
    /// Where paths on this machine lead.
    pub places: Places,
    /// Runs connections to cameras.
    pub tasks: TaskTracker,
    /// Ends them.
    pub stop: CancellationToken,
}

impl Webcams {
    /// The webcams of the configuration; those of clients follow with [`Webcams::load`].
    #[must_use]
    pub fn new(configured: Vec<Webcam>, parts: Parts) -> Arc<Self> {
        let Parts { namespaces, connections, client, places, tasks, stop } = parts;
        let relay = Arc::new(Relay::new(&client, places, tasks, stop));
        Arc::new(Self { shown: ArcSwap::from_pointee(configured), changing: Mutex::default(), namespaces, connections, client, relay })
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

    pub(super) async fn test(&self, which: &Which, peer: Option<IpAddr>) -> Result<WebcamTest, ApiError> {
        let webcam = self.get(which)?;
        Ok(probe::test(&self.client, &self.relay.places, &webcam, peer).await)
    }

    /// The addresses of stream and single pictures.
    fn addresses(&self, camera: Camera) -> Result<(String, String), ApiError> {
        match camera {
            Camera::At(address) => Ok((address.clone(), address)),
            Camera::Listed { uid, name } => self.get(&Which { uid, name }).map(|webcam| (webcam.stream_url, webcam.snapshot_url)),
        }
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

impl Cameras for Webcams {
    fn watch(&self, camera: Camera) -> Boxed<'static, Result<Pictures, ApiError>> {
        let (relay, addresses) = (self.relay.clone(), self.addresses(camera));
        Box::pin(async move { relay.watch(addresses?.0).await })
    }

    fn snapshot(&self, camera: Camera) -> Boxed<'static, Result<Arc<Picture>, ApiError>> {
        let (relay, addresses) = (self.relay.clone(), self.addresses(camera));
        Box::pin(async move {
            let (stream, single) = addresses?;
            if single.trim().is_empty() { relay.snapshot_of_stream(stream).await } else { relay.snapshot(single).await }
        })
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
