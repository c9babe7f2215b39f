//! Fields that other components add to the records: spools used, sensor readings. Source: wire/2-files-jobs.md section 6.6.
//!
//! A component registers a field once and reports values whenever it has them; what becomes of a value is the field's [`Strategy`].

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

/// Fields that may be registered in all.
pub const MAX_FIELDS: usize = 256;

/// Values that a collecting field keeps; the oldest gives way.
pub const MAX_COLLECTED: usize = 100;

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

/// What a field has gathered; kept with the record, so that a restart of the service loses nothing.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Gathered {
    value: Option<Value>,
    last: Option<f64>,
    count: u64,
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
    pub(crate) fn totals(&self, look_up: impl Fn(&str, &str) -> (f64, f64)) -> Vec<AuxiliaryTotal> {
        let inner = self.0.lock();
        let counted = inner.fields.iter().map(|(field, _)| field).filter(|field| is_in_totals(field));
        counted
            .map(|field| {
                let (total, maximum) = look_up(&field.provider, &field.name);
                AuxiliaryTotal {
                    provider: field.provider.clone(),
                    field: field.name.clone(),
                    maximum: field.report_maximum.then(|| round(maximum, field.precision)),
                    total: field.report_total.then(|| round(total, field.precision)),
                }
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

fn round(value: f64, precision: Option<u8>) -> f64 {
    let Some(precision) = precision else { return value };
    let scale = 10_f64.powi(i32::from(precision.min(12)));
    let rounded = (value * scale).round() / scale;
    if rounded.is_finite() { rounded } else { value }
}

impl Gathered {
    fn start(&mut self, strategy: Strategy, initial: Option<Value>) {
        let number = initial.as_ref().and_then(Value::as_f64);
        *self = match strategy {
            Strategy::Basic => Self { value: initial.or(self.value.take()), ..Self::default() },
            Strategy::Delta => Self { value: to_value(0.0), last: number, count: 0 },
            Strategy::Accumulate | Strategy::Average => Self { value: to_value(number.unwrap_or(0.0)), ..Self::default() },
            Strategy::Maximum | Strategy::Minimum => Self { value: number.and_then(to_value), ..Self::default() },
            Strategy::Collect => {
                let list = match initial {
                    Some(Value::Array(list)) => list.into_iter().take(MAX_COLLECTED).collect(),
                    Some(Value::Null) | None => Vec::new(),
                    Some(one) => vec![one],
                };
                Self { value: Some(Value::Array(list)), ..Self::default() }
            }
        };
    }

    /// Takes a value in; `counts` is false outside of jobs and in pauses that do not count.
    fn take(&mut self, strategy: Strategy, value: Value, counts: bool) {
        if strategy == Strategy::Delta {
            let Some(now) = value.as_f64() else { return };
            let before = self.last.replace(now);
            if let (true, Some(before)) = (counts, before) {
                self.value = to_value(self.number() + now - before);
            }
            return;
        }
        if !counts {
            return;
        }
        if strategy == Strategy::Basic {
            self.value = Some(value);
            return;
        }
        if strategy == Strategy::Collect {
            let Some(Value::Array(list)) = &mut self.value else { return };
            if !list.contains(&value) {
                list.push(value);
                if list.len() > MAX_COLLECTED {
                    list.remove(0);
                }
            }
            return;
        }
        let Some(number) = value.as_f64() else { return };
        let before = self.value.as_ref().and_then(Value::as_f64);
        self.count += 1;
        let next = match (strategy, before) {
            (Strategy::Accumulate, before) => before.unwrap_or(0.0) + number,
            (Strategy::Average, Some(before)) if self.count > 1 => before + (number - before) / count_as_f64(self.count),
            (Strategy::Maximum, Some(before)) => before.max(number),
            (Strategy::Minimum, Some(before)) => before.min(number),
            _ => number,
        };
        self.value = to_value(next).or(self.value.take());
    }

    fn number(&self) -> f64 {
        self.value.as_ref().and_then(Value::as_f64).unwrap_or(0.0)
    }

    fn shown(&self, field: &Field) -> Value {
        match (&self.value, field.strategy) {
            (Some(Value::Number(number)), _) if number.is_f64() => to_value(round(self.number(), field.precision)).unwrap_or(Value::Null),
            (Some(value), _) => value.clone(),
            (None, Strategy::Basic) => Value::Null,
            (None, Strategy::Collect) => Value::Array(Vec::new()),
            (None, _) => to_value(0.0).unwrap_or(Value::Null),
        }
    }
}

/// A number of JSON; none for what JSON cannot say.
fn to_value(number: f64) -> Option<Value> {
    Number::from_f64(number).map(Value::Number)
}

#[allow(clippy::cast_precision_loss, reason = "nobody reports 2^53 values in a job")]
fn count_as_f64(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn run(field: Field, before: &[Value], during: &[Value]) -> Value {
        let auxiliary = Auxiliary::default();
        let handle = auxiliary.register(field).unwrap();
        before.iter().for_each(|value| handle.report(value.clone()));
        auxiliary.start();
        during.iter().for_each(|value| handle.report(value.clone()));
        let entries: Value = serde_json::from_str(&auxiliary.entries()).unwrap();
        entries[0]["value"].clone()
    }

    fn field(strategy: Strategy) -> Field {
        Field::new("sensor s", "f", strategy)
    }

    fn with_initial(strategy: Strategy, value: Value) -> Field {
        Field { initial: Some(Arc::new(move || Some(value.clone()))), ..field(strategy) }
    }

    #[test]
    fn table_of_strategies() {
        use Strategy::{Accumulate, Average, Basic, Collect, Delta, Maximum, Minimum};
        let values = [json!(3), json!("x"), json!(1.5), json!(4)];
        let table = [
            (field(Basic), json!(4)),
            (field(Delta), json!(1.0)),
            (field(Accumulate), json!(8.5)),
            (field(Average), json!(8.5 / 3.0)),
            (field(Maximum), json!(4.0)),
            (field(Minimum), json!(1.5)),
            (field(Collect), json!([3, "x", 1.5, 4])),
            (with_initial(Basic, json!("start")), json!(4)),
            (with_initial(Delta, json!(1)), json!(3.0)),
            (with_initial(Accumulate, json!(10)), json!(18.5)),
            (with_initial(Average, json!(100)), json!(8.5 / 3.0)),
            (with_initial(Maximum, json!(100)), json!(100.0)),
            (with_initial(Minimum, json!(1)), json!(1.0)),
            (with_initial(Collect, json!([7, 4])), json!([7, 4, 3, "x", 1.5])),
        ];
        for (field, expected) in table {
            let (strategy, initial) = (field.strategy, field.initial.is_some());
            assert_eq!(run(field, &[], &values), expected, "{strategy:?}, initial value: {initial}");
        }
    }

    #[test]
    fn without_values() {
        use Strategy::{Accumulate, Basic, Collect, Delta, Maximum};
        for (strategy, expected) in
            [(Basic, json!(null)), (Delta, json!(0.0)), (Accumulate, json!(0.0)), (Maximum, json!(0.0)), (Collect, json!([]))]
        {
            assert_eq!(run(field(strategy), &[json!(5)], &[]), expected, "{strategy:?}");
        }
        assert_eq!(run(with_initial(Basic, json!("start")), &[], &[]), json!("start"));
    }

    #[test]
    fn values_count_only_in_jobs_and_perhaps_in_pauses() {
        let auxiliary = Auxiliary::default();
        let all = auxiliary.register(field(Strategy::Accumulate)).unwrap();
        let unpaused = auxiliary.register(Field { exclude_paused: true, name: "g".into(), ..field(Strategy::Accumulate) }).unwrap();
        let report = || [&all, &unpaused].iter().for_each(|handle| handle.report(json!(1)));
        report();
        auxiliary.start();
        report();
        auxiliary.pause(true);
        report();
        auxiliary.pause(false);
        report();
        auxiliary.end();
        report();
        let entries: Value = serde_json::from_str(&auxiliary.entries()).unwrap();
        assert_eq!((&entries[0]["value"], &entries[1]["value"]), (&json!(3.0), &json!(2.0)));
    }

    #[test]
    fn what_was_gathered_survives() {
        let auxiliary = Auxiliary::default();
        let handle = auxiliary.register(field(Strategy::Average)).unwrap();
        auxiliary.start();
        [1, 2, 6].iter().for_each(|value| handle.report(json!(value)));
        let kept = auxiliary.keep();
        let later = Auxiliary::default();
        let handle = later.register(field(Strategy::Average)).unwrap();
        later.restore(&kept, false);
        handle.report(json!(7));
        assert!(later.entries().contains(r#""value":4.0"#), "{}", later.entries());
    }

    #[test]
    fn totals_are_for_numbers_that_are_asked_for() {
        let auxiliary = Auxiliary::default();
        let totals = Field { report_total: true, precision: Some(1), ..field(Strategy::Basic) };
        let handle = auxiliary.register(totals).unwrap();
        auxiliary.register(Field { report_total: true, name: "list".into(), ..field(Strategy::Collect) }).unwrap();
        auxiliary.start();
        handle.report(json!("text"));
        assert_eq!(auxiliary.contributions(), []);
        handle.report(json!(1.26));
        assert_eq!(auxiliary.contributions(), [Contribution { provider: "sensor s".into(), field: "f".into(), value: 1.3 }]);
        let shown = AuxiliaryTotal { provider: "sensor s".into(), field: "f".into(), maximum: None, total: Some(5.3) };
        assert_eq!(auxiliary.totals(|_, _| (5.26, 9.0)), [shown]);
    }

    #[test]
    fn lists_and_names_are_bounded() {
        let auxiliary = Auxiliary::default();
        let handle = auxiliary.register(field(Strategy::Collect)).unwrap();
        assert!(auxiliary.register(field(Strategy::Basic)).is_err());
        assert!(auxiliary.register(Field::new("history", "x", Strategy::Basic)).is_err());
        auxiliary.start();
        (0..150).for_each(|value| handle.report(json!(value)));
        let entries: Value = serde_json::from_str(&auxiliary.entries()).unwrap();
        let list = entries[0]["value"].as_array().unwrap();
        assert_eq!((list.len(), &list[0]), (MAX_COLLECTED, &json!(50)));
    }
}
