//! The operations of document 3 *Power devices*. Thin.

use std::collections::BTreeMap;
use std::sync::Arc;

use protocol::ApiError;
use protocol::power::{PowerState, PowerStatus};
use rpc::{Access, Arguments, Outcome, Registry, Rendered};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::model::Action;
use super::service::Power;

#[derive(Serialize, JsonSchema)]
struct DeviceList {
    devices: Vec<PowerStatus>,
}

#[derive(Deserialize, JsonSchema)]
struct Which {
    /// Name of the device.
    device: String,
}

#[derive(Deserialize, JsonSchema)]
struct Switch {
    /// Name of the device.
    device: String,
    /// `on`, `off` or `toggle`.
    action: String,
}

impl Power {
    /// Declares the operations.
    pub fn register(self: &Arc<Self>, registry: &mut Registry) {
        registry
            .op("machine.device_power.devices")
            .get("/machine/device_power/devices")
            .access(Access::View)
            .doc("All power devices, with their states as last known.")
            .answer(self, |power, call, (): ()| Ok(DeviceList { devices: power.list(call.form) }));
        registry
            .op("machine.device_power.get_device")
            .get("/machine/device_power/device")
            .access(Access::View)
            .doc("Asks one device for its state: an object of its name and state.")
            .handle(self, |power, _, which: Which| async move {
                let state = power.query(&which.device).await?;
                Ok(one(which.device, state))
            });
        registry
            .op("machine.device_power.post_device")
            .post("/machine/device_power/device")
            .access(Access::Control)
            .doc("Switches one device: an object of its name and its state afterwards.")
            .handle(self, |power, _, switch: Switch| async move {
                let action = Action::from_wire(&switch.action).ok_or_else(|| bad_action(&switch.action))?;
                let state = power.switch(&switch.device, action, false).await?;
                Ok(one(switch.device, state))
            });
        registry
            .op("machine.device_power.status")
            .get("/machine/device_power/status")
            .access(Access::View)
            .doc("Asks the devices that are named by the keys of the arguments: an object of names and states.")
            .pass(batch(self, None));
        registry
            .op("machine.device_power.on")
            .post("/machine/device_power/on")
            .access(Access::Control)
            .doc("Switches the devices on that are named by the keys of the arguments: an object of names and states.")
            .pass(batch(self, Some(Action::On)));
        registry
            .op("machine.device_power.off")
            .post("/machine/device_power/off")
            .access(Access::Control)
            .doc("Switches the devices off that are named by the keys of the arguments: an object of names and states.")
            .pass(batch(self, Some(Action::Off)));
    }
}

fn one(device: String, state: PowerState) -> BTreeMap<String, PowerState> {
    BTreeMap::from([(device, state)])
}

fn bad_action(action: &str) -> ApiError {
    ApiError::bad_request(format!("Invalid value for argument [action]: {action:.32}, expected on, off or toggle"))
}

/// Only the keys of the arguments count; their values are usually null.
fn batch(power: &Arc<Power>, action: Option<Action>) -> impl Fn(&Arc<rpc::Call>, &Arguments<'_>) -> Outcome + Send + Sync + 'static {
    let power = power.clone();
    move |_, arguments| {
        let (power, names) = (power.clone(), arguments.iter().map(|(name, _)| name.to_owned()).collect());
        Outcome::working(async move {
            let states = power.batch(names, action).await?;
            let text = serde_json::to_vec(&states).map_err(|error| ApiError::internal(error.to_string()))?;
            Ok(Rendered(text.into()))
        })
    }
}
