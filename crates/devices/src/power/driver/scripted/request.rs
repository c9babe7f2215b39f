//! `http_request`: what templates see of a request.

use std::sync::Arc;
use std::time::{Duration, Instant};

use data_encoding::BASE64;
use outbound::{Client, Method, OutboundError, Request, Response, header};
use runtime::StopToken;
use serde_json::{Map, Value};
use template::{Answer, Call, Failure, Host, Object};
use tokio::runtime::Handle;
use tokio::time::timeout_at;

use super::reply::{Reply, parts_of_reply};
use crate::script::{CALL_METHOD, MAX_CALLS, Pending, Scripts};

/// The object that templates call `http_request`.
pub(super) const REQUEST: Object = Object { id: 0, kind: "http_request" };

/// Requests that the templates of a power device may send for one command.
const MAX_REQUESTS: usize = 32;

/// Attempts that a template may ask for.
const MAX_ATTEMPTS: u64 = 10;

/// Bytes of a response to a request of a template.
const MAX_RESPONSE: usize = 1024 * 1024;

/// Headers that a template may set.
const MAX_HEADERS: usize = 64;

/// A request under construction.
#[derive(Debug, Clone)]
pub(super) struct Draft {
    method: String,
    url: String,
    body: Value,
    headers: Map<String, Value>,
    login: Option<(String, String)>,
    timeout: Duration,
    attempts: u64,
    pause: Duration,
}

impl Draft {
    pub(super) fn new(url: &str, login: Option<(String, String)>) -> Self {
        Self {
            method: "GET".to_owned(),
            url: url.to_owned(),
            body: Value::Null,
            headers: Map::new(),
            login,
            timeout: Duration::from_secs(20),
            attempts: 3,
            pause: Duration::from_secs(1),
        }
    }

    fn request(&self) -> Result<Request, OutboundError> {
        let method =
            Method::from_bytes(self.method.to_ascii_uppercase().as_bytes()).map_err(|_| OutboundError::BadHeader("method".to_owned()))?;
        let mut request = Request::new(method, &self.url)?.timeout(self.timeout).max_body(MAX_RESPONSE);
        if let Some((user, password)) = &self.login {
            let login = BASE64.encode(format!("{user}:{password}").as_bytes());
            request = request.header(header::AUTHORIZATION.as_str(), &format!("Basic {login}"))?;
        }
        let body = match &self.body {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => {
                request = request.header(header::CONTENT_TYPE.as_str(), "application/json")?;
                Some(other.to_string())
            }
        };
        for (name, value) in &self.headers {
            request = request.header(name, &text_of(value))?;
        }
        Ok(match body {
            Some(body) => request.body(body),
            None => request,
        })
    }
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// One command: the request, the responses so far, and the time that is left.
pub(super) struct Session {
    client: Client,
    scripts: Arc<Scripts>,
    calls_left: usize,
    runtime: Handle,
    first: Draft,
    draft: Draft,
    replies: Vec<Reply>,
    until: Instant,
    /// Nobody waits for the outcome any more.
    gone: StopToken,
}

impl Session {
    pub(super) fn new(client: Client, scripts: Arc<Scripts>, runtime: Handle, draft: Draft, limit: Duration, gone: StopToken) -> Self {
        let until = Instant::now() + limit;
        Self { client, scripts, calls_left: MAX_CALLS, runtime, first: draft.clone(), draft, replies: Vec::new(), until, gone }
    }

    fn call_method(&mut self, call: &Call<'_>) -> Result<Answer, Failure> {
        self.calls_left = self.calls_left.checked_sub(1).ok_or_else(|| Failure::new(429, format!("more than {MAX_CALLS} calls")))?;
        match self.scripts.call_method(call)? {
            Pending::Now(answer) => Ok(answer),
            Pending::Later(work) => self.wait(work).unwrap_or_else(|| Err(out_of_time())),
        }
    }

    /// Sends the request as it is.
    pub(super) async fn send_draft(&mut self) {
        let exchange = exchange(&self.client, &self.draft);
        let outcome = timeout_at(self.until.into(), exchange).await.ok();
        self.replies.push(Reply::of(&self.draft.url, outcome));
    }

