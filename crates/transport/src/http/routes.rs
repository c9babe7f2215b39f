//! From a request to its answer.

use std::net::IpAddr;
use std::sync::Arc;

use access::Admission;
use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, header};
use hyper::body::Incoming;
use percent_encoding::percent_decode_str;
use protocol::{ApiError, ErrorKind, Form, vocabulary};
use rpc::dispatch::invoke;
use rpc::registry::{Found, Outcome};
use rpc::{Access, Call, ConnectionId, Identity, Origin, Verb};

use super::cameras::{self, Wanted};
use super::{Request, Response, answer, arguments, cors, download, page, site, tus, upload};
use crate::gateway::Gateway;
use crate::limits::{MAX_BODY, MAX_STRANGER_BODY};
use crate::{bridge, socket};

/// Routes that are no operations.
const FIXED: &[&str] = &[
    "/",
    "/docs",
    "/server/openapi.json",
    "/server/rpc.json",
    "/websocket",
    "/fwhostsocket",
    "/klippysocket",
    "/server/jsonrpc",
    cameras::ROUTES[0],
    cameras::ROUTES[1],
];

/// Where the discovery of UPnP finds our description.
pub const DESCRIPTION: &str = "/server/zeroconf/ssdp";

/// How a request came.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrival {
    /// The other end of the connection.
    pub peer: IpAddr,
    /// By TLS.
    pub is_secure: bool,
}

/// What a request is after its body was split off.
struct Head<'a> {
    path: &'a str,
    query: &'a str,
    method: &'a Method,
    headers: &'a HeaderMap,
    admission: &'a Admission,
    is_secure: bool,
}

/// Answers one request; never fails.
pub(super) async fn handle(gateway: Arc<Gateway>, arrival: Arrival, request: Request) -> Response {
    if let Some(port) = gateway.settings.https_instead
        && !gateway.gate.is_proxy(arrival.peer)
        && let Some(secured) = secured(arrival, port, &request)
    {
        return answer::elsewhere(&secured);
    }
    let admission = gateway.admit(arrival.peer, request.headers(), request.uri().query().unwrap_or(""));
    let origin = request.headers().get(header::ORIGIN).filter(|_| admission.cors_allowed).cloned();
    let mut response = match route(&gateway, &admission, arrival.is_secure, request).await {
        Ok(response) => response,
        Err(error) => answer::error(&error),
    };
    if let Some(origin) = origin {
        cors::allow(&mut response, origin);
    }
    response
}

async fn route(gateway: &Arc<Gateway>, admission: &Admission, is_secure: bool, request: Request) -> Result<Response, ApiError> {
    let path = strip_prefix(request.uri().path(), &gateway.settings.route_prefix).ok_or_else(|| unknown(admission))?.to_owned();
    if request.method() == Method::OPTIONS && tus::is_ours(&path) {
        return Ok(tus::options(gateway.files.as_ref(), admission.cors_allowed, request.headers()));
    }
    if request.method() == Method::OPTIONS {
        return Ok(cors::preflight(admission.cors_allowed, is_known(gateway, &path), request.headers()));
    }
    if request.method() == Method::GET {
        match path.as_str() {
            "/websocket" => return socket::upgrade(gateway, admission, request),
            "/fwhostsocket" | "/klippysocket" => return bridge::upgrade(gateway, admission, request).await,
            _ => {}
        }
        if let Some(wanted) = Wanted::of(&path, request.uri().query().unwrap_or("")) {
            admission.identity.check(Wanted::ACCESS)?;
            return wanted.ask(gateway.cameras.as_ref()).await;
        }
    }
    if matches!(*request.method(), Method::GET | Method::HEAD)
        && let Some(response) = page(gateway, admission, &path, &request).await?
    {
        return Ok(response);
    }
    let (parts, body) = request.into_parts();
    let query = parts.uri.query().unwrap_or("");
    let head = Head { path: &path, query, method: &parts.method, headers: &parts.headers, admission, is_secure };
    let upload_route = gateway.dispatcher.operations.upload(&path);
    match (head.method, head.path) {
        (&Method::POST, "/server/jsonrpc") => json_rpc(gateway, &head, body).await,
        (&Method::POST, _) if let Some(route) = upload_route => {
            let location = vocabulary::route_alias(route.location).filter(|_| gateway.connections.default_form() == Form::Upstream);
            let address = format!("{}{}", base_url(gateway, &head), location.as_deref().unwrap_or(route.location));
            may_change(admission)?;
            let call = Arc::new(Call::http(admission.identity.clone(), gateway.connections.default_form(), Some(admission.peer())));
            let result = upload::receive(gateway.files.as_ref(), call.clone(), head.headers, body, &address).await;
            let place = result.as_ref().ok().and_then(|response| response.headers().get(header::LOCATION)?.to_str().ok());
            gateway.dispatcher.operations.note(&call, "server.files.upload", place, &result);
            result
        }
        (method, path) if tus::is_ours(path) => {
            let base_url = base_url(gateway, &head);
            may_change(admission)?;
            let call = Arc::new(Call::http(admission.identity.clone(), gateway.connections.default_form(), Some(admission.peer())));
            let asked = tus::Asked { method, path, headers: head.headers, base_url: &base_url };
            let response = tus::serve(gateway.files.as_ref(), call.clone(), &asked, body).await;
            // Who began it and who gave it up; the pieces between say nothing more.
            if matches!(*method, Method::POST | Method::DELETE) && response.status().is_success() {
                gateway.dispatcher.operations.note(&call, "server.files.uploads", Some(path), &Ok(()));
            }
            Ok(response)
        }
        // Known, but not by this verb.
        (_, path) if FIXED.contains(&path) || upload_route.is_some() => Err(authorised(admission).err().unwrap_or_else(not_allowed)),
        (method, path) if path.starts_with("/server/files/") && !gateway.dispatcher.operations.has_route(path) => {
            file(gateway, &head, method).await
        }
        _ => operation(gateway, &head, body).await,
    }
}

