//! The server, as templates see it.

use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use protocol::ApiError;
use rpc::{Answer, Arguments, Call, Dispatcher, Outcome, dispatch};
use runtime::StopToken;
use serde_json::value::to_raw_value;
use serde_json::{Map, Value};
use template::{Context, Error, Failure, Template};
use tokio::sync::Semaphore;

use super::render::{self, Bounds, CALL_METHOD, Functions, MAX_RENDERINGS, Pending, Rendering};

/// Bytes of JSON that a call from a template may answer.
pub const MAX_ANSWER: usize = 2 * 1024 * 1024;

/// Renders templates that call the server.
pub struct Scripts {
    dispatcher: Mutex<Weak<Dispatcher>>,
    turns: Semaphore,
    stop: StopToken,
}

impl Scripts {
    /// Ready to render; [`Scripts::connect`] says later what can be called. `stop` ends whatever is under way.
    #[must_use]
    pub fn new(stop: StopToken) -> Arc<Self> {
        Arc::new(Self { dispatcher: Mutex::default(), turns: Semaphore::new(MAX_RENDERINGS), stop })
    }

    /// Calls go to these operations from now on.
    pub fn connect(&self, dispatcher: &Arc<Dispatcher>) {
        *self.dispatcher.lock() = Arc::downgrade(dispatcher);
    }

    /// Renders a template within a length of time, which begins with its turn.
    pub async fn render<F: Functions>(&self, template: Template, context: Context, functions: F, limit: Duration) -> Rendering<F> {
        // Never closed.
        let _turn = self.turns.acquire().await;
        render::render(template, context, functions, Bounds { limit, stop: self.stop.clone() }).await
    }

    /// Renders a template on this thread, which is one for blocking work, within a length of time.
    pub fn render_here<F: Functions>(
        &self,
        template: &Template,
        context: &mut Context,
        functions: F,
        limit: Duration,
    ) -> (Result<String, Error>, F) {
        render::render_here(template, context, functions, Bounds { limit, stop: self.stop.clone() })
    }

    /// `call_method(method, name=value, …)`: any operation, with the rights of the server's owner, who wrote the template. The call goes on to
    /// its end even when the template does not wait for it.
    ///
    /// # Errors
    /// For arguments that are none; what the operation answers comes later.
    pub fn call_method(&self, call: &template::Call<'_>) -> Result<Pending, Failure> {
        let (method, parameters) = call.method()?;
        let dispatcher = self.dispatcher.lock().upgrade().ok_or_else(|| Failure::new(503, "the server is not ready for calls"))?;
        let method = method.to_owned();
        let work = dispatcher.tasks.spawn({
            let dispatcher = dispatcher.clone();
            async move { invoke(&dispatcher, &method, &parameters).await.map_err(|error| failure(&method, &error)) }
        });
        Ok(Pending::Later(Box::pin(async move { work.await.unwrap_or_else(|_| Err(Failure::new(500, "internal error"))).map(Into::into) })))
    }
}

/// The functions of templates that call nothing but the server.
pub struct Methods(pub Arc<Scripts>);

impl Functions for Methods {
    fn call(&mut self, call: &template::Call<'_>) -> Result<Pending, Failure> {
        match (call.object, call.name) {
            (None, CALL_METHOD) => self.0.call_method(call),
            (_, other) => Err(Failure::new(400, format!("there is no function `{other}`"))),
        }
    }
}

fn failure(method: &str, error: &ApiError) -> Failure {
    Failure::new(error.kind.http_status(), format!("{method}: {}", error.message))
}

