//! All operations, found by method name or by route, in either vocabulary.

use std::collections::HashMap;
use std::sync::Arc;

use protocol::{ApiError, ErrorKind, vocabulary};

use crate::args::{ArgValue, Arguments};
use crate::audit::{self, Audit, Deed};
use crate::call::Call;
use crate::operation::{Operation, Outcome, Verb};

/// A found operation.
pub struct Found {
    /// The operation.
    pub operation: Arc<Operation>,
    /// True when it was found under a name that only the incumbent's clients use.
    pub by_upstream_name: bool,
}

/// Finds operations that exist only at run time (endpoints of the firmware host).
pub trait DynamicOperations: Send + Sync {
    /// The operation of a method name that is not declared.
    fn method(&self, method: &str) -> Option<Arc<Operation>>;
}

type RouteEntry = (Verb, Arc<Operation>, bool);

/// All operations, ready to be called.
pub struct Operations {
    methods: HashMap<String, (Arc<Operation>, bool)>,
    routes: HashMap<String, Vec<RouteEntry>>,
    all: Vec<Arc<Operation>>,
    dynamic: Option<Arc<dyn DynamicOperations>>,
    audit: Option<Arc<dyn Audit>>,
}

impl Operations {
    /// Builds the tables.
    ///
    /// # Errors
    /// Lists every name that stands twice.
    pub(crate) fn new(
        operations: Vec<Operation>,
        dynamic: Option<Arc<dyn DynamicOperations>>,
        audit: Option<Arc<dyn Audit>>,
    ) -> Result<Self, String> {
        let mut tables = Self { methods: HashMap::new(), routes: HashMap::new(), all: Vec::new(), dynamic, audit };
        let mut twice = Vec::new();
        for operation in operations {
            let operation = Arc::new(operation);
            let mut add_method = |name: String, upstream: bool| {
                if tables.methods.insert(name.clone(), (operation.clone(), upstream)).is_some() {
                    twice.push(name);
                }
            };
            if let Some(alias) = vocabulary::method_alias(&operation.method) {
                add_method(alias, true);
            }
            add_method(operation.method.clone(), false);
            for (verb, route) in &operation.routes {
                let names = [Some((route.clone(), false)), vocabulary::route_alias(route).map(|alias| (alias, true))];
                for (route, upstream) in names.into_iter().flatten() {
                    let verbs = tables.routes.entry(route.clone()).or_default();
                    if verbs.iter().any(|(known, ..)| known == verb) {
                        twice.push(format!("{} {route}", verb.as_str()));
                    }
                    verbs.push((*verb, operation.clone(), upstream));
                }
            }
            tables.all.push(operation);
        }
        if twice.is_empty() { Ok(tables) } else { Err(format!("declared twice: {}", twice.join(", "))) }
    }

    /// The operation of a JSON-RPC method name, in either vocabulary.
    #[must_use]
    pub fn method(&self, name: &str) -> Option<Found> {
        match self.methods.get(name) {
            Some((operation, upstream)) => Some(Found { operation: operation.clone(), by_upstream_name: *upstream }),
            None => {
                let operation = self.dynamic.as_ref()?.method(name)?;
                Some(Found { operation, by_upstream_name: false })
            }
        }
    }

    /// The operation of an HTTP route, in either vocabulary.
    ///
    /// # Errors
    /// 404 for an unknown route, 405 for a known one with another verb.
    pub fn route(&self, verb: Verb, path: &str) -> Result<Found, ApiError> {
        if let Some(verbs) = self.routes.get(path) {
            return match verbs.iter().find(|(known, ..)| *known == verb) {
                Some((_, operation, upstream)) => Ok(Found { operation: operation.clone(), by_upstream_name: *upstream }),
                None => Err(ApiError::new(ErrorKind::NotAllowed, "Method Not Allowed")),
            };
        }
        let dynamic = self.dynamic.as_ref().zip(path.strip_prefix('/'));
        match dynamic.and_then(|(dynamic, path)| dynamic.method(&path.replace('/', "."))) {
            Some(_) if verb == Verb::Delete => Err(ApiError::new(ErrorKind::NotAllowed, "Method Not Allowed")),
            Some(operation) => Ok(Found { operation, by_upstream_name: false }),
            None => Err(ApiError::not_found("Not Found")),
        }
    }

    /// Calls an operation, and notes the call if it changes something.
    #[must_use]
    pub fn invoke(&self, operation: &Operation, call: &Arc<Call>, arguments: &Arguments<'_>) -> Outcome {
        match &self.audit {
            Some(audit) if operation.is_audited => audit::invoke(audit, operation, call, arguments),
            _ => operation.invoke(call, arguments),
        }
    }

    /// Notes something that changes something and is no operation: an upload, a bridge.
    pub fn note<T>(&self, call: &Call, what: &str, path: Option<&str>, result: &Result<T, ApiError>) {
        let Some(audit) = &self.audit else { return };
        let mut arguments = Arguments::none();
        if let Some(path) = path {
            let _ = arguments.add("path".into(), ArgValue::Text(path.into()));
        }
        let mut deed = Deed::begun(call, what, &arguments);
        deed.ended(result);
        audit.note(deed);
    }

    /// True when some verb is served at `path`.
    #[must_use]
    pub fn has_route(&self, path: &str) -> bool {
        self.routes.contains_key(path)
    }

    /// All declared operations in the order of their declaration.
    #[must_use]
    pub fn all(&self) -> &[Arc<Operation>] {
        &self.all
    }
}
