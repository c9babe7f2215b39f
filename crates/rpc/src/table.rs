//! All operations, found by method name or by route, in either vocabulary.

use std::collections::HashMap;
use std::sync::Arc;

use protocol::{ApiError, ErrorKind, vocabulary};

use crate::args::{ArgValue, Arguments};
use crate::audit::{self, Audit, Deed};
use crate::call::Call;
use crate::operation::{Operation, Outcome, Verb};
use crate::pattern::{Captured, Pattern};

/// A found operation.
pub struct Found {
    /// The operation.
    pub operation: Arc<Operation>,
    /// True when it was found under a name that only the incumbent's clients use.
    pub by_upstream_name: bool,
    /// What the names in its route stand for.
    pub captured: Captured,
}

/// A route that takes a file as a form ([`crate::transfer`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UploadRoute {
    /// The route, the same in both vocabularies.
    pub route: &'static str,
    /// Beginning of the new file's address in the answer, neutral; root and path follow.
    pub location: &'static str,
}

/// Finds operations that exist only at run time (endpoints of the firmware host).
pub trait DynamicOperations: Send + Sync {
    /// The operation of a method name that is not declared.
    fn method(&self, method: &str) -> Option<Arc<Operation>>;
}

/// One verb of a route: the operation, and whether the route is the incumbent's name.
type RouteEntry = (Verb, Arc<Operation>, bool);

/// All operations, ready to be called.
pub struct Operations {
    methods: HashMap<String, (Arc<Operation>, bool)>,
    routes: HashMap<String, Vec<RouteEntry>>,
    /// Routes with names in them; there are few.
    patterns: Vec<(Pattern, RouteEntry)>,
    uploads: Vec<UploadRoute>,
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
        uploads: Vec<UploadRoute>,
        dynamic: Option<Arc<dyn DynamicOperations>>,
        audit: Option<Arc<dyn Audit>>,
    ) -> Result<Self, String> {
        let (methods, routes, patterns) = (HashMap::new(), HashMap::new(), Vec::new());
        let mut tables = Self { methods, routes, patterns, uploads, all: Vec::new(), dynamic, audit };
        let mut twice = Vec::new();
        for operation in operations {
            let operation = Arc::new(operation);
            let mut add_method = |name: String, upstream: bool| {
                if tables.methods.insert(name.clone(), (operation.clone(), upstream)).is_some() {
                    twice.push(name);
                }
            };
            if !operation.is_bare {
                if let Some(alias) = vocabulary::method_alias(&operation.method) {
                    add_method(alias, true);
                }
                add_method(operation.method.clone(), false);
            }
            for (verb, route) in &operation.routes {
                let names = [Some((route.clone(), false)), vocabulary::route_alias(route).map(|alias| (alias, true))];
                for (route, upstream) in names.into_iter().flatten() {
                    if let Some(pattern) = Pattern::parse(&route) {
                        if tables.patterns.iter().any(|(known, (known_verb, ..))| *known == pattern && known_verb == verb) {
                            twice.push(format!("{} {route}", verb.as_str()));
                        }
                        tables.patterns.push((pattern, (*verb, operation.clone(), upstream)));
                        continue;
                    }
                    let verbs = tables.routes.entry(route.clone()).or_default();
                    if verbs.iter().any(|(known, ..)| known == verb) {
                        twice.push(format!("{} {route}", verb.as_str()));
                    }
                    verbs.push((*verb, operation.clone(), upstream));
                }
            }
            tables.all.push(operation);
        }
        let is_route =
            |upload: &&UploadRoute| tables.routes.get(upload.route).is_some_and(|verbs| verbs.iter().any(|(verb, ..)| *verb == Verb::Post));
        twice.extend(tables.uploads.iter().filter(is_route).map(|upload| format!("post {}", upload.route)));
        if twice.is_empty() { Ok(tables) } else { Err(format!("declared twice: {}", twice.join(", "))) }
    }

    /// The operation of a JSON-RPC method name, in either vocabulary.
    #[must_use]
    pub fn method(&self, name: &str) -> Option<Found> {
        match self.methods.get(name) {
            Some((operation, upstream)) => {
                Some(Found { operation: operation.clone(), by_upstream_name: *upstream, captured: Captured::new() })
            }
            None => {
                let operation = self.dynamic.as_ref()?.method(name)?;
                Some(Found { operation, by_upstream_name: false, captured: Captured::new() })
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
                Some(entry) => Ok(found(entry, Captured::new())),
                None => Err(not_allowed()),
            };
        }
        if let Some(result) = self.by_pattern(verb, path) {
            return result;
        }
        let dynamic = self.dynamic.as_ref().zip(path.strip_prefix('/'));
        match dynamic.and_then(|(dynamic, path)| dynamic.method(&path.replace('/', "."))) {
            Some(_) if verb == Verb::Delete => Err(not_allowed()),
            Some(operation) => Ok(Found { operation, by_upstream_name: false, captured: Captured::new() }),
            None => Err(ApiError::not_found("Not Found")),
        }
    }

    /// `None` when no route with names has this form.
    fn by_pattern(&self, verb: Verb, path: &str) -> Option<Result<Found, ApiError>> {
        let mut fitting = self.patterns.iter().filter_map(|(pattern, entry)| Some((entry, pattern.captures(path)?))).peekable();
        fitting.peek()?;
        let entry = fitting.find(|((known, ..), _)| *known == verb);
        Some(entry.map(|(entry, captured)| found(entry, captured)).ok_or_else(not_allowed))
    }

    /// The route under which files are uploaded, if this is one.
    #[must_use]
    pub fn upload(&self, path: &str) -> Option<&UploadRoute> {
        self.uploads.iter().find(|upload| upload.route == path)
    }

    /// All routes under which files are uploaded.
    #[must_use]
    pub fn uploads(&self) -> &[UploadRoute] {
        &self.uploads
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

fn found((_, operation, upstream): &RouteEntry, captured: Captured) -> Found {
    Found { operation: operation.clone(), by_upstream_name: *upstream, captured }
}

fn not_allowed() -> ApiError {
    ApiError::new(ErrorKind::NotAllowed, "Method Not Allowed")
}
