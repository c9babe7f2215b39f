//! Type `gpio`: a relay or transistor on a pin.

use std::sync::Arc;

use rpc::transfer::Boxed;

use super::{Driver, Fault};
use crate::gpio::{Gpio, GpioError, Line, Output, Pin};
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
        Box::new(GpioSwitch { pin: LazyPin { gpio: gpio.clone(), pin: self.pin, initial: self.initial, line: None } })
    }
}

struct GpioSwitch {
    pin: LazyPin,
}

/// An output that is opened at first use and, when that fails, at the next one.
pub(super) struct LazyPin {
    pub(super) gpio: Gpio,
    pub(super) pin: Pin,
    /// Level to begin with. Unset: the level that it has.
    pub(super) initial: Option<bool>,
    pub(super) line: Option<Arc<Line<dyn Output>>>,
}

impl LazyPin {
    /// Does something with the line on a thread that may wait: some chips sit behind slow buses.
    pub(super) async fn with<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&dyn Output) -> Result<T, GpioError> + Send + 'static,
    ) -> Result<T, Fault> {
        let (known, gpio, pin, initial) = (self.line.clone(), self.gpio.clone(), self.pin.clone(), self.initial);
        let done = tokio::task::spawn_blocking(move || {
            let line = match known {
                Some(line) => line,
                None => Arc::new(gpio.output(&pin, initial)?),
            };
            let outcome = work(&**line);
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