/// Front end, built-in page and contract. Pages are for strangers as well; what they show is not.
async fn page(gateway: &Arc<Gateway>, admission: &Admission, path: &str, request: &Request) -> Result<Option<Response>, ApiError> {
    let (method, headers) = (request.method(), request.headers());
    if page::CONTRACT.contains(&path) {
        authorised(admission)?;
        let (gateway, path, headers) = (gateway.clone(), path.to_owned(), headers.clone());
        let writing = move || gateway.page.contract(&path, &gateway.dispatcher.operations, &headers);
        return tokio::task::spawn_blocking(writing).await.map(Some).map_err(|error| ApiError::internal(error.to_string()));
    }
    // Addresses in the page are relative, so that it works below any prefix; they need the slash at the end of it.
    if path == "/" && !request.uri().path().ends_with('/') {
        return Ok(Some(answer::redirect(&format!("{}/", request.uri().path().rsplit('/').next().unwrap_or("")))));
    }
    if path == DESCRIPTION
        && let Some(description) = &gateway.description
    {
        return Ok(Some(answer::text(StatusCode::OK, "text/xml; charset=\"utf-8\"", description.clone())));
    }
    let own = || gateway.page.file(path, headers);
    let Some(site) = &gateway.site else { return Ok(own()) };
    if site::is_interface(path) || gateway.dispatcher.operations.has_route(path) {
        return Ok(None);
    }
    // `/docs` stays with every front end.
    if path != "/"
        && let Some(response) = own()
    {
        return Ok(Some(response));
    }
    if let Some(response) = site.file(path, method, headers).await {
        return Ok(Some(response));
    }
    let response = if path == "/" { own() } else { site.page(path, method, headers).await };
    // Which files a public folder has is no secret.
    response.map(Some).ok_or_else(|| ApiError::not_found("Not Found"))
}

/// An operation of the registry.
async fn operation(gateway: &Arc<Gateway>, head: &Head<'_>, body: Incoming) -> Result<Response, ApiError> {
    let verb = match *head.method {
        Method::GET => Verb::Get,
        Method::POST => Verb::Post,
        Method::DELETE => Verb::Delete,
        _ => return Err(not_allowed()),
    };
    let Found { operation, by_upstream_name, captured } = match gateway.dispatcher.operations.route(verb, head.path) {
        // Strangers do not learn which routes exist.
        Err(error) => return Err(authorised(head.admission).err().unwrap_or(error)),
        Ok(found) => found,
    };
    if let Err(refused) = head.admission.identity.check(operation.access) {
        if operation.is_audited {
            let call = Call::http(head.admission.identity.clone(), Form::Neutral, Some(head.admission.peer()));
            gateway.dispatcher.operations.note(&call, &operation.method, None, &Err::<(), _>(refused.clone()));
        }
        return Err(refused);
    }
    // An image or a form on somebody's page must not move a printer, whatever address the browser has. It cannot know credentials.
    let admission = head.admission;
    let foreign = is_by_address(admission) && (admission.cross_site || (verb == Verb::Get && admission.unproven_page));
    if foreign && operation.access > Access::View {
        return Err(ApiError::unauthorized());
    }
    let body = arguments::read_body(head.headers, body, body_limit(head.admission)).await?;
    let form = arguments::understand(head.headers, body).await?;
    let mut merged = arguments::merge(operation.query_style, head.query, &form)?;
    for (name, text) in captured {
        merged.add(name.into(), rpc::ArgValue::Text(decoded(&text)?.into()))?;
    }
    let values = if by_upstream_name { Form::Upstream } else { gateway.connections.default_form() };
    let mut call = Call::http(head.admission.identity.clone(), values, Some(head.admission.peer()));
    call.connection = named_connection(gateway, head);
    let call = Arc::new(call);
    let result = match invoke(&gateway.dispatcher.operations, &operation, &call, &merged) {
        Outcome::Done(result) => result,
        Outcome::Working(work) if verb == Verb::Get && operation.access <= Access::View => work.await,
        // Whatever may change something is finished even when the client leaves.
        Outcome::Working(work) => gateway.dispatcher.to_the_end(work).await?,
    };
    result.map(|data| match operation.is_bare {
        false => answer::result(&data),
        true if &data[..] == b"null" => answer::bare(StatusCode::NO_CONTENT),
        true => answer::json(StatusCode::OK, data),
    })
}