    pub(super) fn last(&self) -> Option<&Reply> {
        self.replies.last()
    }

    fn send(&self, draft: &Draft) -> Reply {
        Reply::of(&draft.url, self.wait(exchange(&self.client, draft)))
    }

    /// Waits on this thread, as long as there is time and anybody wants to know.
    fn wait<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        self.runtime.block_on(async {
            tokio::select! {
                () = self.gone.cancelled() => None,
                done = timeout_at(self.until.into(), work) => done.ok(),
            }
        })
    }

    fn request_method(&mut self, call: &Call<'_>) -> Result<Answer, Failure> {
        let none = || Ok(Answer::Value(Value::Null));
        match call.name {
            "set_method" => self.draft.method = word(call.arguments(["method"])?[0], "set_method")?,
            "set_url" => self.draft.url = word(call.arguments(["url"])?[0], "set_url")?,
            "set_body" => self.draft.body = call.arguments(["body"])?[0].cloned().unwrap_or_default(),
            "add_header" => {
                let [name, value] = call.arguments(["name", "value"])?;
                let name = word(name, "add_header")?;
                self.draft.headers.insert(name, value.cloned().unwrap_or_default());
                bounded(&self.draft.headers)?;
            }
            "set_headers" => self.draft.headers = headers(call.arguments(["headers"])?[0])?,
            "reset" => self.draft = self.first.clone(),
            "last_response" => return Ok(self.last_response()),
            "send" => {
                let draft = self.overridden(call)?;
                if self.replies.len() >= MAX_REQUESTS {
                    return Err(Failure::new(400, format!("send: more than {MAX_REQUESTS} requests")));
                }
                let reply = self.send(&draft);
                self.replies.push(reply);
                return Ok(Answer::Object(Reply::object(self.replies.len() as u64)));
            }
            other => return Err(Failure::new(400, format!("http_request has no method `{other}`"))),
        }
        none()
    }

    /// The request with what a call of `send` changes for this once.
    fn overridden(&self, call: &Call<'_>) -> Result<Draft, Failure> {
        let names = [
            "method",
            "url",
            "body",
            "headers",
            "connect_timeout",
            "request_timeout",
            "attempts",
            "retry_pause_time",
            "enable_cache",
            "basic_auth_user",
            "basic_auth_pass",
        ];
        // Connecting has its own limit, and nothing is cached.
        let [method, url, body, new_headers, _, timeout, attempts, pause, _, user, password] = call.arguments(names)?;
        let mut draft = self.draft.clone();
        if method.is_some() {
            draft.method = word(method, "send: method")?;
        }
        if url.is_some() {
            draft.url = word(url, "send: url")?;
        }
        if let Some(body) = body {
            draft.body = body.clone();
        }
        if new_headers.is_some_and(|headers| !headers.is_null()) {
            draft.headers = headers(new_headers)?;
        }
        draft.timeout = time(timeout, draft.timeout, "send: request_timeout")?;
        draft.pause = time(pause, draft.pause, "send: retry_pause_time")?;
        if let Some(attempts) = attempts.and_then(Value::as_u64) {
            draft.attempts = attempts.clamp(1, MAX_ATTEMPTS);
        }
        if let (Some(Value::String(user)), Some(Value::String(password))) = (user, password) {
            draft.login = Some((user.clone(), password.clone()));
        }
        Ok(draft)
    }
}

impl Host for Session {
    fn call(&mut self, call: &Call<'_>) -> Result<Answer, Failure> {
        match call.object {
            None if call.name == "async_sleep" => {
                let pause = time(call.arguments(["seconds"])?[0], Duration::ZERO, "async_sleep")?;
                let slept = self.wait(tokio::time::sleep(pause));
                slept.map(|()| Answer::Value(Value::Null)).ok_or_else(out_of_time)
            }
            None if call.name == CALL_METHOD => self.call_method(call),
            None => Err(Failure::new(400, format!("there is no function `{}`", call.name))),
            Some(object) if *object == REQUEST => self.request_method(call),
            Some(object) => self.reply(object)?.call(call),
        }
    }

