//! Chips that tests see and move.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use rpc::transfer::Boxed;
use tokio::sync::{Mutex as AsyncMutex, mpsc};
use tokio::time::Instant as Moment;

use super::{Chips, Edge, GpioError, Input, Output, Pin};

type Place = (String, u32);

#[derive(Default)]
struct State {
    /// Electrical levels of outputs.
    levels: HashMap<Place, bool>,
    /// Every electrical level that was set, with its time.
    history: Vec<(Place, bool, Instant)>,
    watchers: HashMap<Place, mpsc::UnboundedSender<(bool, Moment)>>,
    fault: Option<String>,
}

/// Any number of chips with any number of lines.
#[derive(Clone, Default)]
pub(crate) struct SimulatedChips {
    state: Arc<Mutex<State>>,
}

impl SimulatedChips {
    /// The electrical level of an output; none when the line was never one.
    pub(crate) fn level(&self, pin: &str) -> Option<bool> {
        self.state.lock().levels.get(&place(&Pin::read(pin).unwrap())).copied()
    }

    /// Electrical levels in the order in which they were set, with their times.
    pub(crate) fn history(&self) -> Vec<(bool, Instant)> {
        self.state.lock().history.iter().map(|(_, level, at)| (*level, *at)).collect()
    }

    /// Lets everything fail, or no more.
    pub(crate) fn fail(&self, fault: Option<&str>) {
        self.state.lock().fault = fault.map(str::to_owned);
    }

    /// Moves an input from outside.
    pub(crate) fn press(&self, pin: &str, level: bool) {
        let place = place(&Pin::read(pin).unwrap());
        let mut state = self.state.lock();
        state.levels.insert(place.clone(), level);
        if let Some(watcher) = state.watchers.get(&place) {
            let _ = watcher.send((level, Moment::now()));
        }
    }
}

fn place(pin: &Pin) -> Place {
    (pin.chip.clone(), pin.line)
}

struct SimulatedLine {
    state: Arc<Mutex<State>>,
    pin: Pin,
    edges: Option<AsyncMutex<mpsc::UnboundedReceiver<(bool, Moment)>>>,
}

impl SimulatedLine {
    fn read(&self) -> Result<bool, GpioError> {
        let state = self.state.lock();
        state.fault.clone().map_or(Ok(()), |fault| Err(GpioError::System(fault)))?;
        Ok(state.levels.get(&place(&self.pin)).copied().unwrap_or(false) ^ self.pin.is_inverted)
    }
}

impl Output for SimulatedLine {
    fn set(&self, level: bool) -> Result<(), GpioError> {
        let mut state = self.state.lock();
        state.fault.clone().map_or(Ok(()), |fault| Err(GpioError::System(fault)))?;
        let (place, level) = (place(&self.pin), level ^ self.pin.is_inverted);
        state.history.push((place.clone(), level, Instant::now()));
        state.levels.insert(place, level);
        Ok(())
    }

    fn level(&self) -> Result<bool, GpioError> {
        self.read()
    }
}

impl Input for SimulatedLine {
    fn level(&self) -> Result<bool, GpioError> {
        self.read()
    }

    fn edge(&self) -> Boxed<'_, Result<Edge, GpioError>> {
        Box::pin(async move {
            let edges = self.edges.as_ref().ok_or_else(|| GpioError::System("an output".to_owned()))?;
            let (level, at) = edges.lock().await.recv().await.ok_or_else(|| GpioError::System("the chip is gone".to_owned()))?;
            Ok(Edge { level: level ^ self.pin.is_inverted, at })
        })
    }
}

impl Chips for SimulatedChips {
    fn output(&self, pin: &Pin, initial: Option<bool>) -> Result<Box<dyn Output>, GpioError> {
        let line = SimulatedLine { state: self.state.clone(), pin: pin.clone(), edges: None };
        let kept = self.state.lock().levels.get(&place(pin)).copied();
        match (initial, kept) {
            (Some(level), _) => line.set(level)?,
            (None, None) => line.set(false)?,
            (None, Some(_)) => drop(line.read()?),
        }
        Ok(Box::new(line))
    }

    fn input(&self, pin: &Pin) -> Result<Box<dyn Input>, GpioError> {
        let (sender, edges) = mpsc::unbounded_channel();
        self.state.lock().watchers.insert(place(pin), sender);
        Ok(Box::new(SimulatedLine { state: self.state.clone(), pin: pin.clone(), edges: Some(AsyncMutex::new(edges)) }))
    }
}
