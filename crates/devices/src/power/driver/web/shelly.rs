//! Types `relay_a` and `relay_b`: Shelly relays of the first generation, and of all later ones, which speak RPC and authenticate by Digest.

use serde_json::Value;

use super::digest::Digest;
use super::{Ask, Auth, Dialect, Fault, Login, flag};
use crate::power::build::Section;
use crate::power::options::{OutputOptions, PowerOptions, WebOptions, whole_seconds};

struct First {
    output: u32,
    /// Seconds that the relay waits, once it was switched off, before it goes off.
    delay: Option<u64>,
}

struct Second {
    output: u32,
    /// Seconds after which it goes off once it was switched on.
    delay: Option<u64>,
}

fn output(section: &mut Section<'_, '_, '_>) -> Option<u32> {
    let output = section.take::<OutputOptions>()?.output_id.unwrap_or_else(|| "0".to_owned());
    output.parse().ok().or_else(|| section.reject("output_id", "expected a whole number"))
}

pub(super) fn read_first(web: &WebOptions, options: &PowerOptions, section: &mut Section<'_, '_, '_>) -> Option<(Auth, Box<dyn Dialect>)> {
    let delay = options.timer.map(whole_seconds);
    Some((Login::new(web, "admin", "").basic(), Box::new(First { output: output(section)?, delay })))
}

pub(super) fn read_second(web: &WebOptions, options: &PowerOptions, section: &mut Section<'_, '_, '_>) -> Option<(Auth, Box<dyn Dialect>)> {
    let login = Login::new(web, "admin", "");
    let auth = if login.password.is_empty() { Auth::None } else { Auth::Digest(Digest::new(&login.user, &login.password)) };
    Some((auth, Box::new(Second { output: output(section)?, delay: options.timer.map(whole_seconds) })))
}

impl Dialect for First {
    fn status(&self) -> Ask {
        Ask::get(format!("/relay/{}", self.output))
    }

    fn read_status(&self, answer: &Value) -> Result<bool, Fault> {
        let is_on = flag(&answer["ison"], "ison")?;
        // One that will go off by itself counts as off already.
        let is_leaving = self.delay.is_some() && answer["timer_remaining"].as_f64().is_some_and(|remaining| remaining != 0.0);
        Ok(is_on && !is_leaving)
    }

    fn switch(&self, on: bool) -> Ask {
        let turn = match (on, self.delay) {
            // Its timer turns it over again.
            (false, Some(delay)) => format!("on&timer={delay}"),
            (false, None) => "off".to_owned(),
            (true, _) => "on".to_owned(),
        };
        Ask::get(format!("/relay/{}?turn={turn}", self.output))
    }

    fn read_switched(&self, answer: &Value, _: bool) -> Result<bool, Fault> {
        self.read_status(answer)
    }

    fn has_timer(&self) -> bool {
        true
    }
}

impl Dialect for Second {
    fn status(&self) -> Ask {
        Ask::get(format!("/rpc/Switch.GetStatus?id={}", self.output))
    }

    fn read_status(&self, answer: &Value) -> Result<bool, Fault> {
        flag(&answer["output"], "output")
    }

    fn switch(&self, on: bool) -> Ask {
        let timer = self.delay.filter(|_| on).map(|delay| format!("&toggle_after={delay}")).unwrap_or_default();
        Ask::get(format!("/rpc/Switch.Set?id={}&on={on}{timer}", self.output))
    }

    fn read_switched(&self, answer: &Value, on: bool) -> Result<bool, Fault> {
        flag(&answer["was_on"], "was_on").map(|_| on)
    }

    fn has_timer(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_first_generation_has_a_path_for_each_relay() {
        let relay = First { output: 0, delay: None };
        assert_eq!((relay.status(), relay.switch(true)), (Ask::get("/relay/0"), Ask::get("/relay/0?turn=on")));
        let delayed = First { output: 1, delay: Some(5) };
        assert_eq!((delayed.switch(true), delayed.switch(false)), (Ask::get("/relay/1?turn=on"), Ask::get("/relay/1?turn=on&timer=5")));
        assert_eq!(relay.read_status(&json!({"ison": true, "timer_remaining": 3})), Ok(true));
        assert_eq!(delayed.read_status(&json!({"ison": true, "timer_remaining": 3})), Ok(false));
        assert_eq!(delayed.read_status(&json!({"ison": true, "timer_remaining": 0})), Ok(true));
        assert_eq!(relay.read_status(&json!({"ison": "yes"})), Err(Fault::new("the answer has no `ison`")));
    }

    #[test]
    fn later_generations_speak_rpc() {
        let relay = Second { output: 2, delay: None };
        assert_eq!(relay.status(), Ask::get("/rpc/Switch.GetStatus?id=2"));
        assert_eq!(relay.switch(true), Ask::get("/rpc/Switch.Set?id=2&on=true"));
        assert_eq!(
            (relay.read_status(&json!({"output": false})), relay.read_switched(&json!({"was_on": false}), true)),
            (Ok(false), Ok(true))
        );
        assert!(relay.read_switched(&json!({"code": -105, "message": "no such switch"}), true).is_err());
        assert_eq!(Second { output: 0, delay: Some(9) }.switch(true), Ask::get("/rpc/Switch.Set?id=0&on=true&toggle_after=9"));
    }
}