/// A part of a path as it is meant.
fn decoded(encoded: &str) -> Result<String, ApiError> {
    let decoded = percent_decode_str(encoded).decode_utf8().map_err(|_| ApiError::bad_request("The path is not valid UTF-8"))?;
    Ok(decoded.into_owned())
}

/// The websocket that `connection_id` names, if the caller may act for it: same address, same standing.
fn named_connection(gateway: &Gateway, head: &Head<'_>) -> Option<Arc<rpc::Connection>> {
    let id = arguments::query_value(head.query, "connection_id")?.parse().ok()?;
    let connection = gateway.connections.get(ConnectionId(id))?;
    let same_place = connection.peer.is_some_and(|peer| peer.address == head.admission.address);
    let same = same_place && connection.identity().is_same_as(&head.admission.identity);
    same.then_some(connection)
}

async fn json_rpc(gateway: &Arc<Gateway>, head: &Head<'_>, body: Incoming) -> Result<Response, ApiError> {
    let text = arguments::read_body(head.headers, body, body_limit(head.admission)).await?;
    if head.admission.cross_site && is_by_address(head.admission) {
        return Err(ApiError::unauthorized());
    }
    let origin = Origin::Http {
        identity: head.admission.identity.clone(),
        form: gateway.connections.default_form(),
        peer: Some(head.admission.peer()),
    };
    let dispatcher = gateway.dispatcher.clone();
    // A task of its own, so that a client that leaves cancels nothing.
    let (frame, _calls) = gateway.dispatcher.to_the_end(async move { dispatcher.document(&origin, &text).await }).await?;
    Ok(match frame {
        Some(frame) => answer::json(StatusCode::OK, frame),
        None => answer::bare(StatusCode::NO_CONTENT),
    })
}

/// `/server/files/{root}/{path}`: download or delete.
async fn file(gateway: &Arc<Gateway>, head: &Head<'_>, method: &Method) -> Result<Response, ApiError> {
    let path = decoded(head.path.strip_prefix("/server/files/").unwrap_or(""))?;
    // The route names the root: a path that climbs out of it is no path of this root, even where it leads to another one.
    if path.split('/').any(|part| part == "..") {
        authorised(head.admission)?;
        return Err(ApiError::forbidden("The path leaves its root"));
    }
    match *method {
        Method::GET | Method::HEAD => {
            head.admission.identity.check(gateway.files.reading(&path))?;
            let download = gateway.files.open(path).await?;
            let versioned = arguments::query_value(head.query, "v").is_some();
            Ok(download::send(download, head.method, head.headers, versioned))
        }
        Method::DELETE => {
            may_change(head.admission)?;
            delete_file(gateway, head, &path).await
        }
        _ => Err(authorised(head.admission).err().unwrap_or_else(not_allowed)),
    }
}

async fn delete_file(gateway: &Arc<Gateway>, head: &Head<'_>, path: &str) -> Result<Response, ApiError> {
    let Some(found) = gateway.dispatcher.operations.method("server.files.delete_file") else { return Err(not_allowed()) };
    let mut arguments = rpc::Arguments::none();
    arguments.add("path".into(), rpc::ArgValue::Text(path.into()))?;
    // The operation is declared for sockets, since its HTTP form is this route.
    let mut call = Call::http(head.admission.identity.clone(), Form::Neutral, Some(head.admission.peer()));
    call.transport = rpc::Transport::Internal;
    let result = match invoke(&gateway.dispatcher.operations, &found.operation, &Arc::new(call), &arguments) {
        Outcome::Done(result) => result,
        Outcome::Working(work) => gateway.dispatcher.to_the_end(work).await?,
    };
    result.map(|data: Bytes| answer::result(&data))
}

