//! Rendering on a thread that may wait.

use std::time::Duration;

use rpc::transfer::Boxed;
use runtime::StopToken;
use template::{Answer, Call, Context, Error, ErrorKind, Failure, Host, Object, Template};
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout_at};

/// Templates with slow functions that are rendered at one time; further ones wait for their turn.
pub const MAX_RENDERINGS: usize = 16;

/// Calls of functions that one rendering of a template may make.
pub const MAX_CALLS: usize = 200;

/// Name by which templates call the server.
pub const CALL_METHOD: &str = "call_method";

/// What a call gives.
pub enum Pending {
    /// The answer.
    Now(Answer),
    /// The answer follows; the template waits.
    Later(Boxed<'static, Result<Answer, Failure>>),
}

/// Answers the functions and objects that a template finds in its context.
pub trait Functions: Send + 'static {
    /// A function of the context or a method of an object is called.
    ///
    /// # Errors
    /// Ends the rendering.
    fn call(&mut self, call: &Call<'_>) -> Result<Pending, Failure>;

    /// An attribute of an object is read; `None` makes it undefined.
    ///
    /// # Errors
    /// Ends the rendering.
    fn attribute(&mut self, object: &Object, name: &str) -> Result<Option<Answer>, Failure> {
        let _ = (object, name);
        Ok(None)
    }
}

/// What became of a template.
pub struct Rendering<F> {
    /// Its text, or why there is none.
    pub outcome: Result<String, Error>,
    /// Context and functions as the template left them, also when it failed; none after a fault of ours.
    pub rest: Option<(Context, F)>,
}

/// Renders at once what is quick and waits for nothing; none for other templates, which are to be rendered again where they may take their time.
/// Calls of the server are not begun, others must not have done anything that counts.
pub fn at_once<F: Functions>(template: &Template, context: &mut Context, functions: &mut F) -> Option<Result<String, Error>> {
    let mut host = AtOnce { functions, wants_more: false };
    let rendered = template.render_quickly(context, &mut host)?;
    (!host.wants_more).then_some(rendered)
}

/// Renders on a thread of its own; within a tokio runtime.
pub(super) async fn render<F: Functions>(template: Template, mut context: Context, functions: F, bounds: Bounds) -> Rendering<F> {
    let rendered = tokio::task::spawn_blocking(move || {
        let (outcome, functions) = render_here(&template, &mut context, functions, bounds);
        Rendering { outcome, rest: Some((context, functions)) }
    });
    rendered.await.unwrap_or_else(|error| {
        tracing::error!(%error, "a template could not be rendered to its end");
        let message = "internal error; the log has details".to_owned();
        Rendering { outcome: Err(Error { kind: ErrorKind::Host(500), origin: None, line: 0, message }), rest: None }
    })
}

/// Renders on this thread, which waits; it is one for blocking work of a tokio runtime.
pub(super) fn render_here<F: Functions>(
    template: &Template,
    context: &mut Context,
    functions: F,
    Bounds { limit, stop }: Bounds,
) -> (Result<String, Error>, F) {
    let mut host = Waiting { functions, handle: Handle::current(), deadline: Instant::now() + limit, limit, stop, calls_left: MAX_CALLS };
    (template.render(context, &mut host), host.functions)
}

/// What ends a rendering.
pub(super) struct Bounds {
    pub(super) limit: Duration,
    pub(super) stop: StopToken,
}

/// Answers a template that is rendered at once.
struct AtOnce<'f, F> {
    functions: &'f mut F,
    /// It called something that takes its time.
    wants_more: bool,
}

impl<F: Functions> Host for AtOnce<'_, F> {
    fn call(&mut self, call: &Call<'_>) -> Result<Answer, Failure> {
        let is_of_the_server = call.object.is_none() && call.name == CALL_METHOD;
        if !is_of_the_server && let Pending::Now(answer) = self.functions.call(call)? {
            return Ok(answer);
        }
        self.wants_more = true;
        Err(Failure::new(503, "not here"))
    }

    fn attribute(&mut self, object: &Object, name: &str) -> Result<Option<Answer>, Failure> {
        self.functions.attribute(object, name)
    }

    fn log_debug(&mut self, message: &str) {
        tracing::debug!("template: {message}");
    }
}

/// Waits, on behalf of a template, for what its functions do.
struct Waiting<F> {
    functions: F,
    handle: Handle,
    deadline: Instant,
    limit: Duration,
    stop: StopToken,
    calls_left: usize,
}

impl<F: Functions> Waiting<F> {
    fn too_long(&self) -> Failure {
        Failure::new(504, format!("not done within {} seconds", self.limit.as_secs_f64()))
    }
}

fn stopping() -> Failure {
    Failure::new(503, "the server stops")
}

impl<F: Functions> Host for Waiting<F> {
    fn call(&mut self, call: &Call<'_>) -> Result<Answer, Failure> {
        self.check()?;
        self.calls_left = self.calls_left.checked_sub(1).ok_or_else(|| Failure::new(429, format!("more than {MAX_CALLS} calls")))?;
        let work = match self.functions.call(call)? {
            Pending::Now(answer) => return Ok(answer),
            Pending::Later(work) => work,
        };
        let too_long = self.too_long();
        self.handle.block_on(async {
            tokio::select! {
                answer = timeout_at(self.deadline, work) => answer.unwrap_or(Err(too_long)),
                () = self.stop.cancelled() => Err(stopping()),
            }
        })
    }

    fn attribute(&mut self, object: &Object, name: &str) -> Result<Option<Answer>, Failure> {
        self.functions.attribute(object, name)
    }

    fn log_debug(&mut self, message: &str) {
        tracing::debug!("template: {message}");
    }

    fn check(&mut self) -> Result<(), Failure> {
        if self.stop.is_cancelled() {
            return Err(stopping());
        }
        if Instant::now() < self.deadline { Ok(()) } else { Err(self.too_long()) }
    }
}
