//! One operation and what calling it gives.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use protocol::{ApiError, dual};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;

use crate::args::Arguments;
use crate::call::{Call, Transport};
use crate::identity::Access;

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

pub(crate) type Handler = Box<dyn Fn(&Arc<Call>, &Arguments<'_>) -> Outcome + Send + Sync>;
/// Makes the schema of a type.
pub type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

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
    /// Calls are noted in the audit log.
    pub is_audited: bool,
    /// Its HTTP answer is the result itself, not a member `result`, and it is no JSON-RPC method: an operation of another server's API. A
    /// result that says nothing gives 204 without a body.
    pub is_bare: bool,
    pub(crate) transports: u8,
    pub(crate) handler: Handler,
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
        if let Err(refused) = call.identity.check(self.access) {
            return Outcome::Done(Err(refused));
        }
        (self.handler)(call, arguments)
    }
}

/// Makes an operation outside a registry, for [`crate::DynamicOperations`].
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
        is_audited: access > Access::View,
        is_bare: false,
        transports: 0xff,
        handler: Box::new(handler),
    }
}
