//! The handle of everything here.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fwhost::FwHost;
use parking_lot::Mutex;
use protocol::ApiError;
use protocol::error::ApiResult;
use protocol::vocabulary::Form;
use rpc::{Call, Connections};
use runtime::{Supervisor, TaskTracker};
use serde_json::Value;
use zeroize::Zeroizing;

use crate::peripherals::Peripherals;
use crate::services::{Action, MachineOptions, PowerAction, Services};
use crate::statistics::Statistics;
use crate::sudo::need::Need;
use crate::sudo::{Password, Sudo, SudoInfo, SudoResponses, user_name};
use crate::system::{DEFAULT_CORE, InstanceIds, System, SystemInfo, unit};
use crate::{AlertBoard, Roots};

/// Shows the owner a warning, by its id, in place of the one before; none takes it away.
pub type Warn = Arc<dyn Fn(&str, Option<String>) + Send + Sync>;

/// Methods that macros of the firmware may call.
const SHUTDOWN_MACRO: &str = "shutdown_machine";
const REBOOT_MACRO: &str = "reboot_machine";

/// Id of the warning that the password of the configuration is wrong.
const SUDO_PASSWORD: &str = "sudo_password";

/// What sudo is wanted for where services cannot be managed without it.
const SUDO_FOR_SERVICES: &str = "The server needs it to start and stop services and to switch the machine off.";
/// What starts every successful answer to a password.
const CONFIRMED: &str = "Sudo password successfully set.";
/// What follows when the password was needed.
const SERVICES_MANAGED: &str = "Services can be managed.";

/// Name of the firmware's service when it cannot be found out.
const DEFAULT_FIRMWARE: &str = "klipper";
/// Time for a stopped service to let go of its log.
const LET_GO: Duration = Duration::from_secs(20);
/// Pause between two looks whether it did.
const LOOK: Duration = Duration::from_millis(200);

/// What the machine needs, made by the build.
pub struct Parts {
    /// Whom to tell.
    pub connections: Arc<Connections>,
    /// Where the files of the system are.
    pub roots: Roots,
    /// The data folder, with the list of allowed services.
    pub data: PathBuf,
    /// `[machine]`.
    pub options: MachineOptions,
    /// The firmware host: its service, its macros.
    pub host: FwHost,
    /// Restarts this server within its process.
    pub restart: Box<dyn Fn() + Send + Sync>,
    /// Where people see what the machine needs of them.
    pub board: Arc<dyn AlertBoard>,
    /// Where warnings go.
    pub warn: Warn,
}

/// The host machine.
pub struct Machine {
    pub(crate) statistics: Arc<Statistics>,
    pub(crate) services: Arc<Services>,
    sudo: Arc<Sudo>,
    sudo_password: Mutex<Option<Password>>,
    need: Arc<Need>,
    pub(crate) peripherals: Peripherals,
    pub(crate) roots: Roots,
    system: System,
    host: FwHost,
    warn: Warn,
}

impl Machine {
    /// Nothing is asked yet.
    #[must_use]
    pub fn new(parts: Parts) -> Arc<Self> {
        let Parts { connections, roots, data, mut options, host, restart, board, warn } = parts;
        let sudo = Arc::new(Sudo::default());
        let peripherals = Peripherals::new(roots.clone(), &data);
        let statistics = Arc::new(Statistics::new(connections.clone(), roots.clone()));
        let need = Arc::new(Need::new(connections.clone(), board));
        let sudo_password = options.sudo_password.take().map(|password| Zeroizing::new(password.expose().to_owned()).into());
        let services = Services::new(options, &data, roots.clone(), connections, &sudo, restart, warn.clone());
        let system = System::new(roots.clone());
        let (services, sudo_password) = (Arc::new(services), Mutex::new(sudo_password));
        Arc::new(Self { statistics, services, sudo, sudo_password, need, peripherals, roots, system, host, warn })
    }

    /// Begins to measure and to follow the services, and offers the machine to macros.
    pub fn start(self: &Arc<Self>, supervisor: &Supervisor) {
        let statistics = self.statistics.clone();
        supervisor.spawn("process statistics", move |stop| statistics.clone().run(stop));
        let services = self.services.clone();
        supervisor.spawn("services", move |stop| services.clone().run(stop));
        let machine = self.clone();
        let stop = supervisor.stop_token().clone();
        supervisor.spawn_once("rights", async move {
            stop.run_until_cancelled(machine.check_rights()).await;
        });
        self.offer_to_macros(SHUTDOWN_MACRO, self.services.shutdown_action(), supervisor.tracker());
        self.offer_to_macros(REBOOT_MACRO, PowerAction::Reboot, supervisor.tracker());
    }

    /// Says what this server may not do although it should.
    async fn check_rights(&self) {
        let turn = self.sudo.turn().await;
        let password = self.sudo_password.lock().take();
        if let Some(password) = password
            && let Some(fault) = self.sudo.begin_with(&turn, password).await
        {
            (self.warn)(SUDO_PASSWORD, Some(fault));
        }
        if self.services.needs_sudo() && !self.sudo.works().await {
            self.need.ask(turn, SUDO_FOR_SERVICES).await;
        } else {
            self.need.met(&turn).await;
            drop(turn);
        }
        self.services.missing_rights().await.into_iter().for_each(|sentence| (self.warn)(&sentence.clone(), Some(sentence)));
    }

