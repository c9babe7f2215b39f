//! Type `automation_c`: Loxone.

use serde_json::Value;

use super::{Ask, Auth, Dialect, Fault, Login, missing, part};
use crate::power::build::Section;
use crate::power::options::{OutputOptions, WebOptions};

struct Loxone {
    output: String,
}

pub(super) fn read(web: &WebOptions, section: &mut Section<'_, '_, '_>) -> Option<(Auth, Box<dyn Dialect>)> {
    let output = section.take::<OutputOptions>()?.output_id.unwrap_or_default();
    Some((Login::new(web, "admin", "admin").basic(), Box::new(Loxone { output: part(&output) })))
}

impl Dialect for Loxone {
    fn status(&self) -> Ask {
        Ask::get(format!("/jdev/sps/io/{}", self.output))
    }

    fn read_status(&self, answer: &Value) -> Result<bool, Fault> {
        let value = &answer["LL"]["value"];
        // A number, usually as text.
        let number = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok());
        number.map(|number| number.trunc() == 1.0).ok_or_else(|| missing("LL.value"))
    }

    fn switch(&self, on: bool) -> Ask {
        Ask::get(format!("/jdev/sps/io/{}/{}", self.output, if on { "on" } else { "off" }))
    }

    fn read_switched(&self, answer: &Value, _: bool) -> Result<bool, Fault> {
        self.read_status(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn requests_and_answers_are_those_of_the_wire() {
        let output = Loxone { output: part("Printer 1") };
        assert_eq!((output.status(), output.switch(true)), (Ask::get("/jdev/sps/io/Printer%201"), Ask::get("/jdev/sps/io/Printer%201/on")));
        assert_eq!(output.read_status(&json!({"LL": {"value": "1"}})), Ok(true));
        assert_eq!(output.read_status(&json!({"LL": {"value": 0}})), Ok(false));
        assert_eq!(output.read_status(&json!({"LL": {"value": "on"}})), Err(Fault::new("the answer has no `LL.value`")));
    }
}
