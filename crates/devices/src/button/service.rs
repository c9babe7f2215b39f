//! The handle: all buttons.

use std::sync::Arc;

use rpc::Connections;
use runtime::Supervisor;

use super::listener;
use super::options::ConfiguredButton;
use crate::gpio::Gpio;
use crate::script::Scripts;

/// Tells the owner what is wrong with something, by its name, or that it is all right again.
pub type Warn = Arc<dyn Fn(&str, Option<String>) + Send + Sync>;

/// What buttons are made of.
#[derive(Clone)]
pub struct Parts {
    /// Where lines come from.
    pub gpio: Gpio,
    /// Renders templates.
    pub scripts: Arc<Scripts>,
    /// Who is told.
    pub connections: Arc<Connections>,
    /// Told of lines that cannot be used.
    pub warn: Warn,
}

/// All buttons.
pub struct Buttons {
    configured: Arc<[ConfiguredButton]>,
    parts: Parts,
}

impl Buttons {
    /// The buttons of the configuration; [`Buttons::start`] lets them work.
    #[must_use]
    pub fn new(configured: Vec<ConfiguredButton>, parts: Parts) -> Self {
        Self { configured: configured.into(), parts }
    }

    /// True without any button.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.configured.is_empty()
    }

    /// Listens to all lines. A line that cannot be had is asked for again and again.
    pub fn start(&self, supervisor: &Supervisor) {
        for index in 0..self.configured.len() {
            let (configured, parts) = (self.configured.clone(), self.parts.clone());
            let name = format!("button {}", configured[index].name);
            supervisor.spawn(name, move |stop| {
                let (configured, parts) = (configured.clone(), parts.clone());
                async move { listener::run(&configured[index], &parts, stop).await }
            });
        }
    }
}
