//! Type `automation_b`: Home Assistant.

use std::time::Duration;

use outbound::Method;
use serde_json::{Value, json};

use super::{Ask, Auth, Dialect, Fault, on_or_off, part};
use crate::power::build::Section;
use crate::power::options::{EntityOptions, duration};

struct Entity {
    id: String,
    domain: String,
    status_delay: Duration,
}

pub(super) fn read(section: &mut Section<'_, '_, '_>) -> Option<(Auth, Box<dyn Dialect>)> {
    let entity = section.take::<EntityOptions>()?;
    let auth = Auth::bearer(entity.token.expose());
    Some((auth, Box::new(Entity { id: entity.device, domain: entity.domain, status_delay: duration(entity.status_delay) })))
}

impl Dialect for Entity {
    fn status(&self) -> Ask {
        Ask::get(format!("/api/states/{}", part(&self.id)))
    }

    fn read_status(&self, answer: &Value) -> Result<bool, Fault> {
        on_or_off(&answer["state"], "state")
    }

    fn switch(&self, on: bool) -> Ask {
        let service = if on { "turn_on" } else { "turn_off" };
        Ask::send(Method::POST, format!("/api/services/{}/{service}", part(&self.domain)), json!({"entity_id": self.id}))
    }

    fn read_switched(&self, _: &Value, on: bool) -> Result<bool, Fault> {
        Ok(on)
    }

    /// The answer lists entities that have changed so far, which may be none.
    fn asks_again_after(&self) -> Option<Duration> {
        Some(self.status_delay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_answers_are_those_of_the_wire() {
        let entity = Entity { id: "switch.printer_psu".into(), domain: "switch".into(), status_delay: Duration::ZERO };
        assert_eq!(entity.status(), Ask::get("/api/states/switch.printer_psu"));
        let expected = Ask::send(Method::POST, "/api/services/switch/turn_off", json!({"entity_id": "switch.printer_psu"}));
        assert_eq!(entity.switch(false), expected);
        assert_eq!(entity.read_status(&json!({"state": "on"})), Ok(true));
        let fault = entity.read_status(&json!({"state": "unavailable"})).unwrap_err();
        assert_eq!(fault, Fault::new("the device says `unavailable` where `on` or `off` was expected"));
    }
}
