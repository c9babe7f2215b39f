//! Type `http_firmware_a`: Tasmota.

use serde_json::Value;

use super::{Ask, Auth, Dialect, Fault, Login, form, missing, on_or_off};
use crate::power::build::Section;
use crate::power::options::{OutputOptions, PowerOptions, WebOptions};

struct Tasmota {
    user: String,
    password: String,
    output: u32,
    /// Seconds that the device waits before it goes off.
    delay: Option<f64>,
}

pub(super) fn read(web: &WebOptions, options: &PowerOptions, section: &mut Section<'_, '_, '_>) -> Option<(Auth, Box<dyn Dialect>)> {
    let output = section.take::<OutputOptions>()?.output_id.unwrap_or_else(|| "1".to_owned());
    let Ok(output) = output.parse() else { return section.reject("output_id", "expected a whole number") };
    let Login { user, password } = Login::new(web, "admin", "");
    Some((Auth::None, Box::new(Tasmota { user, password, output, delay: options.timer })))
}

impl Tasmota {
    fn command(&self, command: &str) -> Ask {
        Ask::get(format!("/cm?user={}&password={}&cmnd={}", form(&self.user), form(&self.password), form(command)))
    }

    fn state(&self, answer: &Value) -> Result<bool, Fault> {
        let name = format!("POWER{}", self.output);
        let value = answer.get(&name).or_else(|| answer.get("POWER").filter(|_| self.output == 1));
        on_or_off(value.ok_or_else(|| missing(&name))?, &name)
    }
}

impl Dialect for Tasmota {
    fn status(&self) -> Ask {
        self.command(&format!("Power{}", self.output))
    }

    fn read_status(&self, answer: &Value) -> Result<bool, Fault> {
        self.state(answer)
    }

    fn switch(&self, on: bool) -> Ask {
        let output = self.output;
        match self.delay.filter(|_| !on) {
            // Counted in tenths of a second.
            Some(delay) => self.command(&format!("Backlog Delay {:.0}; Power{output} off", delay * 10.0)),
            None => self.command(&format!("Power{output} {}", if on { "on" } else { "off" })),
        }
    }

    fn read_switched(&self, answer: &Value, on: bool) -> Result<bool, Fault> {
        // A backlog says nothing of the output.
        if self.delay.is_some() && !on { Ok(false) } else { self.state(answer) }
    }

    fn has_timer(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tasmota(output: u32, delay: Option<f64>) -> Tasmota {
        Tasmota { user: "admin".into(), password: "p w&".into(), output, delay }
    }

    #[test]
    fn requests_are_those_of_the_wire() {
        let start = "/cm?user=admin&password=p+w%26&cmnd=";
        assert_eq!(tasmota(1, None).status(), Ask::get(format!("{start}Power1")));
        assert_eq!(tasmota(2, None).switch(true), Ask::get(format!("{start}Power2+on")));
        assert_eq!(tasmota(2, None).switch(false), Ask::get(format!("{start}Power2+off")));
        assert_eq!(tasmota(1, Some(5.0)).switch(true), Ask::get(format!("{start}Power1+on")));
        assert_eq!(tasmota(1, Some(5.0)).switch(false), Ask::get(format!("{start}Backlog+Delay+50%3B+Power1+off")));
    }

    #[test]
    fn answers_are_read() {
        let state = |output, answer| tasmota(output, None).state(&answer);
        assert_eq!(state(1, json!({"POWER": "ON"})), Ok(true));
        assert_eq!(state(1, json!({"POWER1": "OFF", "POWER": "ON"})), Ok(false));
        assert_eq!(state(2, json!({"POWER2": "on"})), Ok(true));
        assert_eq!(state(2, json!({"POWER": "ON"})), Err(Fault::new("the answer has no `POWER2`")));
        assert_eq!(state(1, json!({"POWER": "BLINK"})), Err(Fault::new("the device says `blink` where `on` or `off` was expected")));
        assert_eq!(tasmota(1, Some(5.0)).read_switched(&json!({}), false), Ok(false));
    }
}
