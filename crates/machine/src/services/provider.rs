//! What the ways to manage services have in common.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;

use protocol::machine::UnitState;
use protocol::{ApiError, ErrorKind};

use super::options::ShutdownAction;
use crate::system::virtualization::Virtualization;

/// A future of a trait object.
pub(crate) type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// States of services by name (without the ending).
pub(crate) type States = BTreeMap<String, UnitState>;

/// What can be done to a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Start,
    Stop,
    Restart,
}

impl Action {
    /// The verb of the tools.
    pub(super) fn verb(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Restart => "restart",
        }
    }
}

/// What can be done to the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PowerAction {
    Reboot,
    Shutdown(ShutdownAction),
}

impl PowerAction {
    /// The verb of `systemctl`.
    pub(super) fn verb(self) -> &'static str {
        match self {
            Self::Reboot => "reboot",
            Self::Shutdown(ShutdownAction::Poweroff) => "poweroff",
            Self::Shutdown(ShutdownAction::Halt) => "halt",
        }
    }
}

/// What a provider tells while it watches.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum News {
    /// All services that are known to the manager.
    All(States),
    /// One of them changed.
    One(String, UnitState),
}

/// Why a provider could not do it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ProviderError {
    /// There is no connection to the manager: 503.
    Lost(String),
    /// The manager refused or failed: 500.
    Failed(String),
}

impl fmt::Display for ProviderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Lost(text) | Self::Failed(text)) = self;
        f.write_str(text)
    }
}

impl From<ProviderError> for ApiError {
    fn from(error: ProviderError) -> Self {
        match error {
            ProviderError::Lost(text) => Self::unavailable(text),
            ProviderError::Failed(text) => Self::new(ErrorKind::Internal, text),
        }
    }
}

/// A way to manage services and power.
pub(crate) trait Provider: Send + Sync {
    /// Its name in the configuration.
    fn name(&self) -> &'static str;
    /// Tells the states of all services, then what changes, until the manager is lost.
    fn watch<'a>(&'a self, tell: &'a (dyn Fn(News) + Send + Sync)) -> Boxed<'a, ProviderError>;
    /// Does it; the service is named without its ending and was checked.
    fn act<'a>(&'a self, action: Action, service: &'a str) -> Boxed<'a, Result<(), ProviderError>>;
    /// Does it to the machine.
    fn power(&self, action: PowerAction) -> Boxed<'_, Result<(), ProviderError>>;
    /// How the machine is virtualised.
    fn virtualization(&self) -> Boxed<'_, Virtualization>;
    /// What this process may not do although it should; sentences for the owner.
    fn missing_rights(&self, shutdown: ShutdownAction) -> Boxed<'_, Vec<String>>;
    /// True when nothing can be done without sudo.
    fn needs_sudo(&self) -> bool {
        false
    }
    /// The service that this process is, where the manager tells its services so.
    fn own_service(&self) -> Option<String> {
        None
    }
    /// True when the manager carries a restart of our own service to its end without us.
    fn can_restart_us(&self) -> bool {
        true
    }
}

/// Nobody.
pub(super) struct Nobody;

impl Nobody {
    fn refused() -> ProviderError {
        ProviderError::Failed("[machine] provider is none".to_owned())
    }
}

impl Provider for Nobody {
    fn name(&self) -> &'static str {
        "none"
    }

    fn watch<'a>(&'a self, _: &'a (dyn Fn(News) + Send + Sync)) -> Boxed<'a, ProviderError> {
        Box::pin(std::future::pending())
    }

    fn act<'a>(&'a self, _: Action, _: &'a str) -> Boxed<'a, Result<(), ProviderError>> {
        Box::pin(async { Err(Self::refused()) })
    }

    fn power(&self, _: PowerAction) -> Boxed<'_, Result<(), ProviderError>> {
        Box::pin(async { Err(Self::refused()) })
    }

    fn virtualization(&self) -> Boxed<'_, Virtualization> {
        Box::pin(async { Virtualization::unknown() })
    }

    fn missing_rights(&self, _: ShutdownAction) -> Boxed<'_, Vec<String>> {
        Box::pin(async { Vec::new() })
    }
}
