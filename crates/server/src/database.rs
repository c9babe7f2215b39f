//! Operations of document 1 *Database*: the key-value store of the clients.

use std::sync::Arc;

use protocol::{ApiError, ErrorKind};
use rpc::{Access, Registry};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use store::{Key, Namespace, Namespaces, StoreError};

/// The clients' database.
pub struct Database {
    namespaces: Namespaces,
}

#[derive(Serialize, JsonSchema)]
struct DatabaseList {
    /// Namespaces that clients can read.
    namespaces: Vec<String>,
    /// Names of backup files.
    backups: Vec<String>,
}

/// A key: a dotted string, or an array of strings.
#[derive(Deserialize, JsonSchema)]
#[schemars(transparent)]
struct KeyArgument(#[schemars(with = "Value")] Box<RawValue>);

#[derive(Deserialize, JsonSchema)]
struct GetParams {
    namespace: String,
    /// The whole namespace when absent.
    #[serde(default)]
    key: Option<KeyArgument>,
}

#[derive(Deserialize, JsonSchema)]
struct PostParams {
    namespace: String,
    key: KeyArgument,
    /// Any JSON value.
    #[schemars(with = "Value")]
    value: Box<RawValue>,
}

#[derive(Deserialize, JsonSchema)]
struct DeleteParams {
    namespace: String,
    key: KeyArgument,
}

#[derive(Serialize, JsonSchema)]
struct DatabaseItem {
    namespace: String,
    /// As it was given; null for a whole namespace.
    #[schemars(with = "Value")]
    key: Option<Box<RawValue>>,
    #[schemars(with = "Value")]
    value: Box<RawValue>,
}

impl KeyArgument {
    fn parse(&self) -> Result<Key, ApiError> {
        let json: Value = serde_json::from_str(self.0.get())
            .map_err(|_| ApiError::bad_request("Argument [key]: expected a string or a list of strings"))?;
        Key::from_json(&json).map_err(to_api)
    }
}

impl Database {
    /// The database of clients in `store`.
    #[must_use]
    pub fn new(namespaces: Namespaces) -> Arc<Self> {
        Arc::new(Self { namespaces })
    }

    /// Declares the operations.
    pub fn register(self: &Arc<Self>, registry: &mut Registry) {
        registry
            .op("server.database.list")
            .get("/server/database/list")
            .access(Access::View)
            .doc("Namespaces that clients can read, and backup files.")
            .handle(self, |database, _, (): ()| async move {
                let namespaces = database.namespaces.client_list().await.map_err(to_api)?;
                Ok(DatabaseList { namespaces, backups: Vec::new() })
            });
        registry
            .op("server.database.get_item")
            .get("/server/database/item")
            .access(Access::View)
            .doc("A stored value, or a whole namespace.")
            .handle(self, |database, _, params: GetParams| async move { database.get(params).await });
        registry
            .op("server.database.post_item")
            .post("/server/database/item")
            .access(Access::Control)
            .doc("Stores a value; missing parents are made, an existing key is overwritten.")
            .keep_null(&["value"])
            .handle(self, |database, _, params: PostParams| async move { database.post(params).await });
        registry
            .op("server.database.delete_item")
            .delete("/server/database/item")
            .access(Access::Control)
            .doc("Removes a value and answers it.")
            .handle(self, |database, _, params: DeleteParams| async move { database.delete(params).await });
    }

    async fn get(&self, params: GetParams) -> Result<DatabaseItem, ApiError> {
        let namespace = Namespace::parse(&params.namespace).map_err(to_api)?;
        let key = params.key.as_ref().map(KeyArgument::parse).transpose()?;
        let value = self.namespaces.client_get(&namespace, key.as_ref()).await.map_err(to_api)?;
        Ok(DatabaseItem { namespace: params.namespace, key: params.key.map(|key| key.0), value })
    }

    async fn post(&self, params: PostParams) -> Result<DatabaseItem, ApiError> {
        let (namespace, key) = (Namespace::parse(&params.namespace).map_err(to_api)?, params.key.parse()?);
        self.namespaces.client_post(&namespace, &key, params.value.clone()).await.map_err(to_api)?;
        Ok(DatabaseItem { namespace: params.namespace, key: Some(params.key.0), value: params.value })
    }

    async fn delete(&self, params: DeleteParams) -> Result<DatabaseItem, ApiError> {
        let (namespace, key) = (Namespace::parse(&params.namespace).map_err(to_api)?, params.key.parse()?);
        let value = self.namespaces.client_delete(&namespace, &key).await.map_err(to_api)?;
        Ok(DatabaseItem { namespace: params.namespace, key: Some(params.key.0), value })
    }
}

/// A fault of the store, for clients.
#[allow(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
fn to_api(error: StoreError) -> ApiError {
    let kind = match error.kind() {
        store::ErrorKind::NotFound => ErrorKind::NotFound,
        store::ErrorKind::Invalid => ErrorKind::BadRequest,
        store::ErrorKind::Denied => ErrorKind::Forbidden,
        store::ErrorKind::Unavailable => ErrorKind::Unavailable,
        store::ErrorKind::Internal => ErrorKind::Internal,
    };
    let kind = if matches!(error, StoreError::Full) { ErrorKind::Storage } else { kind };
    ApiError::new(kind, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rpc::registry::Verb;
    use rpc::{Arguments, Call, Identity, Outcome};
    use store::Store;

    struct Client(rpc::Operations);

    impl Client {
        fn new() -> Self {
            let mut registry = Registry::default();
            Database::new(Namespaces::new(Store::in_memory(&[]).unwrap())).register(&mut registry);
            Self(registry.build().unwrap())
        }

        async fn call(&self, verb: Verb, body: &str) -> Result<String, ApiError> {
            let call = Arc::new(Call::http(Identity::Trusted, protocol::Form::Neutral, None));
            let mut arguments = Arguments::none();
            arguments.add_json_object(body).unwrap();
            let operation = self.0.route(verb, "/server/database/item").unwrap().operation;
            let answer = match operation.invoke(&call, &arguments) {
                Outcome::Done(result) => result,
                Outcome::Working(work) => work.await,
            };
            answer.map(|answer| String::from_utf8(answer.to_vec()).unwrap())
        }
    }

    #[tokio::test]
    async fn items_come_back_as_they_were_stored() {
        let client = Client::new();
        let stored = client.call(Verb::Post, r#"{"namespace":"mainsail","key":["a","b.c"],"value":{"x":1.50}}"#).await.unwrap();
        assert_eq!(stored, r#"{"namespace":"mainsail","key":["a","b.c"],"value":{"x":1.50}}"#);
        assert_eq!(
            client.call(Verb::Get, r#"{"namespace":"mainsail"}"#).await.unwrap(),
            r#"{"namespace":"mainsail","key":null,"value":{"a":{"b.c":{"x":1.50}}}}"#
        );
        let removed = client.call(Verb::Delete, r#"{"namespace":"mainsail","key":"a"}"#).await.unwrap();
        assert_eq!(removed, r#"{"namespace":"mainsail","key":"a","value":{"b.c":{"x":1.50}}}"#);
        let gone = client.call(Verb::Get, r#"{"namespace":"mainsail","key":null}"#).await.unwrap_err();
        assert_eq!((gone.kind, gone.message.as_str()), (ErrorKind::NotFound, "Namespace 'mainsail' not found"));
    }

    #[tokio::test]
    async fn null_is_a_value_and_a_missing_value_is_not() {
        let client = Client::new();
        client.call(Verb::Post, r#"{"namespace":"n","key":"k","value":null}"#).await.unwrap();
        assert_eq!(client.call(Verb::Get, r#"{"namespace":"n","key":"k"}"#).await.unwrap(), r#"{"namespace":"n","key":"k","value":null}"#);
        let missing = client.call(Verb::Post, r#"{"namespace":"n","key":"k"}"#).await.unwrap_err();
        assert_eq!(missing.message, "No data for argument: value");
    }

    #[tokio::test]
    async fn texts_and_kinds_that_clients_compare() {
        let client = Client::new();
        client.call(Verb::Post, r#"{"namespace":"n","key":"k","value":1}"#).await.unwrap();
        let gone = client.call(Verb::Get, r#"{"namespace":"n","key":"a.b"}"#).await.unwrap_err();
        assert_eq!((gone.kind, gone.message.as_str()), (ErrorKind::NotFound, "Key 'a.b' in namespace 'n' not found"));
        for key in [r#""""#, r#""a..b""#, "[]", "5", "{}"] {
            let bad = client.call(Verb::Get, &format!(r#"{{"namespace":"n","key":{key}}}"#)).await.unwrap_err();
            assert_eq!(bad.kind, ErrorKind::BadRequest, "{key}: {}", bad.message);
            assert!(bad.message.contains("key"), "{}", bad.message);
        }
        let denied = client.call(Verb::Post, r#"{"namespace":"moonraker","key":"k","value":1}"#).await.unwrap_err();
        assert_eq!(denied.kind, ErrorKind::Forbidden);
    }
}
