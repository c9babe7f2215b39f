//! Type `automation_d`: SmartThings, through the vendor's service.

use outbound::Method;
use serde_json::{Value, json};

use super::{Ask, Auth, Dialect, Fault, missing, on_or_off, part};
use crate::power::build::Section;
use crate::power::options::CloudOptions;

struct SmartThing {
    device: String,
}

pub(super) fn read(section: &mut Section<'_, '_, '_>) -> Option<(Auth, Box<dyn Dialect>)> {
    let options = section.take::<CloudOptions>()?;
    Some((Auth::bearer(options.token.expose()), Box::new(SmartThing { device: part(&options.device) })))
}

impl Dialect for SmartThing {
    fn status(&self) -> Ask {
        Ask::get(format!("/v1/devices/{}/components/main/capabilities/switch/status", self.device))
    }

    fn read_status(&self, answer: &Value) -> Result<bool, Fault> {
        on_or_off(&answer["switch"]["value"], "switch.value")
    }

    fn switch(&self, on: bool) -> Ask {
        let command = if on { "on" } else { "off" };
        let body = json!([{"component": "main", "capability": "switch", "command": command}]);
        Ask::send(Method::POST, format!("/v1/devices/{}/commands", self.device), body)
    }

    fn read_switched(&self, answer: &Value, on: bool) -> Result<bool, Fault> {
        let status = answer["results"][0]["status"].as_str().ok_or_else(|| missing("results[0].status"))?;
        if status.eq_ignore_ascii_case("accepted") {
            Ok(on)
        } else {
            Err(Fault::new(format!("the command was not accepted: {status:.40}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_answers_are_those_of_the_wire() {
        let device = SmartThing { device: part("0a-1b") };
        assert_eq!(device.status(), Ask::get("/v1/devices/0a-1b/components/main/capabilities/switch/status"));
        let body = json!([{"component": "main", "capability": "switch", "command": "on"}]);
        assert_eq!(device.switch(true), Ask::send(Method::POST, "/v1/devices/0a-1b/commands", body));
        assert_eq!(device.read_status(&json!({"switch": {"value": "ON"}})), Ok(true));
        assert_eq!(device.read_switched(&json!({"results": [{"status": "ACCEPTED"}]}), true), Ok(true));
        assert!(device.read_switched(&json!({"results": [{"status": "FAILED"}]}), true).is_err());
        assert!(device.read_switched(&json!({"results": []}), true).is_err());
    }
}
