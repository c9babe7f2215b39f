//! The task behind one device: it alone talks to the driver, one thing after the other.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use fwhost::{FwHost, PrintState};
use parking_lot::Mutex;
use protocol::power::{PowerState, PowerStatus};
use protocol::{ApiError, ErrorKind, Event, Form, FwhostState, vocabulary};
use rpc::Connections;
use runtime::{StopToken, beat};
use tokio::sync::{Mutex as AsyncMutex, mpsc, oneshot};
use tokio::time::error::Elapsed;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::driver::{Driver, Fault};
use super::model::{Action, Effect, Model, Reading, Rules};
use super::options::{Kind, PowerOptions, duration as seconds};
use super::ports::Services;
use super::restart::Restarter;

/// Requests that wait for one power device.
const MAX_WAITING: usize = 32;

/// Pause before a power device that gave no sensible answer is asked again.
const RETRY: Duration = Duration::from_secs(5);

/// Time for one start or stop of a service that is bound to a power device.
const SERVICE_TIMEOUT: Duration = Duration::from_secs(30);

/// Time that the firmware host gets to say whether it prints, before a power device that is locked meanwhile is given its initial state.
const HOST_TIME: Duration = Duration::from_secs(5);

/// Pause between two looks whether it has.
const HOST_LOOK: Duration = Duration::from_millis(50);

/// What all devices share.
pub(crate) struct Shared {
    pub(crate) host: FwHost,
    pub(crate) connections: Arc<Connections>,
    pub(crate) services: Option<Arc<dyn Services>>,
    pub(crate) restarter: Arc<Restarter>,
}

impl Shared {
    fn is_printing(&self) -> bool {
        self.host.status().state == FwhostState::Ready && self.host.print_stats().is_some_and(|stats| stats.state == PrintState::Printing)
    }

    /// Whether a job is under way, also while the server has just been started and has not heard of it yet.
    async fn has_job_at_the_start(&self) -> bool {
        let until = Instant::now() + HOST_TIME;
        while Instant::now() < until {
            match self.host.status().state {
                FwhostState::Ready => match self.host.print_stats() {
                    Some(stats) => return stats.state.is_active(),
                    None => sleep(HOST_LOOK).await,
                },
                FwhostState::Startup | FwhostState::Disconnected => sleep(HOST_LOOK).await,
                FwhostState::Shutdown | FwhostState::Error => return false,
            }
        }
        false
    }
}

/// What a worker is sent.
pub(crate) enum Message {
    /// Ask the device, unless that was begun after `asked`.
    Query { asked: Instant, reply: oneshot::Sender<PowerState> },
    /// Switch it.
    Switch { action: Action, forced: bool, reply: Option<oneshot::Sender<Result<PowerState, ApiError>>> },
    /// The firmware host has shut down.
    HostShutdown,
}

/// What is known of a device.
#[derive(Debug, Clone)]
struct Shown {
    state: PowerState,
    fault: Option<Arc<str>>,
    /// The worker waits for the device.
    is_contacting: bool,
}

/// One device.
pub(crate) struct Device {
    pub(crate) name: String,
    pub(crate) options: PowerOptions,
    /// Time that the driver gets to answer once.
    limit: Duration,
    shown: Mutex<Shown>,
    messages: mpsc::Sender<Message>,
    inbox: AsyncMutex<mpsc::Receiver<Message>>,
    driver: AsyncMutex<Box<dyn Driver>>,
    shared: Arc<Shared>,
}

impl Device {
    pub(crate) fn new(name: String, options: PowerOptions, driver: Box<dyn Driver>, shared: Arc<Shared>) -> Self {
        let (messages, inbox) = mpsc::channel(MAX_WAITING);
        let limit = driver.limit(options.timeout);
        let shown = Mutex::new(Shown { state: PowerState::Init, fault: None, is_contacting: false });
        Self { name, options, limit, shown, messages, inbox: AsyncMutex::new(inbox), driver: AsyncMutex::new(driver), shared }
    }

    /// As it is known.
    pub(crate) fn status(&self, form: Form) -> PowerStatus {
        let shown = self.shown.lock().clone();
        let is_shutdown = self.shared.host.status().state == FwhostState::Shutdown;
        PowerStatus {
            device: self.name.clone(),
            status: shown.state,
            locked_while_printing: self.options.locked_while_printing,
            kind: vocabulary::power_type(self.options.kind().as_str(), form),
            is_shutdown: (self.options.kind() == Kind::FirmwareDevice).then_some(is_shutdown),
            error: shown.fault.map(|fault| fault.to_string()),
        }
    }

    /// The state after asking the device; the known one when it does not answer in time.
    pub(crate) async fn query(&self) -> PowerState {
        let shown = self.shown.lock().clone();
        if shown.state == PowerState::Init && shown.is_contacting {
            return PowerState::Init;
        }
        let (reply, answer) = oneshot::channel();
        if self.messages.try_send(Message::Query { asked: Instant::now(), reply }).is_ok()
            && let Ok(Ok(state)) = timeout(self.patience(), answer).await
        {
            return state;
        }
        self.shown.lock().state
    }

