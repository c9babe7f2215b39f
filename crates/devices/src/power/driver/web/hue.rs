//! Type `lighting_a`: lights and groups of a Hue bridge.

use outbound::Method;
use serde_json::{Value, json};

use super::{Ask, Auth, Dialect, Fault, Login, flag, missing, part};
use crate::power::build::Section;
use crate::power::options::{LightOptions, WebOptions};

struct Light {
    key: String,
    id: String,
    is_group: bool,
}

pub(super) fn read(web: &WebOptions, section: &mut Section<'_, '_, '_>) -> Option<(Auth, Box<dyn Dialect>)> {
    let options = section.take::<LightOptions>()?;
    let is_group = match options.device_type.as_str() {
        "light" => false,
        "group" => true,
        _ => return section.reject("device_type", "expected `light` or `group`"),
    };
    let key = Login::new(web, "", "").user;
    Some((Auth::None, Box::new(Light { key, id: options.device_id, is_group })))
}

impl Light {
    /// Path below the key, and the last part of the address that switches.
    fn place(&self) -> (String, &'static str) {
        let (kind, last) = if self.is_group { ("groups", "action") } else { ("lights", "state") };
        (format!("/{kind}/{}", part(&self.id)), last)
    }
}

impl Dialect for Light {
    fn status(&self) -> Ask {
        Ask::get(format!("/api/{}{}", part(&self.key), self.place().0))
    }

    fn read_status(&self, answer: &Value) -> Result<bool, Fault> {
        refused(answer)?;
        let name = if self.is_group { "all_on" } else { "on" };
        flag(&answer["state"][name], &format!("state.{name}"))
    }

    fn switch(&self, on: bool) -> Ask {
        let (place, last) = self.place();
        Ask::send(Method::PUT, format!("/api/{}{place}/{last}", part(&self.key)), json!({"on": on}))
    }

    fn read_switched(&self, answer: &Value, _: bool) -> Result<bool, Fault> {
        refused(answer)?;
        let (place, last) = self.place();
        let name = format!("{place}/{last}/on");
        answer[0]["success"].get(&name).and_then(Value::as_bool).ok_or_else(|| missing(&name))
    }
}

/// The bridge refuses with status 200 and a list.
fn refused(answer: &Value) -> Result<(), Fault> {
    match answer[0]["error"]["description"].as_str() {
        Some(description) => Err(Fault::new(format!("the bridge refused: {description:.100}"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_answers_are_those_of_the_wire() {
        let light = Light { key: "Key1".into(), id: "4".into(), is_group: false };
        assert_eq!(light.status(), Ask::get("/api/Key1/lights/4"));
        assert_eq!(light.switch(true), Ask::send(Method::PUT, "/api/Key1/lights/4/state", json!({"on": true})));
        assert_eq!(light.read_status(&json!({"state": {"on": true}})), Ok(true));
        assert_eq!(light.read_switched(&json!([{"success": {"/lights/4/state/on": false}}]), false), Ok(false));
        let group = Light { is_group: true, ..light };
        assert_eq!(group.switch(false), Ask::send(Method::PUT, "/api/Key1/groups/4/action", json!({"on": false})));
        assert_eq!(group.read_status(&json!({"state": {"all_on": false, "on": true}})), Ok(false));
        let refused = json!([{"error": {"type": 1, "description": "unauthorized user"}}]);
        assert_eq!(group.read_status(&refused), Err(Fault::new("the bridge refused: unauthorized user")));
    }
}
