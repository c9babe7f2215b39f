//! The table of operations: one declaration gives the JSON-RPC method, the HTTP routes, both vocabularies, the access class, argument decoding
//! and the entry of the served contract.
//!
//! ```
//! # use rpc::{Access, Registry};
//! # use std::sync::Arc;
//! # struct Greeter;
//! # #[derive(serde::Deserialize, schemars::JsonSchema)] struct Who { name: String }
//! # fn declare(registry: &mut Registry, greeter: Arc<Greeter>) {
//! registry
//!     .op("server.greet")
//!     .get("/server/greet")
//!     .access(Access::View)
//!     .doc("Greets somebody.")
//!     .handle(&greeter, |_greeter, _call, who: Who| async move { Ok(format!("Hello {}", who.name)) });
//! # }
//! ```
//!
//! `handle` exists only after `access`: an operation without an access class does not compile. Names that collide are found by
//! [`Registry::build`], which a test runs.

use std::future::Future;
use std::sync::Arc;

use protocol::ApiError;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::args::Arguments;
use crate::audit::Audit;
use crate::call::{Call, Transport};
use crate::decode::decode;
use crate::identity::Access;
use crate::operation::Handler;
pub use crate::operation::{Answer, Operation, Outcome, QueryStyle, Rendered, Reply, Verb, Working, dynamic_operation};
pub use crate::table::{DynamicOperations, Found, Operations, UploadRoute};

/// Operations under construction.
#[derive(Default)]
pub struct Registry {
    operations: Vec<Operation>,
    uploads: Vec<UploadRoute>,
    dynamic: Option<Arc<dyn DynamicOperations>>,
    audit: Option<Arc<dyn Audit>>,
}

/// Start of a declaration: names, but no access class yet.
#[must_use]
pub struct Declaration<'r> {
    registry: &'r mut Registry,
    method: String,
    routes: Vec<(Verb, String)>,
    transports: u8,
    is_bare: bool,
}

/// A declaration with its access class.
#[must_use]
pub struct Classified<'r> {
    declaration: Declaration<'r>,
    access: Access,
    doc: &'static str,
    keep_null: &'static [&'static str],
    query_style: QueryStyle,
    is_audited: bool,
}

impl Registry {
    /// Declares the operation with this neutral method name.
    pub fn op(&mut self, method: impl Into<String>) -> Declaration<'_> {
        Declaration { registry: self, method: method.into(), routes: Vec::new(), transports: 0xff, is_bare: false }
    }

    /// Declares a route that takes a file as a form and puts it into a root; `location` is the beginning of the file's address in the answer.
    pub fn upload(&mut self, route: &'static str, location: &'static str) {
        self.uploads.push(UploadRoute { route, location });
    }

    /// Sets the finder of operations that exist only at run time.
    pub fn set_dynamic(&mut self, dynamic: Arc<dyn DynamicOperations>) {
        self.dynamic = Some(dynamic);
    }

    /// Sets where calls that change something are noted.
    pub fn set_audit(&mut self, audit: Arc<dyn Audit>) {
        self.audit = Some(audit);
    }

    /// The finished tables.
    ///
    /// # Errors
    /// Lists every name that stands twice.
    pub fn build(self) -> Result<Operations, String> {
        Operations::new(self.operations, self.uploads, self.dynamic, self.audit)
    }
}

impl<'r> Declaration<'r> {
    /// Adds a GET route. Names in braces stand for parts of the path, the last one for all its rest; they are arguments.
    pub fn get(self, route: &str) -> Self {
        self.route(Verb::Get, route)
    }

    /// Adds a POST route.
    pub fn post(self, route: &str) -> Self {
        self.route(Verb::Post, route)
    }

    /// Adds a DELETE route.
    pub fn delete(self, route: &str) -> Self {
        self.route(Verb::Delete, route)
    }

    fn route(mut self, verb: Verb, route: &str) -> Self {
        self.routes.push((verb, route.to_owned()));
        self
    }

    /// Limits the ways by which it can be called.
    pub fn only(mut self, transports: &[Transport]) -> Self {
        self.transports = transports.iter().map(|transport| transport.bit()).sum();
        self
    }

    /// Makes it an operation of another server's API ([`Operation::is_bare`]): HTTP only, its answer is not wrapped.
    pub fn bare(mut self) -> Self {
        self.is_bare = true;
        self.only(&[Transport::Http])
    }