async fn invoke(dispatcher: &Dispatcher, method: &str, parameters: &Map<String, Value>) -> Result<Value, ApiError> {
    let found = dispatcher.operations.method(method).ok_or_else(ApiError::method_not_found)?;
    let mut call = Call::internal();
    if found.by_upstream_name {
        call.form = protocol::Form::Upstream;
    }
    let parameters = to_raw_value(parameters).map_err(|error| ApiError::internal(error.to_string()))?;
    let outcome = dispatch::invoke(&dispatcher.operations, &found.operation, &Arc::new(call), &Arguments::from_json(Some(&parameters))?);
    let answer: Answer = match outcome {
        Outcome::Done(result) => result?,
        Outcome::Working(work) => work.await?,
    };
    if answer.len() > MAX_ANSWER {
        return Err(ApiError::bad_request(format!("the answer is longer than {MAX_ANSWER} bytes")));
    }
    serde_json::from_slice(&answer).map_err(|error| ApiError::internal(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rpc::{Access, Registry, Transport};
    use runtime::TaskTracker;
    use schemars::JsonSchema;
    use serde::Deserialize;
    use serde_json::json;
    use template::Answer as TemplateAnswer;

    #[derive(Deserialize, JsonSchema)]
    struct Number {
        n: i64,
    }

    fn dispatcher() -> Arc<Dispatcher> {
        let mut registry = Registry::default();
        let service = Arc::new(());
        registry.op("a.double").access(Access::Admin).handle(&service, |_, _, number: Number| async move {
            tokio::task::yield_now().await;
            Ok(json!({"doubled": 2 * number.n}))
        });
        registry.op("a.never").access(Access::View).handle(&service, |_, _, (): ()| std::future::pending::<Result<(), ApiError>>());
        registry.op("a.big").access(Access::View).answer(&service, |_, _, (): ()| Ok("x".repeat(MAX_ANSWER)));
        registry.op("a.web").only(&[Transport::Http]).access(Access::View).answer(&service, |_, _, (): ()| Ok("web"));
        Arc::new(Dispatcher { operations: Arc::new(registry.build().unwrap()), tasks: TaskTracker::new() })
    }

    struct More(Methods);

    impl Functions for More {
        fn call(&mut self, call: &template::Call<'_>) -> Result<Pending, Failure> {
            match call.name {
                "known" => Ok(Pending::Now(TemplateAnswer::Value(json!("known at once")))),
                _ => self.0.call(call),
            }
        }
    }

    async fn render(source: &str, stop: StopToken) -> Result<String, String> {
        let scripts = Scripts::new(stop);
        let dispatcher = dispatcher();
        scripts.connect(&dispatcher);
        let context = Context::default().with_function("call_method").with_function("known").with_kept("kept", json!({}));
        let template = Template::compile(source).unwrap().of("[button b] on_press");
        let rendering = scripts.render(template, context, More(Methods(scripts.clone())), Duration::from_millis(300)).await;
        rendering.outcome.map_err(|error| format!("{} {error}", error.status()))
    }

    #[tokio::test]
    async fn templates_call_the_server_with_the_owners_rights() {
        let calm = StopToken::new;
        assert_eq!(render("{ call_method('a.double', n=4)['doubled'] } { known() }", calm()).await.unwrap(), "8 known at once");
        assert_eq!(render("{ call_method('a.double', {'n': 5}).doubled }", calm()).await.unwrap(), "10");
        for (source, expected) in [
            ("{ call_method('a.double') }", "400 [button b] on_press, line 1: a.double: No data for argument: n"),
            ("{ call_method('a.none') }", "404 [button b] on_press, line 1: a.none: Method not found"),
            ("{ call_method('a.web') }", "404 [button b] on_press, line 1: a.web: Method not found for transport INTERNAL"),
            ("{ call_method('a.big') }", "400 [button b] on_press, line 1: a.big: the answer is longer than 2097152 bytes"),
            ("{ call_method(5) }", "400 [button b] on_press, line 1: call_method: expected the name"),
        ] {
            let error = render(source, calm()).await.unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[tokio::test]
    async fn time_calls_and_the_servers_stop_end_a_template() {
        let error = render("{ call_method('a.never') }", StopToken::new()).await.unwrap_err();
        assert!(error.contains("504") && error.contains("not done within 0.3 seconds"), "{error}");
        let error = render("{% for n in range(300) %}{ known() }{% endfor %}", StopToken::new()).await.unwrap_err();
        assert!(error.contains("more than 200 calls"), "{error}");
        let stop = StopToken::new();
        let (rendered, ()) = tokio::join!(render("{ call_method('a.never') }", stop.clone()), async { stop.cancel() });
        assert!(rendered.unwrap_err().contains("the server stops"));
    }

    #[tokio::test]
    async fn what_is_rendered_at_once_begins_no_call() {
        let scripts = Scripts::new(StopToken::new());
        let dispatcher = dispatcher();
        scripts.connect(&dispatcher);
        let mut functions = More(Methods(scripts.clone()));
        let mut at_once = |source: &str| {
            let mut context = Context::default().with_function("call_method").with_function("known");
            render::at_once(&Template::compile(source).unwrap(), &mut context, &mut functions).map(Result::unwrap)
        };
        assert_eq!(at_once("{ known() }").as_deref(), Some("known at once"));
        assert_eq!(at_once("{ known() }{ call_method('a.never') }"), None);
        assert!(dispatcher.tasks.is_empty(), "the call was begun");
    }

    #[tokio::test]
    async fn what_a_template_keeps_survives_its_failure() {
        let scripts = Scripts::new(StopToken::new());
        let context = Context::default().with_kept("kept", json!({}));
        let template = Template::compile("{% do kept.update({'a': 1}) %}{ raise_error('no', 409) }").unwrap();
        let rendering = scripts.render(template, context, Methods(scripts.clone()), Duration::from_secs(5)).await;
        assert_eq!(rendering.outcome.unwrap_err().status(), 409);
        assert_eq!(rendering.rest.unwrap().0.kept("kept"), Some(&json!({"a": 1})));
    }

    #[tokio::test]
    async fn before_the_server_is_built_calls_fail() {
        let scripts = Scripts::new(StopToken::new());
        let context = Context::default().with_function("call_method");
        let template = Template::compile("{ call_method('a.double', n=1) }").unwrap();
        let rendering = scripts.render(template, context, Methods(scripts.clone()), Duration::from_secs(5)).await;
        assert!(rendering.outcome.unwrap_err().message.contains("not ready"));
    }
}
