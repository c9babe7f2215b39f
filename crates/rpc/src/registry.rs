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

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use protocol::{ApiError, dual, vocabulary};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::args::Arguments;
use crate::call::{Access, Call, Transport};
use crate::decode::decode;

/// JSON text of a result.
pub type Answer = Bytes;

/// A call that is still being worked on.
pub type Working = Pin<Box<dyn Future<Output = Result<Answer, ApiError>> + Send>>;

/// What calling an operation gives.
pub enum Outcome {
    /// Finished at once.
    Done(Result<Answer, ApiError>),
    /// Goes on.
    Working(Working),
}

impl Outcome {
    /// Work that goes on.
    pub fn working<R: Reply>(work: impl Future<Output = Result<R, ApiError>> + Send + 'static) -> Self {
        Self::Working(Box::pin(async move { work.await?.into_answer() }))
    }
}

/// Verbs of HTTP routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verb {
    /// GET
    Get,
    /// POST
    Post,
    /// DELETE
    Delete,
}

impl Verb {
    /// Lower-case name, as in OpenAPI.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Post => "post",
            Self::Delete => "delete",
        }
    }
}

/// How a query string is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum QueryStyle {
    /// Keys are arguments.
    #[default]
    Arguments,
    /// Keys are printer objects, values their fields (`?toolhead&extruder=target`).
    PrinterObjects,
}

/// A result whose JSON text is made by its producer: passed through from the firmware host, or taken from a cache.
#[derive(Debug, Clone)]
pub struct Rendered(pub Bytes);

/// What an operation may return.
pub trait Reply: Send + 'static {
    /// The JSON text, with both names of renamed members.
    ///
    /// # Errors
    /// 500 when it cannot be encoded.
    fn into_answer(self) -> Result<Answer, ApiError>;
    /// The schema for the contract.
    fn schema(generator: &mut SchemaGenerator) -> Schema;
}

impl<T: Serialize + JsonSchema + Send + 'static> Reply for T {
    fn into_answer(self) -> Result<Answer, ApiError> {
        dual::to_vec(&self).map(Bytes::from).map_err(|error| ApiError::internal(format!("The result could not be encoded: {error}")))
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<T>()
    }
}

impl Reply for Rendered {
    fn into_answer(self) -> Result<Answer, ApiError> {
        Ok(self.0)
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        Schema::from(true)
    }
}

type Handler = Box<dyn Fn(&Arc<Call>, &Arguments<'_>) -> Outcome + Send + Sync>;
type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// One operation.
pub struct Operation {
    /// Neutral JSON-RPC method name.
    pub method: String,
    /// HTTP routes, neutral.
    pub routes: Vec<(Verb, String)>,
    /// Who may call.
    pub access: Access,
    /// What it does, in sentences.
    pub doc: &'static str,
    /// How its query string is read.
    pub query_style: QueryStyle,
    /// Schema of the parameters.
    pub params: SchemaOf,
    /// Schema of the result.
    pub result: SchemaOf,
    transports: u8,
    handler: Handler,
}

impl Operation {
    /// True when it can be called by this way.
    #[must_use]
    pub fn serves(&self, transport: Transport) -> bool {
        self.transports & transport.bit() != 0
    }

    /// Checks the way and the right, decodes, and calls.
    #[must_use]
    pub fn invoke(&self, call: &Arc<Call>, arguments: &Arguments<'_>) -> Outcome {
        if !self.serves(call.transport) {
            let text = format!("Method not found for transport {}", call.transport.as_str());
            return Outcome::Done(Err(ApiError::not_found(text)));
        }
        if !call.identity.may(self.access) {
            return Outcome::Done(Err(ApiError::unauthorized()));
        }
        (self.handler)(call, arguments)
    }
}

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

/// Operations under construction.
#[derive(Default)]
pub struct Registry {
    operations: Vec<Operation>,
    dynamic: Option<Arc<dyn DynamicOperations>>,
}

/// Start of a declaration: names, but no access class yet.
#[must_use]
pub struct Declaration<'r> {
    registry: &'r mut Registry,
    method: String,
    routes: Vec<(Verb, String)>,
    transports: u8,
}

/// A declaration with its access class.
#[must_use]
pub struct Classified<'r> {
    declaration: Declaration<'r>,
    access: Access,
    doc: &'static str,
    keep_null: &'static [&'static str],
    query_style: QueryStyle,
}

impl Registry {
    /// Declares the operation with this neutral method name.
    pub fn op(&mut self, method: impl Into<String>) -> Declaration<'_> {
        Declaration { registry: self, method: method.into(), routes: Vec::new(), transports: 0xff }
    }

    /// Sets the finder of operations that exist only at run time.
    pub fn set_dynamic(&mut self, dynamic: Arc<dyn DynamicOperations>) {
        self.dynamic = Some(dynamic);
    }

    /// The finished tables.
    ///
    /// # Errors
    /// Lists every name that stands twice.
    pub fn build(self) -> Result<Operations, String> {
        let mut tables = Operations { methods: HashMap::new(), routes: HashMap::new(), all: Vec::new(), dynamic: self.dynamic };
        let mut twice = Vec::new();
        for operation in self.operations {
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
}

impl<'r> Declaration<'r> {
    /// Adds a GET route.
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

    /// Sets who may call.
    pub fn access(self, access: Access) -> Classified<'r> {
        Classified { declaration: self, access, doc: "", keep_null: &[], query_style: QueryStyle::Arguments }
    }
}

impl Classified<'_> {
    /// Says what it does.
    pub fn doc(mut self, doc: &'static str) -> Self {
        self.doc = doc;
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
        let Declaration { registry, method, routes, transports } = self.declaration;
        let operation = Operation {
            method,
            routes,
            access: self.access,
            doc: self.doc,
            query_style: self.query_style,
            params: |generator| generator.subschema_for::<P>(),
            result: R::schema,
            transports,
            handler,
        };
        (registry, operation)
    }
}

/// Makes an operation outside a registry, for [`DynamicOperations`].
pub fn dynamic_operation(
    method: String,
    access: Access,
    handler: impl Fn(&Arc<Call>, &Arguments<'_>) -> Outcome + Send + Sync + 'static,
) -> Operation {
    Operation {
        method,
        routes: Vec::new(),
        access,
        doc: "",
        query_style: QueryStyle::Arguments,
        params: |_| Schema::from(true),
        result: |_| Schema::from(true),
        transports: 0xff,
        handler: Box::new(handler),
    }
}

type RouteEntry = (Verb, Arc<Operation>, bool);

/// All operations, ready to be called.
pub struct Operations {
    methods: HashMap<String, (Arc<Operation>, bool)>,
    routes: HashMap<String, Vec<RouteEntry>>,
    all: Vec<Arc<Operation>>,
    dynamic: Option<Arc<dyn DynamicOperations>>,
}

impl Operations {
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
                None => Err(ApiError::new(protocol::ErrorKind::NotAllowed, "Method Not Allowed")),
            };
        }
        let dynamic = self.dynamic.as_ref().zip(path.strip_prefix('/'));
        match dynamic.and_then(|(dynamic, path)| dynamic.method(&path.replace('/', "."))) {
            Some(_) if verb == Verb::Delete => Err(ApiError::new(protocol::ErrorKind::NotAllowed, "Method Not Allowed")),
            Some(operation) => Ok(Found { operation, by_upstream_name: false }),
            None => Err(ApiError::not_found("Not Found")),
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Identity;
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
