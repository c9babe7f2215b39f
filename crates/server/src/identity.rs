//! Who a connection is: identify, and the older websocket id.

use std::sync::Arc;

use protocol::{ApiError, Form, vocabulary};
use rpc::{Access, Call, ClientInfo, ClientKind, ConnectionId, Registry, Transport};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::administration::{Administration, Credential};

#[derive(Deserialize, JsonSchema)]
struct IdentifyParams {
    /// Name of the program.
    client_name: String,
    /// Its version.
    version: String,
    /// `web`, `mobile`, `desktop`, `display`, `bot`, `agent` or `other`.
    r#type: String,
    /// Its home page.
    url: String,
    /// A token, when the connection was opened without credentials.
    #[serde(default)]
    access_token: Option<String>,
    /// The API key, likewise.
    #[serde(default)]
    api_key: Option<String>,
    /// `neutral` or `upstream`: the form of values that the client reads. Known clients need not say it.
    #[serde(default)]
    vocabulary: Option<Vocabulary>,
}

#[derive(Deserialize, JsonSchema, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Vocabulary {
    Neutral,
    Upstream,
}

#[derive(Serialize, JsonSchema)]
struct Identified {
    connection_id: ConnectionId,
}

#[derive(Serialize, JsonSchema)]
struct WebsocketId {
    websocket_id: ConnectionId,
}

impl Administration {
    pub(crate) fn register_identity(self: &Arc<Self>, registry: &mut Registry) {
        registry
            .op("server.connection.identify")
            .only(&[Transport::Socket])
            .access(Access::Open)
            .doc("Introduces the client behind this connection; works once.")
            .answer(self, |server, call, params: IdentifyParams| identify(server, call, params));
        registry
            .op("server.websocket.id")
            .only(&[Transport::Socket])
            .access(Access::View)
            .doc("The number of this connection. Deprecated: use server.connection.identify.")
            .answer(self, |_, call, (): ()| Ok(WebsocketId { websocket_id: call.connection()?.id }));
    }
}

fn identify(server: &Administration, call: &Call, params: IdentifyParams) -> Result<Identified, ApiError> {
    let connection = call.connection()?;
    if connection.client().is_some() {
        return Err(ApiError::bad_request("Connection already identified"));
    }
    // A token says who it is even to a connection that is open already. A key opens one; a wrong key, which many clients have from an earlier installation, does not
    // close what is open without it.
    let shown = match (&params.access_token, &params.api_key) {
        (Some(token), _) => Some(Credential::AccessToken(token)),
        (None, Some(key)) => Some(Credential::ApiKey(key)).filter(|_| connection.identity().user().is_none()),
        (None, None) => None,
    };
    if let Some(credential) = shown {
        let is_needed = params.access_token.is_some() || !connection.is_authorised();
        (server.parts.authenticate)(connection, credential).or_else(|error| if is_needed { Err(error) } else { Ok(()) })?;
    }
    if !connection.is_authorised() {
        return Err(ApiError::unauthorized());
    }
    let form = match params.vocabulary {
        Some(Vocabulary::Neutral) => Form::Neutral,
        Some(Vocabulary::Upstream) => Form::Upstream,
        None if vocabulary::is_upstream_client(&params.client_name) => Form::Upstream,
        None => connection.form(),
    };
    let info = ClientInfo { kind: kind(&params.r#type)?, name: params.client_name, version: params.version, url: params.url };
    server.connections.identify(connection, info)?;
    connection.set_form(form);
    Ok(Identified { connection_id: connection.id })
}

fn kind(text: &str) -> Result<ClientKind, ApiError> {
    serde_json::from_value(text.to_lowercase().into()).map_err(|_| {
        ApiError::argument(format!(
            "Unable to convert argument [type]: expected one of web, mobile, desktop, display, bot, agent, other, got \"{text}\""
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::administration::Parts;
    use crate::config_report::ConfigReport;
    use crate::warnings::Warnings;
    use fwhost::FwHost;
    use rpc::{Connection, ConnectionKind, Identity};
    use serde_json::Value;

    fn params(client: &str, kind: &str) -> IdentifyParams {
        IdentifyParams {
            client_name: client.into(),
            version: "1".into(),
            r#type: kind.into(),
            url: String::new(),
            access_token: None,
            api_key: None,
            vocabulary: None,
        }
    }

    /// A server that knows the token and the key `good`.
    fn server() -> Arc<Administration> {
        let authenticate = |connection: &Connection, credential: Credential<'_>| {
            let (Credential::AccessToken(shown) | Credential::ApiKey(shown)) = credential;
            if shown != "good" {
                return Err(ApiError::unauthorized());
            }
            connection.set_identity(Identity::Trusted);
            Ok(())
        };
        let parts = Parts {
            components: Arc::default(),
            failed_components: Arc::default(),
            directories: Box::new(Vec::new),
            roll_over: Arc::new(|| Box::pin(async { Ok(()) })),
            roll_over_firmware: Arc::new(|| Box::pin(async { Ok(()) })),
            restart: Box::new(|| {}),
            authenticate: Box::new(authenticate),
            config: ConfigReport { config: Value::Null, orig: Value::Null, files: Vec::new() },
        };
        Administration::new(FwHost::new(fwhost::Options::new("none", "", "")), Arc::default(), Warnings::default(), parts)
    }

    #[test]
    fn a_bad_type_leaves_the_connection_free_to_try_again() {
        let server = server();
        let registered = server.connections.register(ConnectionKind::Websocket, Identity::Trusted, None);
        let identify = |client, kind| identify(&server, &Call::on(&registered.connection), params(client, kind));
        assert!(identify("x", "toaster").is_err_and(|error| error.message.contains("[type]")));
        assert_eq!(identify("Mainsail", "WEB").unwrap().connection_id, registered.connection.id);
        assert_eq!(registered.connection.form(), Form::Upstream);
        assert!(identify("x", "web").is_err());
    }

    #[test]
    fn a_wrong_key_does_not_close_what_is_open_without_it() {
        let server = server();
        for (token, fits) in [(None, true), (Some("bad".to_owned()), false)] {
            let registered = server.connections.register(ConnectionKind::Websocket, Identity::Trusted, None);
            let params = IdentifyParams { access_token: token, api_key: Some("bad".to_owned()), ..params("x", "web") };
            assert_eq!(identify(&server, &Call::on(&registered.connection), params).is_ok(), fits);
        }
    }

    #[test]
    fn strangers_need_a_good_credential_and_may_try_again() {
        let server = server();
        let registered = server.connections.register(ConnectionKind::Websocket, Identity::Stranger, None);
        let with = |token: Option<&str>, key: Option<&str>| {
            let params = IdentifyParams { access_token: token.map(str::to_owned), api_key: key.map(str::to_owned), ..params("x", "web") };
            identify(&server, &Call::on(&registered.connection), params).map(|_| ()).map_err(|error| error.message)
        };
        for (token, key) in [(None, None), (Some("bad"), None), (None, Some("bad")), (Some("bad"), Some("good"))] {
            assert_eq!(with(token, key), Err("Unauthorized".into()), "{token:?} {key:?}");
        }
        assert_eq!(with(None, Some("good")), Ok(()));
        assert_eq!(registered.connection.identity(), Identity::Trusted);
    }
}
