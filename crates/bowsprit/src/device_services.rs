//! The services of the machine as power devices see them: started and stopped with a device that they are bound to.

use std::sync::Arc;

use devices::power::Services;
use machine::Machine;
use rpc::transfer::Boxed;

/// Lets devices start and stop allowed services.
pub struct DeviceServices(pub Arc<Machine>);

impl Services for DeviceServices {
    fn refuses(&self, service: &str) -> Option<String> {
        self.0.refuses_to_bind(service)
    }

    fn run(&self, service: String, start: bool) -> Boxed<'static, Result<(), String>> {
        let machine = self.0.clone();
        Box::pin(async move { machine.start_or_stop(&service, start).await.map_err(|error| error.message) })
    }
}