    /// Sets who may call.
    pub fn access(self, access: Access) -> Classified<'r> {
        Classified {
            declaration: self,
            access,
            doc: "",
            keep_null: &[],
            query_style: QueryStyle::Arguments,
            is_audited: access > Access::View,
        }
    }
}

impl Classified<'_> {
    /// Says what it does.
    pub fn doc(mut self, doc: &'static str) -> Self {
        self.doc = doc;
        self
    }

    /// Notes calls in the audit log although the access class does not ask for it: logins.
    pub fn audited(mut self) -> Self {
        self.is_audited = true;
        self
    }

    /// Keeps calls out of the audit log although the access class asks for it: they change nothing.
    pub fn unaudited(mut self) -> Self {
        self.is_audited = false;
        self
    }

    /// Arguments for which null is a value and not "omitted".
    pub fn keep_null(mut self, arguments: &'static [&'static str]) -> Self {
        self.keep_null = arguments;
        self
    }

    /// Reads query strings as printer objects.
    pub fn query_names_objects(mut self) -> Self {
        self.query_style = QueryStyle::PrinterObjects;
        self
    }

    /// Sets a handler that may wait.
    pub fn handle<S, P, R, F>(self, service: &Arc<S>, handler: impl Fn(Arc<S>, Arc<Call>, P) -> F + Send + Sync + 'static)
    where
        S: Send + Sync + 'static,
        P: DeserializeOwned + JsonSchema + Send + 'static,
        R: Reply,
        F: Future<Output = Result<R, ApiError>> + Send + 'static,
    {
        let service = service.clone();
        let keep_null = self.keep_null;
        let invoke: Handler = Box::new(move |call, arguments| match decode::<P>(arguments, keep_null) {
            Err(error) => Outcome::Done(Err(error)),
            Ok(params) => Outcome::working(handler(service.clone(), call.clone(), params)),
        });
        self.add::<P, R>(invoke);
    }

    /// Sets a handler that answers at once.
    pub fn answer<S, P, R>(self, service: &Arc<S>, handler: impl Fn(&S, &Call, P) -> Result<R, ApiError> + Send + Sync + 'static)
    where
        S: Send + Sync + 'static,
        P: DeserializeOwned + JsonSchema + Send + 'static,
        R: Reply,
    {
        let service = service.clone();
        let keep_null = self.keep_null;
        let invoke: Handler = Box::new(move |call, arguments| {
            let result = decode::<P>(arguments, keep_null).and_then(|params| handler(&service, call, params)?.into_answer());
            Outcome::Done(result)
        });
        self.add::<P, R>(invoke);
    }

    /// Sets a handler that decides by itself whether it answers at once: operations that a cache can answer.
    pub fn respond<S, P>(self, service: &Arc<S>, handler: impl Fn(&Arc<S>, &Arc<Call>, P) -> Outcome + Send + Sync + 'static)
    where
        S: Send + Sync + 'static,
        P: DeserializeOwned + JsonSchema + Send + 'static,
    {
        let service = service.clone();
        let keep_null = self.keep_null;
        let invoke: Handler = Box::new(move |call, arguments| match decode::<P>(arguments, keep_null) {
            Err(error) => Outcome::Done(Err(error)),
            Ok(params) => handler(&service, call, params),
        });
        self.add::<P, Rendered>(invoke);
    }

    /// Sets a handler that takes the arguments as they are: operations that pass them on.
    pub fn pass(self, handler: impl Fn(&Arc<Call>, &Arguments<'_>) -> Outcome + Send + Sync + 'static) {
        let operation = self.operation::<(), Rendered>(Box::new(handler));
        operation.0.operations.push(operation.1);
    }

    fn add<P: JsonSchema, R: Reply>(self, handler: Handler) {
        let (registry, operation) = self.operation::<P, R>(handler);
        registry.operations.push(operation);
    }
}

impl<'r> Classified<'r> {
    fn operation<P: JsonSchema, R: Reply>(self, handler: Handler) -> (&'r mut Registry, Operation) {
        let Declaration { registry, method, routes, transports, is_bare } = self.declaration;
        let operation = Operation {
            method,
            routes,
            access: self.access,
            doc: self.doc,
            query_style: self.query_style,
            is_audited: self.is_audited,
            is_bare,
            params: |generator| generator.subschema_for::<P>(),
            result: R::schema,
            transports,
            handler,
        };
        (registry, operation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Identity;
    use protocol::Form;
    use serde::Deserialize;

    struct Service;

    #[derive(Deserialize, JsonSchema)]
    struct Who {
        name: String,
    }

    fn registry() -> Registry {
        let mut registry = Registry::default();
        let service = Arc::new(Service);
        registry
            .op("server.spool.greet")
            .get("/server/spool/greet")
            .post("/server/spool/greet")
            .access(Access::View)
            .handle(&service, |_, _, who: Who| async move { Ok(format!("hi {}", who.name)) });
        registry.op("server.ping").only(&[Transport::Socket]).access(Access::Open).answer(&service, |_, _, (): ()| Ok("pong"));
        registry
    }

    fn stranger() -> Arc<Call> {
        Arc::new(Call::http(Identity::Stranger, Form::Neutral, None))
    }

    fn done(outcome: Outcome) -> Result<Answer, ApiError> {
        match outcome {
            Outcome::Done(result) => result,
            Outcome::Working(_) => panic!("still working"),
        }
    }

    #[test]
    fn both_vocabularies_find_the_operation() {
        let operations = registry().build().unwrap();
        assert!(!operations.method("server.spool.greet").unwrap().by_upstream_name);
        assert!(operations.method("server.spoolman.greet").unwrap().by_upstream_name);
        assert!(operations.route(Verb::Post, "/server/spoolman/greet").is_ok());
        assert_eq!(operations.route(Verb::Delete, "/server/spool/greet").err().unwrap().kind.http_status(), 405);
        assert_eq!(operations.route(Verb::Get, "/server/none").err().unwrap().kind.http_status(), 404);
    }

    #[test]
    fn strangers_and_wrong_ways_are_refused_before_anything_happens() {
        let operations = registry().build().unwrap();
        let greet = operations.method("server.spool.greet").unwrap().operation;
        assert_eq!(done(greet.invoke(&stranger(), &Arguments::none())).unwrap_err().message, "Unauthorized");
        let ping = operations.method("server.ping").unwrap().operation;
        assert_eq!(done(ping.invoke(&stranger(), &Arguments::none())).unwrap_err().message, "Method not found for transport HTTP");
    }

    #[test]
    fn collisions_are_found() {
        let mut registry = registry();
        registry.op("server.ping").access(Access::Open).answer(&Arc::new(Service), |_, _, (): ()| Ok("pong"));
        assert_eq!(registry.build().err().unwrap(), "declared twice: server.ping");
    }

    #[test]
    fn bare_operations_are_routes_and_no_methods() {
        let mut registry = registry();
        let service = Arc::new(Service);
        registry.op("other.select").post("/api/{root}/{path}").bare().access(Access::View).answer(&service, |_, _, (): ()| Ok(()));
        let operations = registry.build().unwrap();
        assert!(operations.method("other.select").is_none());
        let found = operations.route(Verb::Post, "/api/gcodes/a/b.gcode").unwrap();
        assert!(found.operation.is_bare);
        assert_eq!(found.captured, [("root".to_owned(), "gcodes".to_owned()), ("path".to_owned(), "a/b.gcode".to_owned())]);
        assert_eq!(operations.route(Verb::Get, "/api/gcodes/a").err().unwrap().kind.http_status(), 405);
        assert_eq!(operations.route(Verb::Post, "/api/gcodes").err().unwrap().kind.http_status(), 404);
    }

    #[test]
    fn uploads_collide_with_routes() {
        let mut registry = registry();
        registry.upload("/server/spool/greet", "/x");
        assert_eq!(registry.build().err().unwrap(), "declared twice: post /server/spool/greet");
    }

    #[tokio::test]
    async fn arguments_reach_the_handler() {
        let operations = registry().build().unwrap();
        let mut arguments = Arguments::none();
        arguments.add_pairs(b"name=Ada").unwrap();
        let call = Arc::new(Call::http(Identity::Trusted, Form::Neutral, None));
        let Outcome::Working(work) = operations.method("server.spool.greet").unwrap().operation.invoke(&call, &arguments) else { panic!() };
        assert_eq!(&work.await.unwrap()[..], b"\"hi Ada\"");
    }
}
