//! The task behind one button: reads its line, and asks for it again when it cannot be read.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use runtime::StopToken;
use tokio::sync::mpsc::{self, Sender, error::TrySendError};
use tokio::time::{Instant, sleep, sleep_until};

use super::actions;
use super::debounce::{Change, Debounce, MAX_BOUNCES, NOISE_WINDOW, Noisy};
use super::options::ConfiguredButton;
use super::service::Parts;
use crate::gpio::{Claim, Gpio, GpioError, Input, Pin};

/// Events of one button that wait for the template of an earlier one; further ones are lost.
pub const MAX_WAITING: usize = 16;

/// Time after which a line that cannot be had or read is asked for again.
const RETRY: Duration = Duration::from_secs(5);

/// Time for which a line that is nothing but noise is left alone.
const REST: Duration = Duration::from_secs(60);

/// Why a line cannot be listened to.
#[derive(Debug, PartialEq, Eq)]
enum Fault {
    Line(GpioError),
    Noise,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(error) => error.fmt(f),
            Self::Noise => write!(
                f,
                "more than {MAX_BOUNCES} changes within {} seconds: a loose wire, or a pull-up (`^`) or pull-down (`~`) is missing",
                NOISE_WINDOW.as_secs()
            ),
        }
    }
}

impl From<GpioError> for Fault {
    fn from(error: GpioError) -> Self {
        Self::Line(error)
    }
}

impl From<Noisy> for Fault {
    fn from(Noisy: Noisy) -> Self {
        Self::Noise
    }
}

/// Listens and acts until `stop`.
pub(super) async fn run(button: &ConfiguredButton, parts: &Parts, stop: StopToken) {
    let (sender, events) = mpsc::channel(MAX_WAITING);
    let queue = Queue(sender);
    let listening = async move {
        tokio::select! {
            () = stop.cancelled() => {}
            () = listen(button, parts, &queue) => {}
        }
        // The queue ends here, and with it the actions.
        drop(queue);
    };
    tokio::join!(listening, actions::carry_out(button, parts, events));
}

async fn listen(button: &ConfiguredButton, parts: &Parts, queue: &Queue) {
    let title = format!("button {}", button.name);
    let is_shown = AtomicBool::new(false);
    let works = || {
        if is_shown.swap(false, Ordering::Relaxed) {
            (parts.warn)(&title, None);
        }
    };
    let mut told = None;
    loop {
        let fault = match open(&parts.gpio, &button.options.pin).await {
            Ok((_claim, line, level)) => {
                // A line that is only noise can be opened, too: that proves nothing.
                if told != Some(Fault::Noise) {
                    told = None;
                    works();
                }
                follow(button, &*line, level, queue, &works).await
            }
            Err(error) => error.into(),
        };
        if told.as_ref() != Some(&fault) {
            tracing::warn!(button = button.name, %fault, "the line of a button cannot be used");
            is_shown.store(true, Ordering::Relaxed);
            (parts.warn)(&title, Some(format!("[{title}] The line cannot be used: {fault}")));
        }
        sleep(if fault == Fault::Noise { REST } else { RETRY }).await;
        told = Some(fault);
    }
}

/// The line, which is ours as long as the claim is kept, and its level, from a thread that may wait: some chips sit behind slow buses.
async fn open(gpio: &Gpio, pin: &Pin) -> Result<(Claim, Box<dyn Input>, bool), GpioError> {
    let claim = gpio.claim(pin)?;
    let opened = tokio::task::spawn_blocking(move || {
        let line = claim.input()?;
        let level = line.level()?;
        Ok((claim, line, level))
    });
    opened.await.map_err(|error| GpioError::System(error.to_string()))?
}

/// Follows a line until it cannot be read any more. A change that settled shows that it `works`.
async fn follow(button: &ConfiguredButton, line: &dyn Input, level: bool, queue: &Queue, works: &impl Fn()) -> Fault {
    let options = &button.options;
    let mut debounce = Debounce::new(options.debounce_period, level, Instant::now());
    loop {
        let due = debounce.due();
        let settled = tokio::select! {
            // What happened before the end of the delay must be known at its end.
            biased;
            edge = line.edge() => match edge.map_err(Fault::from).and_then(|edge| Ok(debounce.edge(edge)?)) {
                Ok(settled) => settled,
                Err(fault) => return fault,
            },
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => debounce.settle(Instant::now()),
        };
        if settled.is_some() {
            works();
        }
        if let Some(change) = settled.filter(|change| change.elapsed >= options.minimum_event_time) {
            queue.add(&button.name, change);
        }
    }
}

/// Where events wait for the templates of earlier ones.
pub(super) struct Queue(pub(super) Sender<Change>);

impl Queue {
    pub(super) fn add(&self, button: &str, change: Change) {
        if let Err(TrySendError::Full(_)) = self.0.try_send(change) {
            tracing::warn!(button, "lost: {MAX_WAITING} events wait for a template already");
        }
    }
}
