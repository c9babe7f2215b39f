//! Functions that every template has.

use super::arguments::{Arguments, required, whole};
use super::machine::Machine;
use super::value::{Builtin, Key, Map, Range, Value};
use crate::error::{Error, ErrorKind, Result};

impl Machine<'_> {
    pub(super) fn call_builtin(&mut self, builtin: Builtin, arguments: Arguments) -> Result<Value> {
        match builtin {
            Builtin::Range => range(arguments),
            Builtin::Dict => {
                let map = self.map("dict", arguments)?;
                self.heap.dict(map)
            }
            Builtin::Namespace => {
                let map = self.map("namespace", arguments)?;
                self.heap.namespace(map)
            }
            Builtin::RaiseError => {
                let [message, code] = arguments.bind("raise_error", ["message", "code"])?;
                let message = self.heap.str(&required(message, "raise_error", "message")?)?;
                let code = code.map_or(Ok(400), |code| whole(&code, "raise_error"))?;
                let status = u16::try_from(code).ok().filter(|status| (400..600).contains(status));
                let status = status.ok_or_else(|| Error::render("raise_error: expected a code from 400 to 599"))?;
                Err(Error::new(ErrorKind::Raised(status), 0, &*message))
            }
            Builtin::LogDebug => {
                let mut positional = arguments.positional.into_iter();
                let format = required(positional.next(), "log_debug", "message")?;
                let format = self.heap.str(&format)?;
                let values: Vec<Value> = positional.collect();
                let text = if values.is_empty() {
                    format.to_string()
                } else {
                    let values = self.heap.tuple(values)?;
                    self.heap.percent(&format, &values)?
                };
                let text = self.context.blot(&text);
                self.host.log_debug(&text);
                Ok(Value::None)
            }
        }
    }

    fn map(&mut self, function: &str, arguments: Arguments) -> Result<Map> {
        let mut map = Map::new();
        let mut positional = arguments.positional.into_iter();
        if let Some(source) = positional.next() {
            self.heap.fill_map(&mut map, &source)?;
        }
        if positional.next().is_some() {
            return Err(Error::render(format!("{function}: expected at most one value without a name")));
        }
        map.extend(arguments.named.into_iter().map(|(name, value)| (Key::Text(name), value)));
        Ok(map)
    }
}

fn range(arguments: Arguments) -> Result<Value> {
    let [first, second, step] = arguments.bind("range", ["start", "stop", "step"])?;
    let first = whole(&required(first, "range", "stop")?, "range")?;
    let (start, stop) = match second {
        Some(stop) => (first, whole(&stop, "range")?),
        None => (0, first),
    };
    let step = step.map_or(Ok(1), |step| whole(&step, "range"))?;
    if step == 0 {
        return Err(Error::render("range: the step must not be 0"));
    }
    let distance = (i128::from(stop) - i128::from(start)) * i128::from(step.signum());
    let length = if distance > 0 { (distance + i128::from(step).abs() - 1) / i128::from(step).abs() } else { 0 };
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    Ok(Value::Range(Range { start, step, length }))
}