    pub(crate) async fn switch(&self, action: Action, forced: bool) -> Result<PowerState, ApiError> {
        let (reply, answer) = oneshot::channel();
        let busy = || ApiError::new(ErrorKind::TooMany, format!("Too many requests wait for the device {}", self.name));
        self.messages.try_send(Message::Switch { action, forced, reply: Some(reply) }).map_err(|_| busy())?;
        match timeout(self.patience(), answer).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err(ApiError::unavailable(format!("The device {} is not served", self.name))),
            Err(_) => Err(ApiError::new(ErrorKind::Timeout, format!("The device {} does not answer in time", self.name))),
        }
    }

    /// What a batch shows for a device that was not switched: the state of one that is locked, else `error`.
    pub(crate) fn state_after_refusal(&self) -> PowerState {
        if self.options.locked_while_printing && self.shared.is_printing() { self.shown.lock().state } else { PowerState::Error }
    }

    pub(crate) fn tell(&self, message: Message) {
        if self.messages.try_send(message).is_err() {
            tracing::error!(device = self.name, "a power device does not keep up and misses a request");
        }
    }

    /// The longest that a caller waits: for a look and a switch, both answered at the last moment.
    fn patience(&self) -> Duration {
        self.limit * 2 + Duration::from_secs(1)
    }
}

/// Works until `stop`. The device is left as it is then.
pub(crate) async fn run(device: Arc<Device>, stop: StopToken) {
    tokio::select! {
        () = stop.cancelled() => {}
        () = work(&device) => {}
    }
}

async fn work(device: &Device) {
    let mut inbox = device.inbox.lock().await;
    let mut driver = device.driver.lock().await;
    let rules = Rules { initial: device.options.initial_state, restricted: device.options.restrict_action_processing };
    let now = Instant::now();
    let model = Model::new(rules);
    let mut worker =
        Worker { device, driver: &mut **driver, model, begun: now, contacted_at: now, off_at: None, timer: None, owed: Vec::new() };
    worker.refresh().await;
    loop {
        worker.act().await;
        let (next, timer, off_at) = (worker.next_contact(), worker.timer, worker.off_at);
        tokio::select! {
            received = inbox.recv() => match received {
                Some(message) => worker.take(message).await,
                None => return,
            },
            reading = worker.driver.watch() => worker.apply_seen(reading).await,
            () = due(next) => worker.refresh().await,
            () = due(timer) => {
                worker.timer = None;
                worker.by_itself(Action::Off, "its timer has run out").await;
            }
            () = due(off_at) => {
                worker.off_at = None;
                if device.shared.host.status().state == FwhostState::Shutdown {
                    worker.by_itself(Action::Off, "the firmware host has shut down").await;
                }
            }
        }
    }
}

async fn due(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => pending().await,
    }
}

struct Worker<'d> {
    device: &'d Device,
    driver: &'d mut dyn Driver,
    model: Model,
    /// When the last look began.
    begun: Instant,
    /// When the device was last talked to.
    contacted_at: Instant,
    /// When a shutdown of the firmware host switches it off.
    off_at: Option<Instant>,
    /// When it goes off by itself.
    timer: Option<Instant>,
    /// What follows from changes and is not done yet, because whoever asked gets the answer first.
    owed: Vec<Effect>,
}