fn base_url(gateway: &Gateway, head: &Head<'_>) -> String {
    let host = head.headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost");
    let prefix = &gateway.settings.route_prefix;
    let scheme = if head.is_secure { "https" } else { "http" };
    if prefix.is_empty() { format!("{scheme}://{host}") } else { format!("{scheme}://{host}/{prefix}") }
}

/// The secured address of a request that came unsecured from another machine. Programs on this one stay as they are, and so does what cannot follow:
/// a browser's question whether it may ask, and programs of UPnP, which would not accept a certificate of our own making.
fn secured(arrival: Arrival, port: u16, request: &http::Request<impl Sized>) -> Option<String> {
    let stays =
        arrival.peer.to_canonical().is_loopback() || request.method() == Method::OPTIONS || request.uri().path().ends_with(DESCRIPTION);
    if arrival.is_secure || stays {
        return None;
    }
    let authority: http::uri::Authority = request.headers().get(header::HOST)?.to_str().ok()?.parse().ok()?;
    let host = authority.host();
    let port = if port == 443 { String::new() } else { format!(":{port}") };
    let target = request.uri().path_and_query().map_or("/", |target| target.as_str());
    Some(format!("https://{host}{port}{target}"))
}

fn strip_prefix<'a>(path: &'a str, prefix: &str) -> Option<&'a str> {
    if prefix.is_empty() {
        return Some(path);
    }
    let rest = path.strip_prefix('/')?.strip_prefix(prefix)?;
    match rest {
        "" => Some("/"),
        rest => rest.starts_with('/').then_some(rest),
    }
}

fn is_known(gateway: &Gateway, path: &str) -> bool {
    let verbs = [Verb::Get, Verb::Post, Verb::Delete];
    FIXED.contains(&path)
        || gateway.dispatcher.operations.upload(path).is_some()
        || path.starts_with("/server/files/")
        || verbs.into_iter().any(|verb| gateway.dispatcher.operations.route(verb, path).is_ok())
}

fn body_limit(admission: &Admission) -> usize {
    if admission.identity.is_authorised() { MAX_BODY } else { MAX_STRANGER_BODY }
}

fn authorised(admission: &Admission) -> Result<(), ApiError> {
    if admission.identity == Identity::Stranger { Err(ApiError::unauthorized()) } else { Ok(()) }
}

/// Pages of other origins may not change files, either.
fn may_change(admission: &Admission) -> Result<(), ApiError> {
    if admission.cross_site && is_by_address(admission) {
        return Err(ApiError::unauthorized());
    }
    admission.identity.check(Access::Control)
}

/// True when nothing but the address speaks for the caller, so that any page in a browser there could have sent the request.
fn is_by_address(admission: &Admission) -> bool {
    matches!(admission.identity, Identity::Trusted | Identity::Stranger)
}

fn unknown(admission: &Admission) -> ApiError {
    authorised(admission).err().unwrap_or_else(|| ApiError::not_found("Not Found"))
}

fn not_allowed() -> ApiError {
    ApiError::new(ErrorKind::NotAllowed, "Method Not Allowed")
}

#[cfg(test)]
mod tests {
    use super::{Arrival, secured, strip_prefix};

    #[test]
    fn unsecured_requests_of_other_machines_are_sent_on() {
        let sent_on = |peer: &str, is_secure, port, host: &str| {
            let request = http::Request::get("/files?x=1").header("host", host).body(()).unwrap();
            secured(Arrival { peer: peer.parse().unwrap(), is_secure }, port, &request)
        };
        let there = |text: &str| Some(text.to_owned());
        assert_eq!(sent_on("192.0.2.1", false, 7130, "printer.local:7125"), there("https://printer.local:7130/files?x=1"));
        assert_eq!(sent_on("192.0.2.1", false, 443, "[fd00::1]"), there("https://[fd00::1]/files?x=1"));
        assert_eq!(sent_on("192.0.2.1", true, 7130, "printer.local"), None);
        for local in ["127.0.0.1", "::1", "::ffff:127.0.0.1"] {
            assert_eq!(sent_on(local, false, 7130, "printer.local"), None, "{local}");
        }
        assert_eq!(sent_on("192.0.2.1", false, 7130, "a b"), None);
        assert_eq!(sent_on("192.0.2.1", false, 7130, "user@evil/"), None);
    }

    #[test]
    fn prefixes_are_whole_segments() {
        assert_eq!(strip_prefix("/a/b", ""), Some("/a/b"));
        assert_eq!(strip_prefix("/printer1/server/info", "printer1"), Some("/server/info"));
        assert_eq!(strip_prefix("/printer1", "printer1"), Some("/"));
        assert_eq!(strip_prefix("/printer12/x", "printer1"), None);
    }
}