    fn attribute(&mut self, object: &Object, name: &str) -> Result<Option<Answer>, Failure> {
        self.attribute_of(object, name)
    }

    fn log_debug(&mut self, message: &str) {
        log_debug(message);
    }

    fn check(&mut self) -> Result<(), Failure> {
        if self.gone.is_cancelled() || Instant::now() >= self.until { Err(out_of_time()) } else { Ok(()) }
    }
}

impl Session {
    fn last_response(&self) -> Answer {
        match self.replies.len() {
            0 => Answer::Value(Value::Null),
            number => Answer::Object(Reply::object(number as u64)),
        }
    }

    fn attribute_of(&self, object: &Object, name: &str) -> Result<Option<Answer>, Failure> {
        if *object == REQUEST { Ok(None) } else { Ok(parts_of_reply(self.reply(object)?, name).map(Answer::Value)) }
    }

    fn reply(&self, object: &Object) -> Result<&Reply, Failure> {
        let index = usize::try_from(object.id).ok().and_then(|number| number.checked_sub(1));
        index.and_then(|index| self.replies.get(index)).ok_or_else(|| Failure::new(400, "there is no such response"))
    }
}

/// A template that only looks at the responses: there is nobody who could wait for more.
pub(super) struct Looking<'s> {
    pub(super) session: &'s Session,
    /// It wanted more.
    pub(super) wants_more: bool,
}

impl Host for Looking<'_> {
    fn call(&mut self, call: &Call<'_>) -> Result<Answer, Failure> {
        match call.object {
            Some(object) if *object != REQUEST => self.session.reply(object)?.call(call),
            Some(_) if call.name == "last_response" => Ok(self.session.last_response()),
            _ => {
                self.wants_more = true;
                Err(Failure::new(503, "not here"))
            }
        }
    }

    fn attribute(&mut self, object: &Object, name: &str) -> Result<Option<Answer>, Failure> {
        self.session.attribute_of(object, name)
    }

    fn log_debug(&mut self, message: &str) {
        log_debug(message);
    }
}

fn log_debug(message: &str) {
    tracing::debug!(message, "template of a power device");
}

async fn exchange(client: &Client, draft: &Draft) -> Result<Response, OutboundError> {
    let request = draft.request()?;
    let mut attempt = 1;
    loop {
        let outcome = client.send(request.clone()).await;
        if attempt >= draft.attempts || !may_pass(&outcome) {
            return outcome;
        }
        attempt += 1;
        tokio::time::sleep(draft.pause).await;
    }
}

fn out_of_time() -> Failure {
    Failure::new(504, "the template took too long")
}

fn may_pass(outcome: &Result<Response, OutboundError>) -> bool {
    match outcome {
        Ok(response) => response.status >= 500,
        Err(error) => error.is_passing(),
    }
}

fn word(value: Option<&Value>, what: &str) -> Result<String, Failure> {
    value.and_then(Value::as_str).map(str::to_owned).ok_or_else(|| Failure::new(400, format!("{what}: expected text")))
}

fn time(value: Option<&Value>, default: Duration, what: &str) -> Result<Duration, Failure> {
    let Some(value) = value.filter(|value| !value.is_null()) else { return Ok(default) };
    let seconds = value.as_f64().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.ok_or_else(|| Failure::new(400, format!("{what}: expected a number of seconds")))
}

fn headers(value: Option<&Value>) -> Result<Map<String, Value>, Failure> {
    let headers = value.and_then(Value::as_object).cloned().ok_or_else(|| Failure::new(400, "expected a dictionary of headers"))?;
    bounded(&headers)?;
    Ok(headers)
}

fn bounded(headers: &Map<String, Value>) -> Result<(), Failure> {
    if headers.len() > MAX_HEADERS { Err(Failure::new(400, format!("more than {MAX_HEADERS} headers"))) } else { Ok(()) }
}