impl Worker<'_> {
    async fn take(&mut self, message: Message) {
        match message {
            // Nobody waits any more: do not talk to the device for it.
            Message::Query { reply, .. } if reply.is_closed() => {}
            Message::Query { asked, reply } => {
                if self.begun < asked {
                    self.refresh().await;
                }
                let _ = reply.send(self.model.state);
            }
            Message::Switch { reply: Some(reply), .. } if reply.is_closed() => {}
            Message::Switch { action, forced, reply: Some(reply) } => {
                let outcome = self.request(action, forced).await;
                let _ = reply.send(outcome.map(|_| self.model.state));
            }
            Message::Switch { action, reply: None, .. } => self.by_itself(action, "a job was queued").await,
            Message::HostShutdown => self.off_at = Some(Instant::now() + seconds(self.device.options.off_when_shutdown_delay)),
        }
    }

    /// Nobody waits for the outcome.
    async fn by_itself(&mut self, action: Action, because: &str) {
        let device = &self.device.name;
        match self.request(action, false).await {
            Ok(true) => tracing::info!(device, ?action, because, "a power device was switched"),
            Ok(false) => {}
            Err(error) => tracing::warn!(device, ?action, because, %error, "power device not switched"),
        }
    }

    /// Switches unless it is so already; whether it had to.
    async fn request(&mut self, action: Action, forced: bool) -> Result<bool, ApiError> {
        self.refresh().await;
        let wanted = action.wants(self.model.state);
        let reached = if wanted { PowerState::On } else { PowerState::Off };
        if self.model.state == reached {
            return Ok(false);
        }
        let device = self.device;
        if device.options.locked_while_printing && !forced && device.shared.is_printing() {
            return Err(ApiError::bad_request(format!("Unable to change power for {} while printing", device.name)));
        }
        self.switch(wanted).await.map(|()| true)
    }

    async fn switch(&mut self, on: bool) -> Result<(), ApiError> {
        self.contacting();
        let outcome = timeout(self.device.limit, self.driver.switch(on)).await;
        let outcome = self.contacted(outcome);
        self.timer = None;
        let (reading, failed) = match outcome {
            Ok(is_on) => (Reading::from(is_on), None),
            Err(fault) => {
                let message = format!("Error setting the status of device {}: {}", self.device.name, fault.message);
                (Reading::Fault(fault.message), Some(ApiError::new(fault.kind, message)))
            }
        };
        let effects = self.model.switched(reading);
        self.carry_out(effects);
        failed.map_or(Ok(()), Err)
    }

    /// Asks the device.
    async fn refresh(&mut self) {
        self.begun = Instant::now();
        self.contacting();
        let outcome = timeout(self.device.limit, self.driver.query()).await;
        let reading = self.contacted(outcome).unwrap_or_else(Reading::from);
        self.apply_seen(reading).await;
    }

    async fn apply_seen(&mut self, reading: Reading) {
        let effects = self.model.seen(reading);
        let [Effect::Apply(initial)] = effects[..] else { return self.carry_out(effects) };
        let options = &self.device.options;
        // An output of the firmware is away, too, when the connection to a firmware host that prints is made anew.
        let may_wait = options.locked_while_printing || options.kind() == Kind::FirmwareDevice;
        if may_wait && self.device.shared.has_job_at_the_start().await {
            tracing::info!(device = self.device.name, "the initial state is not set: the printer prints");
            self.carry_out(vec![Effect::Notify]);
        } else if let Err(error) = self.switch(initial).await {
            tracing::warn!(device = self.device.name, %error, "the initial state could not be set");
        }
    }

    fn contacting(&self) {
        self.device.shown.lock().is_contacting = true;
    }

    fn contacted<T>(&mut self, outcome: Result<Result<T, Fault>, Elapsed>) -> Result<T, Fault> {
        self.device.shown.lock().is_contacting = false;
        self.contacted_at = Instant::now();
        outcome.unwrap_or_else(|_| Err(Fault::new(format!("no answer within {} s", self.device.limit.as_secs_f64()))))
    }

    fn carry_out(&mut self, effects: Vec<Effect>) {
        self.show();
        if self.model.state == PowerState::Off && self.device.options.restart_fwhost_when_powered {
            self.device.shared.restarter.unpowered(&self.device.name);
        }
        for effect in effects {
            match effect {
                Effect::Notify => {
                    self.device.shared.connections.emit_in_form(|form| Event::PowerChanged(self.device.status(form)));
                }
                Effect::StartTimer if self.driver.has_timer() => {}
                Effect::StartTimer => self.timer = self.device.options.timer.map(|after| Instant::now() + seconds(after)),
                // `apply_seen` has done it.
                Effect::Apply(_) => {}
                Effect::Services(_) | Effect::Powered => self.owed.push(effect),
            }
        }
    }

    /// Makes the state visible; a fault is logged when it comes, changes and goes.
    fn show(&self) {
        let mut shown = self.device.shown.lock();
        let (device, state) = (&self.device.name, self.model.state.as_str());
        match &self.model.fault {
            Some(fault) if shown.fault.as_ref() != Some(fault) => tracing::warn!(device, state, %fault, "power device does not work"),
            None if shown.fault.is_some() && self.model.state != PowerState::Init => {
                tracing::info!(device, state, "power device works again");
            }
            _ => {}
        }
        (shown.state, shown.fault) = (self.model.state, self.model.fault.clone());
    }

    /// Does what follows from changes.
    async fn act(&mut self) {
        for effect in std::mem::take(&mut self.owed) {
            let (device, options) = (self.device, &self.device.options);
            match effect {
                Effect::Powered if options.restart_fwhost_when_powered && self.model.state == PowerState::On => {
                    device.shared.restarter.powered(&device.name, seconds(options.restart_delay));
                }
                Effect::Services(start) => {
                    for service in options.services() {
                        run_service(device, service, start).await;
                    }
                }
                _ => {}
            }
        }
    }

    /// When the device is asked without anybody wanting to know.
    fn next_contact(&self) -> Option<Instant> {
        let poll = self.device.options.poll_interval.map(seconds);
        let pause = if self.model.fault.is_some() { Some(poll.map_or(RETRY, |poll| poll.max(RETRY))) } else { poll };
        pause.map(|pause| beat::nearest(self.contacted_at + pause, pause))
    }
}

async fn run_service(device: &Device, service: String, start: bool) {
    let Some(services) = &device.shared.services else { return };
    let outcome = timeout(SERVICE_TIMEOUT, services.run(service.clone(), start)).await;
    let failed = outcome.unwrap_or_else(|_| Err(format!("not done within {} s", SERVICE_TIMEOUT.as_secs()))).err();
    if let Some(error) = failed {
        tracing::warn!(device = device.name, service, start, error, "a bound service could not be started or stopped");
    }
}
