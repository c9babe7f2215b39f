//! Fields that other components add to the records: spools used, sensor readings. Source: wire/2-files-jobs.md section 6.6.
//!
//! A component registers a field once and reports values whenever it has them; what becomes of a value is the field's [`Strategy`].

mod gathered;

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) use self::gathered::Gathered;
pub use self::gathered::MAX_COLLECTED;
use self::gathered::round;

/// Fields that may be registered in all.
pub const MAX_FIELDS: usize = 256;

/// The provider under which our own totals are kept; no component may have it.
pub(crate) const OWN: &str = "history";

/// The provider under which is kept what was taken over of the totals of another server; no component may have it.
pub(crate) const IMPORTED: &str = "imported";

/// What is done with the values of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// The last value.
    Basic,
    /// How much it changed.
    Delta,
    /// The sum.
    Accumulate,
    /// The mean.
    Average,
    /// The largest.
    Maximum,
    /// The smallest.
    Minimum,
    /// A list of the different values.
    Collect,
}

impl Strategy {
    /// Reads the word of the configuration.
    #[must_use]
    pub fn from_wire(text: &str) -> Option<Self> {
        serde_json::from_value(Value::String(text.to_lowercase())).ok()
    }
}

/// Gives the value that a field begins with.
pub type Initial = Arc<dyn Fn() -> Option<Value> + Send + Sync>;

/// Called when a job is about to begin or to end.
type Boundary = Arc<dyn Fn() + Send + Sync>;

/// A field of a component.
#[derive(Clone)]
pub struct Field {
    /// Who fills it: `spoolman`, `sensor NAME`. Together with `name` it is unique.
    pub provider: String,
    /// Name.
    pub name: String,
    /// For people.
    pub description: String,
    /// Unit of the value.
    pub units: Option<String>,
    /// What is done with values.
    pub strategy: Strategy,
    /// Values do not count while the job is paused.
    pub exclude_paused: bool,
    /// The totals have the sum over all jobs.
    pub report_total: bool,
    /// The totals have the largest value of all jobs.
    pub report_maximum: bool,
    /// Decimals in records and totals.
    pub precision: Option<u8>,
    /// The value at the start of a job.
    pub initial: Option<Initial>,
}

impl Field {
    /// A field with this strategy that is in no totals.
    #[must_use]
    pub fn new(provider: impl Into<String>, name: impl Into<String>, strategy: Strategy) -> Self {
        Self {
            provider: provider.into(),
            name: name.into(),
            description: String::new(),
            units: None,
            strategy,
            exclude_paused: false,
            report_total: false,
            report_maximum: false,
            precision: None,
            initial: None,
        }
    }
}

/// *Auxiliary Total* of document 2.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct AuxiliaryTotal {
    /// Whose field.
    pub provider: String,
    /// Which field.
    pub field: String,
    /// The largest value of a job; null when it is not reported.
    pub maximum: Option<f64>,
    /// The sum over all jobs; null when it is not reported.
    pub total: Option<f64>,
}

/// What a finished job adds to the totals of a field.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Contribution {
    pub(crate) provider: String,
    pub(crate) field: String,
    pub(crate) value: f64,
}

/// An entry of `auxiliary_data`.
#[derive(Serialize)]
struct Entry<'f> {
    provider: &'f str,
    name: &'f str,
    value: Value,
    description: &'f str,
    units: Option<&'f str>,
}

/// Whether values count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Phase {
    #[default]
    NoJob,
    Printing,
    Paused,
}

#[derive(Default)]
struct Inner {
    fields: Vec<(Field, Gathered)>,
    phase: Phase,
    /// Called before a job begins and before it ends.
    boundaries: Vec<Boundary>,
}

/// All registered fields. Cheap to clone.
#[derive(Clone, Default)]
pub struct Auxiliary(Arc<Mutex<Inner>>);

/// A registered field: its component reports values here.
#[derive(Clone)]
pub struct FieldHandle {
    auxiliary: Auxiliary,
    index: usize,
}

impl FieldHandle {
    /// Reports a value. Values that the strategy cannot use are ignored.
    pub fn report(&self, value: Value) {
        let mut inner = self.auxiliary.0.lock();
        let phase = inner.phase;
        if let Some((field, gathered)) = inner.fields.get_mut(self.index) {
            let counts = phase == Phase::Printing || (phase == Phase::Paused && !field.exclude_paused);
            gathered.take(field.strategy, value, counts);
        }
    }
}

