//! Type `gpio`: a relay or transistor on a pin.

use std::sync::Arc;

use rpc::transfer::Boxed;

use super::{Driver, Fault};
use crate::gpio::{Claim, Gpio, GpioError, Output, Pin};
use crate::power::build::Section;
use crate::power::model::Reading;
use crate::power::options::{PinOptions, PowerOptions};

pub(crate) struct GpioRecipe {
    pin: Pin,
    initial: Option<bool>,
}

pub(crate) fn read(options: &PowerOptions, section: &mut Section<'_, '_, '_>) -> Option<GpioRecipe> {
    Some(GpioRecipe { pin: section.take::<PinOptions>()?.pin, initial: options.initial_state })
}

impl GpioRecipe {
    pub(crate) fn driver(self, gpio: &Gpio) -> Box<dyn Driver> {
        Box::new(GpioSwitch { pin: LazyPin::new(gpio, self.pin, self.initial) })
    }
}

struct GpioSwitch {
    pin: LazyPin,
}

/// An output that is opened at first use and, when that fails, at the next one.
pub(super) struct LazyPin {
    gpio: Gpio,
    pin: Pin,
    /// Level to begin with. Unset: the level that it has.
    initial: Option<bool>,
    line: Option<Arc<dyn Output>>,
    /// Dropped last: the line is free when the kernel has it back.
    claim: Option<Arc<Claim>>,
}

impl LazyPin {
    /// The line is taken at once: of two power devices that name it, the first one of the configuration has it.
    pub(super) fn new(gpio: &Gpio, pin: Pin, initial: Option<bool>) -> Self {
        Self { claim: gpio.claim(&pin).ok().map(Arc::new), gpio: gpio.clone(), pin, initial, line: None }
    }

    /// Does something with the line on a thread that may wait: some chips sit behind slow buses.
    pub(super) async fn with<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&dyn Output) -> Result<T, GpioError> + Send + 'static,
    ) -> Result<T, Fault> {
        let claim = match &self.claim {
            Some(claim) => claim.clone(),
            None => self.claim.insert(Arc::new(self.gpio.claim(&self.pin).map_err(Fault::new)?)).clone(),
        };
        let (known, initial) = (self.line.clone(), self.initial);
        let done = tokio::task::spawn_blocking(move || {
            let line = match known {
                Some(line) => line,
                None => claim.output(initial)?.into(),
            };
            let outcome = work(&*line);
            Ok::<_, GpioError>((line, outcome))
        });
        let (line, outcome) = done.await.map_err(Fault::new)?.map_err(Fault::new)?;
        self.line = Some(line);
        outcome.map_err(Fault::new)
    }
}

impl Driver for GpioSwitch {
    fn query(&mut self) -> Boxed<'_, Result<Reading, Fault>> {
        Box::pin(async move { self.pin.with(|line| line.level()).await.map(Reading::from) })
    }

    fn switch(&mut self, on: bool) -> Boxed<'_, Result<bool, Fault>> {
        Box::pin(async move { self.pin.with(move |line| line.set(on)).await.map(|()| on) })
    }
}
