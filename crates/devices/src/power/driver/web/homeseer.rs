//! Type `automation_a`: HomeSeer.

use serde_json::Value;

use super::{Ask, Auth, Dialect, Fault, Login, form, on_or_off};
use crate::power::build::Section;
use crate::power::options::{ReferenceOptions, WebOptions};

struct HomeSeer {
    user: String,
    password: String,
    device: i64,
}

pub(super) fn read(web: &WebOptions, section: &mut Section<'_, '_, '_>) -> Option<(Auth, Box<dyn Dialect>)> {
    let device = section.take::<ReferenceOptions>()?.device;
    let login = Login::new(web, "admin", "");
    Some((login.basic(), Box::new(HomeSeer { user: login.user, password: login.password, device })))
}

impl HomeSeer {
    fn request(&self, request: &str, label: &str) -> Ask {
        let (user, password, device) = (form(&self.user), form(&self.password), self.device);
        Ask::get(format!("/JSON?user={user}&pass={password}&request={request}&ref={device}{label}"))
    }
}

impl Dialect for HomeSeer {
    fn status(&self) -> Ask {
        self.request("getstatus", "")
    }

    fn read_status(&self, answer: &Value) -> Result<bool, Fault> {
        on_or_off(&answer["Devices"][0]["status"], "Devices[0].status")
    }

    fn switch(&self, on: bool) -> Ask {
        self.request("controldevicebylabel", if on { "&label=On" } else { "&label=Off" })
    }

    fn read_switched(&self, _: &Value, on: bool) -> Result<bool, Fault> {
        // The answer does not tell.
        Ok(on)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn requests_and_answers_are_those_of_the_wire() {
        let device = HomeSeer { user: "admin".into(), password: "p w".into(), device: 1212 };
        assert_eq!(device.status(), Ask::get("/JSON?user=admin&pass=p+w&request=getstatus&ref=1212"));
        assert_eq!(device.switch(true), Ask::get("/JSON?user=admin&pass=p+w&request=controldevicebylabel&ref=1212&label=On"));
        assert_eq!(device.read_status(&json!({"Devices": [{"status": "Off"}]})), Ok(false));
        assert_eq!(device.read_status(&json!({"Devices": []})), Err(Fault::new("the answer has no `Devices[0].status`")));
    }
}
