//! The kernel's GPIO chips: character devices in `/dev`.

use std::path::Path;

use gpiocdev::chip::Chip;
use gpiocdev::line::{self, Direction, EdgeDetection, EdgeKind, Value};
use gpiocdev::request::{Builder, Config, Request};
use rpc::transfer::Boxed;
use tokio::io::unix::AsyncFd;

use super::{Bias, CONSUMER, Chips, Edge, GpioError, Input, Output, Pin, clock};

/// The chips of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct KernelChips;

impl Chips for KernelChips {
    fn output(&self, pin: &Pin, initial: Option<bool>) -> Result<Box<dyn Output>, GpioError> {
        let (chip, initial) = (chip(pin)?, initial.map(value));
        let initial = match initial {
            Some(level) => level,
            None => kept_level(&chip, pin)?,
        };
        let mut request = builder(pin, &chip);
        request.as_output(initial);
        Ok(Box::new(KernelOutput(request.request().map_err(|error| system(pin, &error))?)))
    }

    fn input(&self, pin: &Pin) -> Result<Box<dyn Input>, GpioError> {
        let mut request = builder(pin, &chip(pin)?);
        request.as_input().with_edge_detection(EdgeDetection::BothEdges);
        match pin.bias {
            Some(Bias::PullUp) => request.with_bias(line::Bias::PullUp),
            Some(Bias::PullDown) => request.with_bias(line::Bias::PullDown),
            None => &mut request,
        };
        let request = request.request().map_err(|error| system(pin, &error))?;
        // Its successor is unsafe; a request keeps its descriptor open for as long as it lives.
        #[expect(deprecated)]
        let watched = AsyncFd::new(request).map_err(|error| GpioError::System(error.to_string()))?;
        Ok(Box::new(KernelInput(watched)))
    }
}

fn chip(pin: &Pin) -> Result<Chip, GpioError> {
    Chip::from_path(Path::new("/dev").join(&pin.chip)).map_err(|error| system(pin, &error))
}

fn builder(pin: &Pin, chip: &Chip) -> Builder {
    let mut config = Config::default();
    config.with_line(pin.line);
    if pin.is_inverted {
        config.as_active_low();
    }
    let mut builder = Request::from_config(config);
    builder.on_chip(chip.path()).with_consumer(CONSUMER);
    builder
}

/// The logical level of a line that is an output, low for any other.
fn kept_level(chip: &Chip, pin: &Pin) -> Result<Value, GpioError> {
    let info = chip.line_info(pin.line).map_err(|error| system(pin, &error))?;
    if info.direction != Direction::Output {
        return Ok(Value::Inactive);
    }
    // Requested as it is: no direction, no level.
    let looked = builder(pin, chip).request().and_then(|request| request.lone_value());
    looked.map_err(|error| system(pin, &error))
}

struct KernelOutput(Request);

impl Output for KernelOutput {
    fn set(&self, level: bool) -> Result<(), GpioError> {
        self.0.set_lone_value(value(level)).map(drop).map_err(|error| GpioError::System(error.to_string()))
    }

    fn level(&self) -> Result<bool, GpioError> {
        self.0.lone_value().map(|level| level == Value::Active).map_err(|error| GpioError::System(error.to_string()))
    }
}

struct KernelInput(AsyncFd<Request>);

impl Input for KernelInput {
    fn level(&self) -> Result<bool, GpioError> {
        let level = self.0.get_ref().lone_value();
        level.map(|level| level == Value::Active).map_err(|error| GpioError::System(error.to_string()))
    }

    fn edge(&self) -> Boxed<'_, Result<Edge, GpioError>> {
        Box::pin(async move {
            let broken = |error: &dyn std::fmt::Display| GpioError::System(error.to_string());
            loop {
                let mut ready = self.0.readable().await.map_err(|error| broken(&error))?;
                let request = self.0.get_ref();
                if request.has_edge_event().map_err(|error| broken(&error))? {
                    let event = request.read_edge_event().map_err(|error| broken(&error))?;
                    return Ok(Edge { level: event.kind == EdgeKind::Rising, at: clock::moment(event.timestamp_ns) });
                }
                ready.clear_ready();
            }
        })
    }
}

fn value(level: bool) -> Value {
    if level { Value::Active } else { Value::Inactive }
}

fn system(pin: &Pin, error: &gpiocdev::Error) -> GpioError {
    GpioError::System(format!("{}/gpio{}: {error}", pin.chip, pin.line))
}
