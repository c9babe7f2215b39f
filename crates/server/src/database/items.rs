//! Values: get, add, delete. Document 1, *Database*, rules 1 to 3; wire/1-core.md section 4.3.

use std::sync::Arc;

use protocol::vocabulary::CORE_NAMESPACE;
use protocol::{ApiError, Form};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use store::{Key, Namespace, StoreError};

use super::{Database, to_api};

/// A key: a dotted string, or an array of strings.
#[derive(Deserialize, JsonSchema)]
#[schemars(transparent)]
pub(super) struct KeyArgument(#[schemars(with = "Value")] Box<RawValue>);

#[derive(Deserialize, JsonSchema)]
pub(super) struct GetParams {
    namespace: String,
    /// The whole namespace when absent.
    #[serde(default)]
    key: Option<KeyArgument>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct PostParams {
    namespace: String,
    key: KeyArgument,
    /// Any JSON value.
    #[schemars(with = "Value")]
    value: Box<RawValue>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct DeleteParams {
    namespace: String,
    key: KeyArgument,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct DatabaseItem {
    namespace: String,
    /// As it was given; null for a whole namespace.
    #[schemars(with = "Value")]
    key: Option<Box<RawValue>>,
    #[schemars(with = "Value")]
    value: Stored,
}

/// A value: shared with others who read it, or read for one.
#[derive(Serialize)]
#[serde(untagged)]
enum Stored {
    Shared(Arc<RawValue>),
    Own(Box<RawValue>),
}

/// Who asks: a client, or somebody who looks for a fault.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// Forbidden namespaces do not show, protected ones do not change.
    Client,
    /// Every namespace can be read, and all but the forbidden ones written.
    Debug,
}

impl KeyArgument {
    fn parse(&self) -> Result<Key, ApiError> {
        let json: Value = serde_json::from_str(self.0.get())
            .map_err(|_| ApiError::bad_request("Argument [key]: expected a string or a list of strings"))?;
        Key::from_json(&json).map_err(to_api)
    }
}

/// The namespace of this name; both names of our own one lead to the same records.
fn namespace(name: &str) -> Result<Namespace, ApiError> {
    Namespace::parse(if CORE_NAMESPACE.is(name) { CORE_NAMESPACE.neutral } else { name }).map_err(to_api)
}

/// An error about the namespace that the caller calls `name`, in this word: the store knows only one name of our own one.
fn told_as(name: &str, error: StoreError) -> ApiError {
    let mut error = to_api(error);
    let named = |name: &str| format!("amespace '{name}'");
    if let Some((before, after)) = error.message.rsplit_once(&named(CORE_NAMESPACE.neutral))
        && CORE_NAMESPACE.is(name)
    {
        error.message = format!("{before}{}{after}", named(name));
    }
    error
}

impl Database {
    /// Names of namespaces, in the caller's form.
    pub(super) async fn list(&self, reach: Reach, form: Form) -> Result<Vec<String>, ApiError> {
        let names = match reach {
            Reach::Client => self.namespaces.client_list().await,
            Reach::Debug => self.namespaces.list().await,
        };
        let shown = |name: String| if CORE_NAMESPACE.is(&name) { CORE_NAMESPACE.in_form(form).to_owned() } else { name };
        Ok(names.map_err(to_api)?.into_iter().map(shown).collect())
    }

    pub(super) async fn get(&self, reach: Reach, params: GetParams) -> Result<DatabaseItem, ApiError> {
        let namespace = namespace(&params.namespace)?;
        let key = params.key.as_ref().map(KeyArgument::parse).transpose()?;
        let value = match reach {
            Reach::Client => self.namespaces.client_get(&namespace, key.as_ref()).await.map(Stored::Shared),
            Reach::Debug => self.namespaces.get(&namespace, key.as_ref()).await.map(Stored::Own),
        };
        let value = value.map_err(|error| told_as(&params.namespace, error))?;
        Ok(DatabaseItem { namespace: params.namespace, key: params.key.map(|key| key.0), value })
    }

    pub(super) async fn post(&self, reach: Reach, params: PostParams) -> Result<DatabaseItem, ApiError> {
        let (namespace, key) = (namespace(&params.namespace)?, params.key.parse()?);
        let value = params.value.clone();
        let stored = match reach {
            Reach::Client => self.namespaces.client_post(&namespace, &key, value).await,
            Reach::Debug => self.namespaces.debug_post(&namespace, &key, value).await,
        };
        stored.map_err(|error| told_as(&params.namespace, error))?;
        Ok(DatabaseItem { namespace: params.namespace, key: Some(params.key.0), value: Stored::Own(params.value) })
    }

    pub(super) async fn delete(&self, reach: Reach, params: DeleteParams) -> Result<DatabaseItem, ApiError> {
        let (namespace, key) = (namespace(&params.namespace)?, params.key.parse()?);
        let value = match reach {
            Reach::Client => self.namespaces.client_delete(&namespace, &key).await,
            Reach::Debug => self.namespaces.debug_delete(&namespace, &key).await,
        };
        let value = value.map_err(|error| told_as(&params.namespace, error))?;
        Ok(DatabaseItem { namespace: params.namespace, key: Some(params.key.0), value: Stored::Own(value) })
    }
}
