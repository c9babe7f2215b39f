//! The handle: everything that the rest of the server may ask of the firmware host.

use std::sync::Arc;

use protocol::ApiError;
use protocol::error::ApiResult;
use protocol::status::{Selection, Text};
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use crate::event::{HostEvent, PrintStats};
use crate::options::Options;
use crate::sink::{StatusSink, SubscriberId};
use crate::stores::gcode::GcodeEntry;
use crate::stores::temperature::TemperatureStore;
use crate::view::HostStatusView;

/// How to restart the firmware host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restart {
    /// `RESTART`: reload the configuration.
    Host,
    /// `FIRMWARE_RESTART`: reset the micro-controllers, too.
    Firmware,
}

/// The firmware host, as the rest of the server sees it. Cheap to clone.
#[derive(Clone)]
pub struct FwHost {
    shared: Arc<Options>,
}

impl FwHost {
    /// A link that does nothing yet: register listeners and remote methods, then [`FwHost::run`] it.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self { shared: Arc::new(options) }
    }

    /// Keeps the link up until `stop`. To be called once, by the supervisor (again after a panic).
    pub async fn run(&self, stop: CancellationToken) {
        stop.cancelled().await;
    }

    /// Adds a listener. Listeners are called one after the other, in the order of events; they must be quick and must not block.
    pub fn on_event(&self, listener: impl Fn(&HostEvent) + Send + Sync + 'static) {
        let _ = (self, listener);
    }

    /// The link as it is now.
    #[must_use]
    pub fn status(&self) -> Arc<HostStatusView> {
        Arc::default()
    }

    /// Calls any endpoint of the host and returns the JSON text of its result; empty results become `"ok"`.
    ///
    /// # Errors
    /// 404 for the endpoints that would change our own connection; 400 for parameters that are no JSON object and with the host's text for
    /// its own errors; 429 when too many requests wait; 503 when the host is not there or goes away (wire/5-fwhost.md section 9.2).
    pub async fn request(&self, endpoint: &str, params: Option<&RawValue>) -> ApiResult<Arc<str>> {
        let _ = (endpoint, params);
        Err(ApiError::unavailable("Klippy Host not connected"))
    }

    /// Stops the printer. Overtakes every request that is still queued.
    ///
    /// # Errors
    /// As [`FwHost::request`].
    pub async fn emergency_stop(&self) -> ApiResult<()> {
        Err(ApiError::unavailable("Klippy Host not connected"))
    }

    /// Runs a script and waits for its end. A `recorded` script that is not blank goes to the gcode store.
    ///
    /// # Errors
    /// As [`FwHost::request`]; a failing line ends the script with its text.
    pub async fn gcode(&self, script: &str, recorded: bool) -> ApiResult<()> {
        let _ = (script, recorded);
        Err(ApiError::unavailable("Klippy Host not connected"))
    }

    /// Restarts the host. A connection lost while waiting counts as success.
    ///
    /// # Errors
    /// As [`FwHost::request`].
    pub async fn restart_gcode(&self, restart: Restart) -> ApiResult<()> {
        let _ = restart;
        Err(ApiError::unavailable("Klippy Host not connected"))
    }

    /// `{"eventtime":…,"status":{…}}` for the selection; what the printer does not have is left out.
    ///
    /// # Errors
    /// As [`FwHost::request`].
    pub async fn query(&self, selection: &Selection) -> ApiResult<Vec<u8>> {
        let _ = selection;
        Err(ApiError::unavailable("Klippy Host not connected"))
    }

    /// [`FwHost::query`] when the cache alone can answer truthfully.
    #[must_use]
    pub fn query_cached(&self, selection: &Selection) -> Option<Vec<u8>> {
        let _ = selection;
        None
    }

    /// Subscribes; replaces the subscriber's earlier subscription, and an empty selection only cancels that. The answer has the full values
    /// of the selection, and every later change goes to `sink`.
    ///
    /// # Errors
    /// As [`FwHost::request`]; 500 when the host does not answer in time.
    pub async fn subscribe(&self, subscriber: SubscriberId, sink: Arc<dyn StatusSink>, selection: Selection) -> ApiResult<Vec<u8>> {
        let _ = (subscriber, sink, selection);
        Err(ApiError::unavailable("Klippy Host not connected"))
    }

    /// Ends a subscription, if there is one.
    pub fn unsubscribe(&self, subscriber: SubscriberId) {
        let _ = subscriber;
    }

    /// The cached JSON text of one field; none while the host is away or when it does not exist.
    #[must_use]
    pub fn field(&self, object: &str, field: &str) -> Option<Text> {
        let _ = (object, field);
        None
    }

    /// The job as the cache has it.
    #[must_use]
    pub fn print_stats(&self) -> Option<PrintStats> {
        None
    }

    /// Lets gcode macros call us: `handler` gets the keyword arguments as a JSON object. Registered again at every connection.
    ///
    /// # Errors
    /// 400 when the name is taken or there are too many.
    pub fn register_remote_method(&self, name: &str, handler: impl Fn(Box<RawValue>) + Send + Sync + 'static) -> Result<(), ApiError> {
        let _ = (name, handler);
        Ok(())
    }

    /// Later calls of this name are ignored.
    pub fn unregister_remote_method(&self, name: &str) {
        let _ = name;
    }

    /// The temperature history of all sensors, and of monitors when asked for.
    #[must_use]
    pub fn temperature_store(&self, include_monitors: bool) -> TemperatureStore {
        let _ = include_monitors;
        TemperatureStore::default()
    }

    /// The last `count` entries of the gcode store, oldest first; all without a count or with 0.
    #[must_use]
    pub fn gcode_store(&self, count: Option<usize>) -> Vec<GcodeEntry> {
        let _ = (&self.shared, count);
        Vec::new()
    }
}
