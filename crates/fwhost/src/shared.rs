//! What the handle and the session share. Locks are held for moments only, never across an await, and in this order where two are needed:
//! temperatures, then mirror.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use crate::event::{HostEvent, PrintStats};
use crate::exchange::{Exchange, Purpose};
use crate::mirror::Mirror;
use crate::options::Options;
use crate::remote::RemoteMethods;
use crate::stores::gcode::{GcodeKind, GcodeStore};
use crate::stores::temperature::Recorder;
use crate::view::HostStatusView;

pub(crate) type Listener = Arc<dyn Fn(&HostEvent) + Send + Sync>;

pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) view: ArcSwap<HostStatusView>,
    pub(crate) exchange: Exchange,
    pub(crate) mirror: Mutex<Mirror>,
    pub(crate) remote: RemoteMethods,
    pub(crate) temperatures: Mutex<Recorder>,
    pub(crate) gcode: Mutex<GcodeStore>,
    pub(crate) listeners: ArcSwap<Vec<Listener>>,
    /// `print_stats` when the last connection ended.
    pub(crate) last_job: Mutex<Option<PrintStats>>,
    /// Starts every name under which the host calls us; new and unguessable for each connection, so that no client can have it called.
    token: Mutex<String>,
}

impl Shared {
    pub(crate) fn new(options: Options) -> Self {
        Self {
            view: ArcSwap::default(),
            exchange: Exchange::default(),
            mirror: Mutex::default(),
            remote: RemoteMethods::default(),
            temperatures: Mutex::new(Recorder::new(options.temperature_store_size)),
            gcode: Mutex::new(GcodeStore::new(options.gcode_store_size)),
            listeners: ArcSwap::default(),
            last_job: Mutex::default(),
            token: Mutex::default(),
            options,
        }
    }

    /// Makes the names of the next connection.
    pub(crate) fn renew_token(&self) -> String {
        let token = uuid::Uuid::new_v4().simple().to_string();
        token.clone_into(&mut self.token.lock());
        token
    }

    /// `{"method":…}`: what the host is to add to its calls of this name.
    pub(crate) fn template(&self, name: &str) -> serde_json::Value {
        serde_json::json!({ "method": format!("{} {name}", self.token.lock()) })
    }

    /// Has the host offer a remote method to its macros; nothing happens while there is no host.
    pub(crate) fn offer_remote_method(&self, name: &str) {
        let params = serde_json::json!({ "response_template": self.template(&format!("call {name}")), "remote_method": name }).to_string();
        self.exchange.ask_own("register_remote_method", Some(&params), Purpose::Plain, self.options.timing.subscribe_timeout);
    }

    pub(crate) fn emit(&self, event: &HostEvent) {
        for listener in self.listeners.load().iter() {
            listener(event);
        }
    }

    /// Changes the view; readers see all of it or nothing.
    pub(crate) fn update_view(&self, change: impl FnOnce(&mut HostStatusView)) {
        let mut view = HostStatusView::clone(&self.view.load());
        change(&mut view);
        self.view.store(Arc::new(view));
    }

    pub(crate) fn print_stats(&self) -> Option<PrintStats> {
        let mirror = self.mirror.lock();
        PrintStats::read(|field| mirror.field("print_stats", field))
    }

    pub(crate) fn record_gcode(&self, kind: GcodeKind, message: &Arc<str>) {
        let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
        self.gcode.lock().add(kind, message, time);
    }

    pub(crate) fn sample_temperatures(&self) {
        self.temperatures.lock().sample(|object, field| self.mirror.lock().field(object, field));
    }
}
