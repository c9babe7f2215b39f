//! What power devices need of other components.

use rpc::transfer::Boxed;

/// Services of the machine, which devices start and stop with themselves.
pub trait Services: Send + Sync {
    /// Why this service may not be bound to a device: not one of those that may be controlled, or our own.
    fn refuses(&self, service: &str) -> Option<String>;

    /// Starts or stops a service; the name is without `.service`. The error says why not.
    fn run(&self, service: String, start: bool) -> Boxed<'static, Result<(), String>>;
}