    /// Who we are, what sudo is needed for and, when asked, whether it works.
    pub(crate) async fn sudo_info(&self, check: bool) -> SudoInfo {
        let sudo_access = if check { Some(self.sudo.works().await) } else { None };
        let request_messages = self.need.reasons();
        SudoInfo { sudo_access, linux_user: user_name(&self.roots), sudo_requested: !request_messages.is_empty(), request_messages }
    }

    /// Keeps the password for sudo if it is the right one; then nobody has to be asked for it any more.
    pub(crate) async fn set_sudo_password(&self, call: &Call, password: Password) -> ApiResult<SudoResponses> {
        let turn = self.sudo.turn_now()?;
        self.sudo.set_password(&turn, password).await?;
        let mut sudo_responses = vec![CONFIRMED.to_owned()];
        if self.need.met(&turn).await {
            sudo_responses.push(SERVICES_MANAGED.to_owned());
            let need = self.need.clone();
            call.after_answer(move || need.tell());
        }
        Ok(SudoResponses { sudo_responses, is_restarting: false })
    }

    fn offer_to_macros(self: &Arc<Self>, name: &'static str, action: PowerAction, tasks: &TaskTracker) {
        let (services, tasks) = (self.services.clone(), tasks.clone());
        let offered = self.host.register_remote_method(name, move |_| {
            let services = services.clone();
            tasks.spawn(async move {
                if let Err(error) = services.power(action).await {
                    tracing::warn!(name, %error, "a macro could not switch the machine off");
                }
            });
        });
        if let Err(error) = offered {
            tracing::warn!(name, %error, "macros cannot switch the machine off");
        }
    }

    pub(crate) async fn system_info(&self, form: Form) -> SystemInfo {
        let (services, virtualization) = tokio::join!(self.services.known(form), self.services.virtualization());
        let core = self.system.own_unit().await.unwrap_or_else(|| DEFAULT_CORE.to_owned());
        let [core, firmware] = [core, self.firmware_unit()].map(|unit| self.services.shown(&unit, form));
        self.system.info(services, virtualization, InstanceIds::new(core, firmware)).await
    }

    /// Starts, stops or restarts a service.
    pub(crate) async fn act(&self, action: Action, service: &str) -> ApiResult<()> {
        let own = self.system.own_unit().await;
        self.services.act(action, service, own.as_deref()).await
    }

    /// Why this service may not be started and stopped with a device: it is not in the list of allowed services, or it is this server.
    #[must_use]
    pub fn refuses_to_bind(&self, service: &str) -> Option<String> {
        self.services.refuses_to_bind(service)
    }

    /// Starts or stops a service.
    ///
    /// # Errors
    /// What keeps it from that: not allowed, not installed, no rights, no manager.
    pub async fn start_or_stop(&self, service: &str, start: bool) -> ApiResult<()> {
        self.act(if start { Action::Start } else { Action::Stop }, service).await
    }

    /// The service that runs us, without its ending.
    #[must_use]
    pub fn own_unit(&self) -> Option<String> {
        unit::of_process(&self.roots, "self")
    }

    /// Operating system, processor and service, one a line, for the log.
    pub async fn description(&self) -> String {
        self.system.description().await
    }

    /// The service of the firmware host.
    fn firmware_unit(&self) -> String {
        self.firmware_unit_by_process().unwrap_or_else(|| DEFAULT_FIRMWARE.to_owned())
    }

    /// By the process that answers as the firmware host.
    fn firmware_unit_by_process(&self) -> Option<String> {
        let status = self.host.status();
        let info: Value = serde_json::from_str(status.info.as_ref()?).ok()?;
        unit::of_process(&self.roots, &info.get("process_id")?.as_u64()?.to_string())
    }

    /// Begins a new log of the firmware host: its service is stopped, the log renamed, the service started again. wire/1-core.md section 8.7.
    ///
    /// # Errors
    /// 400 when the service or the log is not known, else those of the provider.
    pub async fn roll_over_firmware_log(&self) -> ApiResult<()> {
        let unit = self.firmware_unit();
        let log = self.firmware_log().ok_or_else(|| ApiError::bad_request("The log of the firmware host is not known"))?;
        if !tokio::fs::metadata(&log).await.is_ok_and(|metadata| metadata.is_file()) {
            return Err(ApiError::bad_request(format!("The log {} of the firmware host does not exist", log.display())));
        }
        self.services.act(Action::Stop, &unit, None).await?;
        let stopped = tokio::time::timeout(LET_GO, async {
            while self.services.is_running(&unit) {
                tokio::time::sleep(LOOK).await;
            }
        });
        let renamed = match stopped.await {
            Ok(()) => tokio::fs::rename(&log, with_time(&log))
                .await
                .map_err(|error| ApiError::internal(format!("{} cannot be renamed: {error}", log.display()))),
            Err(_) => Err(ApiError::internal(format!("Service '{unit}' did not stop"))),
        };
        // Whatever became of the log: the printer is to come back.
        self.services.act(Action::Start, &unit, None).await?;
        renamed
    }

    fn firmware_log(&self) -> Option<PathBuf> {
        let status = self.host.status();
        let info: Value = serde_json::from_str(status.info.as_ref()?).ok()?;
        info.get("log_file")?.as_str().map(PathBuf::from).filter(|log| log.extension().is_some_and(|extension| extension == "log"))
    }
}

/// `klippy.log.2026-01-31_12-00-00`, local time.
fn with_time(log: &Path) -> PathBuf {
    let mut name = log.as_os_str().to_owned();
    name.push(jiff::Zoned::now().strftime(".%Y-%m-%d_%H-%M-%S").to_string());
    name.into()
}
