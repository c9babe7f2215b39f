//! Endpoints of the firmware host that no operation declares: offered under `printer.…` as soon as the host lists them.

use std::collections::HashMap;
use std::sync::Arc;

use fwhost::FwHost;
use parking_lot::Mutex;
use rpc::registry::dynamic_operation;
use rpc::{Access, DynamicOperations, Operation, Outcome, Rendered};

/// Endpoints remembered; a host offers some dozen.
const MAX_ENDPOINTS: usize = 1024;

/// Endpoints that would change our own connection to the host.
const RESERVED: &[&str] = &["list_endpoints", "gcode/subscribe_output", "register_remote_method", "objects/subscribe"];

/// Finds pass-through operations. What was offered once stays known, so that a host that is away gives 503 and not 404.
pub(crate) struct Endpoints {
    host: FwHost,
    known: Mutex<HashMap<String, Arc<Operation>>>,
}

impl Endpoints {
    pub(crate) fn new(host: FwHost) -> Self {
        Self { host, known: Mutex::default() }
    }
}

impl DynamicOperations for Endpoints {
    fn method(&self, method: &str) -> Option<Arc<Operation>> {
        let endpoint = method.strip_prefix("printer.")?.replace('.', "/");
        let mut known = self.known.lock();
        if let Some(operation) = known.get(&endpoint) {
            return Some(operation.clone());
        }
        let offered = self.host.status().endpoints.iter().any(|offered| **offered == *endpoint) && !RESERVED.contains(&endpoint.as_str());
        if !offered || known.len() >= MAX_ENDPOINTS {
            return None;
        }
        let operation = Arc::new(pass_through(self.host.clone(), method.to_owned(), endpoint.clone()));
        known.insert(endpoint, operation.clone());
        Some(operation)
    }
}

fn pass_through(host: FwHost, method: String, endpoint: String) -> Operation {
    // What it does is unknown, so it counts as moving the printer.
    dynamic_operation(method, Access::Control, move |_, arguments| {
        let (host, endpoint, params) = (host.clone(), endpoint.clone(), arguments.to_json_object());
        Outcome::working(async move {
            let result = host.request(&endpoint, Some(&params)).await?;
            Ok(Rendered(result.as_bytes().to_vec().into()))
        })
    })
}
