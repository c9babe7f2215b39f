//! The handle: everything that the rest of the server may ask of the firmware host.

use std::sync::Arc;

use protocol::ApiError;
use protocol::error::ApiResult;
use protocol::status::{Selection, Text};
use serde_json::value::RawValue;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::event::{HostEvent, PrintStats};
use crate::exchange::Lane;
use crate::failure::Failure;
use crate::link;
use crate::options::Options;
use crate::params;
use crate::shared::{Listener, Shared};
use crate::sink::{StatusSink, SubscriberId};
use crate::stores::gcode::{GcodeEntry, GcodeKind};
use crate::view::HostStatusView;

/// What clients get for a result that says nothing.
const OK: &str = "\"ok\"";

/// Results that say nothing.
const EMPTY: [&str; 5] = ["{}", "[]", "false", "null", ""];

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
    pub(crate) shared: Arc<Shared>,
}

impl FwHost {
    /// A link that does nothing yet: register listeners and remote methods, then [`FwHost::run`] it.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self { shared: Arc::new(Shared::new(options)) }
    }

    /// Keeps the link up until `stop`. To be called once, by the supervisor (again after a panic).
    pub async fn run(&self, stop: CancellationToken) {
        tokio::select! {
            () = stop.cancelled() => {}
            () = link::run(&self.shared) => {}
        }
    }

    /// Adds a listener. Listeners are called one after the other, in the order of events; they must be quick and must not block.
    pub fn on_event(&self, listener: impl Fn(&HostEvent) + Send + Sync + 'static) {
        let listener: Listener = Arc::new(listener);
        self.shared.listeners.rcu(|listeners| listeners.iter().cloned().chain([listener.clone()]).collect::<Vec<_>>());
    }

    /// Forgets all listeners: they hold other components, which hold this handle. For the end of the server.
    pub fn forget_listeners(&self) {
        self.shared.listeners.store(Arc::default());
    }

    /// The link as it is now.
    #[must_use]
    pub fn status(&self) -> Arc<HostStatusView> {
        self.shared.view.load_full()
    }

    /// Calls any endpoint of the host and returns the JSON text of its result; empty results become `"ok"`.
    ///
    /// # Errors
    /// 404 for the endpoints that would change our own connection; 400 for parameters that are no JSON object and with the host's text for
    /// its own errors; 429 when too many requests wait; 503 when the host is not there or goes away (wire/5-fwhost.md section 9.2).
    pub async fn request(&self, endpoint: &str, params: Option<&RawValue>) -> ApiResult<Arc<str>> {
        if params::is_reserved(endpoint) {
            return Err(ApiError::method_not_found());
        }
        if endpoint == "objects/query" {
            // Through the mirror, as every query.
            let answer = self.query(&params::selection(params)?).await?;
            return String::from_utf8(answer).map(Into::into).map_err(|_| ApiError::internal("Unreadable status"));
        }
        let params = params.map(params::for_host).transpose()?;
        let lane = if endpoint == "emergency_stop" { Lane::Urgent } else { Lane::Normal };
        let result = self.ask(endpoint, params.as_deref(), lane).await?;
        Ok(if EMPTY.contains(&result.trim()) || is_empty_container(&result) { OK.into() } else { result })
    }

    /// Stops the printer. Overtakes every request that is still queued.
    ///
    /// # Errors
    /// As [`FwHost::request`].
    pub async fn emergency_stop(&self) -> ApiResult<()> {
        self.ask("emergency_stop", None, Lane::Urgent).await?;
        Ok(())
    }

    /// Runs a script and waits for its end. A `recorded` script that is not blank goes to the gcode store.
    ///
    /// # Errors
    /// As [`FwHost::request`]; a failing line ends the script with its text.
    pub async fn gcode(&self, script: &str, recorded: bool) -> ApiResult<()> {
        if recorded && !script.trim().is_empty() && self.status().is_connected() {
            self.shared.record_gcode(GcodeKind::Command, &script.into());
        }
        self.run_script(script).await?;
        Ok(())
    }

    /// Restarts the host. A connection lost while waiting counts as success.
    ///
    /// # Errors
    /// As [`FwHost::request`].
    pub async fn restart_gcode(&self, restart: Restart) -> ApiResult<()> {
        let script = match restart {
            Restart::Host => "RESTART",
            Restart::Firmware => "FIRMWARE_RESTART",
        };
        match self.run_script(script).await {
            Ok(_) | Err(Failure::Disconnected) => Ok(()),
            Err(failure) => Err(failure.into()),
        }
    }

    /// `{"eventtime":…,"status":{…}}` for the selection; what the printer does not have is left out.
    ///
    /// # Errors
    /// As [`FwHost::request`].
    pub async fn query(&self, selection: &Selection) -> ApiResult<Vec<u8>> {
        if let Some(answer) = self.query_cached(selection) {
            return Ok(answer);
        }
        let epoch = self.shared.mirror.lock().epoch();
        self.pass_query(selection).await?;
        let mirror = self.shared.mirror.lock();
        if mirror.epoch() == epoch { Ok(mirror.answer(selection)) } else { Err(Failure::Disconnected.into()) }
    }

    /// [`FwHost::query`] when the cache alone can answer truthfully.
    #[must_use]
    pub fn query_cached(&self, selection: &Selection) -> Option<Vec<u8>> {
        self.shared.mirror.lock().fresh_answer(selection, Instant::now(), self.shared.options.timing.fresh)
    }

    /// Subscribes; replaces the subscriber's earlier subscription, and an empty selection only cancels that. The answer has the full values
    /// of the selection, and every later change goes to `sink`.
    ///
    /// # Errors
    /// As [`FwHost::request`]; 500 when the host does not answer in time.
    pub async fn subscribe(&self, subscriber: SubscriberId, sink: Arc<dyn StatusSink>, selection: Selection) -> ApiResult<Vec<u8>> {
        let cancels = selection.is_empty();
        if cancels {
            self.unsubscribe(subscriber);
        }
        if !self.status().is_connected() {
            return Err(Failure::NotConnected.into());
        }
        let epoch = {
            let mut mirror = self.shared.mirror.lock();
            let fresh = mirror.fresh_answer(&selection, Instant::now(), self.shared.options.timing.fresh);
            if cancels {
                return Ok(mirror.answer(&selection));
            }
            if let Some(answer) = fresh {
                mirror.subscribe(subscriber, sink, selection);
                return Ok(answer);
            }
            mirror.epoch()
        };
        timeout(self.shared.options.timing.subscribe_timeout, self.pass_query(&selection)).await.map_err(|_| Failure::TimedOut)??;
        let mut mirror = self.shared.mirror.lock();
        if mirror.epoch() != epoch {
            return Err(Failure::Disconnected.into());
        }
        let answer = mirror.answer(&selection);
        mirror.subscribe(subscriber, sink, selection);
        Ok(answer)
    }

    /// Ends a subscription, if there is one.
    pub fn unsubscribe(&self, subscriber: SubscriberId) {
        self.shared.mirror.lock().unsubscribe(subscriber);
    }

    /// The cached JSON text of one field; none while the host is away or when it does not exist.
    #[must_use]
    pub fn field(&self, object: &str, field: &str) -> Option<Text> {
        self.shared.mirror.lock().field(object, field)
    }

    /// The job as the cache has it.
    #[must_use]
    pub fn print_stats(&self) -> Option<PrintStats> {
        self.shared.print_stats()
    }

    /// The object `print_stats` as it was when the last connection ended: what is known of a job whose host is gone.
    #[must_use]
    pub fn last_print_stats(&self) -> Option<PrintStats> {
        self.shared.last_job.lock().clone()
    }

    /// Lets gcode macros call us: `handler` gets the keyword arguments as a JSON object. Registered again at every connection.
    ///
    /// # Errors
    /// 400 when the name is taken or there are too many.
    pub fn register_remote_method(&self, name: &str, handler: impl Fn(Box<RawValue>) + Send + Sync + 'static) -> Result<(), ApiError> {
        self.shared.remote.register(name, Arc::new(handler))?;
        self.shared.offer_remote_method(name);
        Ok(())
    }

    /// Later calls of this name are ignored.
    pub fn unregister_remote_method(&self, name: &str) {
        self.shared.remote.unregister(name);
    }

    /// The temperature history of all sensors, and of monitors when asked for, as JSON text: *Temperature store* of document 1.
    #[must_use]
    pub fn temperature_store(&self, include_monitors: bool) -> String {
        self.shared.temperatures.lock().json(include_monitors)
    }

    /// The last `count` entries of the gcode store, oldest first; all without a count or with 0.
    #[must_use]
    pub fn gcode_store(&self, count: Option<usize>) -> Vec<GcodeEntry> {
        self.shared.gcode.lock().last(count)
    }

    async fn run_script(&self, script: &str) -> Result<Arc<str>, Failure> {
        let params = serde_json::json!({ "script": script }).to_string();
        self.ask("gcode/script", Some(&params), Lane::Normal).await
    }

    async fn ask(&self, endpoint: &str, params: Option<&str>, lane: Lane) -> Result<Arc<str>, Failure> {
        self.shared.exchange.ask(endpoint, params, lane, params::is_command(endpoint), None)?.answer().await
    }

    /// Has the host answer a query; the result is in the mirror then.
    async fn pass_query(&self, selection: &Selection) -> Result<(), Failure> {
        let params = format!(r#"{{"objects":{}}}"#, selection.to_json());
        let asked = Some(selection.clone());
        self.shared.exchange.ask("objects/query", Some(&params), Lane::Normal, false, asked)?.answer().await.map(drop)
    }
}

/// An object or array with nothing but white space in it.
fn is_empty_container(json: &str) -> bool {
    let inner = json.trim();
    [('{', '}'), ('[', ']')].iter().any(|(open, close)| {
        inner.strip_prefix(*open).and_then(|inner| inner.strip_suffix(*close)).is_some_and(|inner| inner.trim().is_empty())
    })
}