impl Auxiliary {
    /// Adds a field.
    ///
    /// # Errors
    /// With a sentence, when the name is taken or reserved, or when there are too many.
    pub fn register(&self, field: Field) -> Result<FieldHandle, String> {
        let mut inner = self.0.lock();
        if [OWN, IMPORTED].contains(&field.provider.as_str()) {
            return Err(format!("the provider name '{}' of history fields is reserved", field.provider));
        }
        if inner.fields.iter().any(|(known, _)| known.provider == field.provider && known.name == field.name) {
            return Err(format!("the history field '{}' of '{}' is registered twice", field.name, field.provider));
        }
        if inner.fields.len() >= MAX_FIELDS {
            return Err(format!("there are more than {MAX_FIELDS} history fields"));
        }
        inner.fields.push((field, Gathered::default()));
        Ok(FieldHandle { auxiliary: self.clone(), index: inner.fields.len() - 1 })
    }

    /// Calls this before a job begins and before it ends: the place to report what waits.
    pub fn before_boundaries(&self, call: Arc<dyn Fn() + Send + Sync>) {
        self.0.lock().boundaries.push(call);
    }

    /// A job is about to begin or to end.
    pub(crate) fn at_boundary(&self) {
        // Not under the lock: they report.
        let boundaries = self.0.lock().boundaries.clone();
        boundaries.iter().for_each(|call| call());
    }

    /// Number of fields.
    pub(crate) fn count(&self) -> usize {
        self.0.lock().fields.len()
    }

    /// A job begins.
    pub(crate) fn start(&self) {
        let mut inner = self.0.lock();
        inner.phase = Phase::Printing;
        for (field, gathered) in &mut inner.fields {
            let initial = field.initial.as_ref().and_then(|initial| initial());
            gathered.start(field.strategy, initial);
        }
    }

    /// The job is paused or goes on.
    pub(crate) fn pause(&self, paused: bool) {
        self.0.lock().phase = if paused { Phase::Paused } else { Phase::Printing };
    }

    /// The job is over: what is reported from now on belongs to none.
    pub(crate) fn end(&self) {
        self.0.lock().phase = Phase::NoJob;
    }

    /// A job of an earlier run of the service goes on.
    pub(crate) fn restore(&self, kept: &str, paused: bool) {
        let kept: BTreeMap<String, Gathered> = serde_json::from_str(kept).unwrap_or_default();
        let mut inner = self.0.lock();
        inner.phase = if paused { Phase::Paused } else { Phase::Printing };
        for (field, gathered) in &mut inner.fields {
            if let Some(before) = kept.get(&key(field)) {
                *gathered = before.clone();
            }
        }
    }

    /// What [`Auxiliary::restore`] reads.
    pub(crate) fn keep(&self) -> String {
        let inner = self.0.lock();
        let all: BTreeMap<String, &Gathered> = inner.fields.iter().map(|(field, gathered)| (key(field), gathered)).collect();
        serde_json::to_string(&all).unwrap_or_default()
    }

    /// `auxiliary_data` of a record: a JSON array.
    pub(crate) fn entries(&self) -> String {
        let inner = self.0.lock();
        let entries: Vec<Entry<'_>> = inner
            .fields
            .iter()
            .map(|(field, gathered)| Entry {
                provider: &field.provider,
                name: &field.name,
                value: gathered.shown(field),
                description: &field.description,
                units: field.units.as_deref(),
            })
            .collect();
        serde_json::to_string(&entries).unwrap_or_else(|_| "[]".to_owned())
    }

    /// What the job adds to the totals.
    pub(crate) fn contributions(&self) -> Vec<Contribution> {
        let inner = self.0.lock();
        let counted = inner.fields.iter().filter(|(field, _)| is_in_totals(field));
        counted
            .filter_map(|(field, gathered)| {
                let value = round(gathered.shown(field).as_f64()?, field.precision);
                Some(Contribution { provider: field.provider.clone(), field: field.name.clone(), value })
            })
            .collect()
    }

    /// The totals of all fields that are in them; `look_up` gives the stored total and maximum.
    ///
    /// # Errors
    /// Those of `look_up`.
    pub(crate) fn totals<E>(&self, look_up: impl Fn(&str, &str) -> Result<(f64, f64), E>) -> Result<Vec<AuxiliaryTotal>, E> {
        // Not under the lock: looking up may wait for the disk.
        let counted: Vec<Field> =
            self.0.lock().fields.iter().map(|(field, _)| field).filter(|field| is_in_totals(field)).cloned().collect();
        counted
            .into_iter()
            .map(|field| {
                let (total, maximum) = look_up(&field.provider, &field.name)?;
                Ok(AuxiliaryTotal {
                    maximum: field.report_maximum.then(|| round(maximum, field.precision)),
                    total: field.report_total.then(|| round(total, field.precision)),
                    provider: field.provider,
                    field: field.name,
                })
            })
            .collect()
    }
}

fn key(field: &Field) -> String {
    format!("{}/{}", field.provider, field.name)
}

fn is_in_totals(field: &Field) -> bool {
    (field.report_total || field.report_maximum) && field.strategy != Strategy::Collect
}

#[cfg(test)]
mod tests;
