//! Operations of document 1 *Host machine*.

use std::sync::Arc;

use rpc::{Access, Registry};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use zeroize::Zeroizing;

use crate::Machine;
use crate::peripherals::{CanNode, SerialDevice, UsbDevice, VideoDevice};
use crate::services::{Action, PowerAction};
use crate::sudo::Password;
use crate::system::SystemInfo;

#[derive(Serialize, JsonSchema)]
struct SystemInfoAnswer {
    system_info: SystemInfo,
}

#[derive(Deserialize, JsonSchema)]
struct ServiceParams {
    /// Name of the service, with or without `.service`; `core` and `firmware` are this server and the firmware host.
    service: String,
}

#[derive(Deserialize, JsonSchema)]
struct SudoParams {
    /// Tries whether sudo works.
    #[serde(default)]
    check_access: bool,
}

#[derive(Deserialize, JsonSchema)]
struct PasswordParams {
    /// Kept in memory only.
    #[serde(deserialize_with = "hidden")]
    #[schemars(with = "String")]
    password: Password,
}

fn hidden<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Password, D::Error> {
    Ok(Zeroizing::new(String::deserialize(deserializer)?).into())
}

#[derive(Deserialize, JsonSchema)]
struct CanParams {
    /// Name of the interface.
    #[serde(default = "first_interface")]
    interface: String,
}

fn first_interface() -> String {
    "can0".to_owned()
}

#[derive(Serialize, JsonSchema)]
struct CanNodes {
    can_uuids: Vec<CanNode>,
}

#[derive(Serialize, JsonSchema)]
struct UsbDevices {
    usb_devices: Vec<UsbDevice>,
}

#[derive(Serialize, JsonSchema)]
struct SerialDevices {
    serial_devices: Vec<SerialDevice>,
}

#[derive(Serialize, JsonSchema)]
struct VideoDevices {
    v4l2_devices: Vec<VideoDevice>,
    /// Cameras of the camera library, which this server does not use.
    libcamera_devices: Vec<serde_json::Value>,
}

impl Machine {
    /// Declares the operations.
    pub fn register(self: &Arc<Self>, registry: &mut Registry) {
        self.register_reports(registry);
        self.register_services(registry);
        self.register_peripherals(registry);
    }

    fn register_reports(self: &Arc<Self>, registry: &mut Registry) {
        registry
            .op("machine.system_info")
            .get("/machine/system_info")
            .access(Access::View)
            .doc("What the host machine is: processor, operating system, network, services.")
            .handle(
                self,
                |machine, call, (): ()| async move { Ok(SystemInfoAnswer { system_info: machine.system_info(call.form).await }) },
            );
        registry
            .op("machine.proc_stats")
            .get("/machine/proc_stats")
            .access(Access::View)
            .doc("What this process and the machine used in the last half minute.")
            .answer(self, |machine, _, (): ()| Ok(machine.statistics.report()));
        registry
            .op("machine.sudo.info")
            .get("/machine/sudo/info")
            .access(Access::Admin)
            .unaudited()
            .doc("The user of the server and, when asked, whether it can act as root.")
            .handle(self, |machine, _, params: SudoParams| async move { Ok(machine.sudo_info(params.check_access).await) });
        registry
            .op("machine.sudo.password")
            .post("/machine/sudo/password")
            .access(Access::Admin)
            .doc("Gives the password for sudo until the next start. 409 while another one is tried.")
            .handle(self, |machine, call, params: PasswordParams| async move { machine.set_sudo_password(&call, params.password).await });
    }

    fn register_services(self: &Arc<Self>, registry: &mut Registry) {
        for (verb, action, doc) in [
            ("restart", Action::Restart, "Restarts a service of the machine."),
            ("stop", Action::Stop, "Stops a service of the machine."),
            ("start", Action::Start, "Starts a service of the machine."),
        ] {
            registry
                .op(format!("machine.services.{verb}"))
                .post(&format!("/machine/services/{verb}"))
                .access(Access::Admin)
                .doc(doc)
                .handle(self, move |machine, _, params: ServiceParams| async move {
                    machine.act(action, &params.service).await?;
                    Ok("ok")
                });
        }
        registry.op("machine.shutdown").post("/machine/shutdown").access(Access::Admin).doc("Shuts the machine down.").handle(
            self,
            |machine, _, (): ()| async move {
                machine.services.power(machine.services.shutdown_action()).await?;
                Ok("ok")
            },
        );
        registry.op("machine.reboot").post("/machine/reboot").access(Access::Admin).doc("Restarts the machine.").handle(
            self,
            |machine, _, (): ()| async move {
                machine.services.power(PowerAction::Reboot).await?;
                Ok("ok")
            },
        );
    }

    fn register_peripherals(self: &Arc<Self>, registry: &mut Registry) {
        registry
            .op("machine.peripherals.usb")
            .get("/machine/peripherals/usb")
            .access(Access::View)
            .doc("Devices on the USB buses.")
            .handle(self, |machine, _, (): ()| async move { Ok(UsbDevices { usb_devices: machine.peripherals.usb().await? }) });
        registry
            .op("machine.peripherals.serial")
            .get("/machine/peripherals/serial")
            .access(Access::View)
            .doc("Serial ports.")
            .handle(self, |machine, _, (): ()| async move { Ok(SerialDevices { serial_devices: machine.peripherals.serial().await? }) });
        registry
            .op("machine.peripherals.canbus")
            .get("/machine/peripherals/canbus")
            .access(Access::View)
            .doc("Boards on a CAN bus that have no number yet; takes two seconds.")
            .handle(self, |machine, _, params: CanParams| async move {
                Ok(CanNodes { can_uuids: machine.peripherals.can(params.interface).await? })
            });
        registry.op("machine.peripherals.video").get("/machine/peripherals/video").access(Access::View).doc("Cameras.").handle(
            self,
            |machine, _, (): ()| async move {
                Ok(VideoDevices { v4l2_devices: machine.peripherals.video().await?, libcamera_devices: Vec::new() })
            },
        );
    }
}
