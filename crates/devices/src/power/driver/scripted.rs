//! Type `http`: anything that speaks HTTP, with templates that make requests and read responses (wire/3-devices.md section 2.9).

mod reply;
mod request;

use std::sync::Arc;
use std::time::Duration;

use config::Secrets;
use outbound::Client;
use rpc::transfer::Boxed;
use runtime::StopToken;
use serde_json::json;
use template::{Context, Rendered, Template};
use tokio::runtime::Handle;

use super::{ANSWER_TIMEOUT, Driver, Fault};
use crate::power::build::Section;
use crate::power::model::Reading;
use crate::power::options::{HttpOptions, PowerOptions, duration};
use crate::script::{CALL_METHOD, Scripts};
use request::{Draft, Looking, REQUEST, Session};

/// Time for one answer of a device whose template makes the requests: it may send several, and sleep.
const SCRIPT_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Clone)]
pub(crate) struct ScriptedRecipe {
    on_url: String,
    off_url: String,
    status_url: String,
    login: Option<(String, String)>,
    request_template: Option<Template>,
    response_template: Template,
    secrets: Secrets,
}

pub(crate) fn read(section: &mut Section<'_, '_, '_>, secrets: &Secrets) -> Option<ScriptedRecipe> {
    let options: HttpOptions = section.take()?;
    for (option, url) in [("on_url", &options.on_url), ("off_url", &options.off_url), ("status_url", &options.status_url)] {
        if outbound::Request::get(url.expose()).is_err() {
            return section.reject(option, "expected a complete address that starts with http:// or https://");
        }
    }
    let text = |option: &Option<Rendered>| option.as_ref().map(|text| text.expose().to_owned()).filter(|text| !text.is_empty());
    let title = section.title();
    Some(ScriptedRecipe {
        on_url: options.on_url.expose().to_owned(),
        off_url: options.off_url.expose().to_owned(),
        status_url: options.status_url.expose().to_owned(),
        login: text(&options.user).zip(text(&options.password)),
        request_template: options.request_template.map(|template| template.of(&format!("{title} request_template"))),
        response_template: options.response_template.of(&format!("{title} response_template")),
        secrets: secrets.clone(),
    })
}

impl ScriptedRecipe {
    pub(crate) fn driver(self, client: &Client, scripts: &Arc<Scripts>, options: &PowerOptions) -> Box<dyn Driver> {
        let usual = if self.request_template.is_some() { SCRIPT_TIMEOUT } else { ANSWER_TIMEOUT };
        Box::new(ScriptedDevice {
            recipe: Arc::new(self),
            client: client.lane(1),
            scripts: scripts.clone(),
            limit: options.timeout.map_or(usual, duration),
        })
    }

    fn url(&self, command: &str) -> &str {
        match command {
            "on" => &self.on_url,
            "off" => &self.off_url,
            _ => &self.status_url,
        }
    }

    fn context(&self, command: &'static str) -> Context {
        let urls = json!({"on": self.on_url, "off": self.off_url, "status": self.status_url});
        Context::new(&self.secrets)
            .with("command", command)
            .with("urls", urls)
            .with_object("http_request", REQUEST)
            .with_function("async_sleep")
            .with_function(CALL_METHOD)
    }

    /// The state that the responses so far tell, when the template needs nothing else and no time.
    fn read_quickly(&self, command: &'static str, session: &Session) -> Option<Result<bool, Fault>> {
        match session.last()?.fault() {
            Some(fault) => return Some(Err(fault)),
            None if !session.last()?.is_short() => return None,
            None => {}
        }
        let mut looking = Looking { session, wants_more: false };
        let rendered = self.response_template.render_quickly(&mut self.context(command), &mut looking)?;
        (!looking.wants_more).then(|| state(&rendered.map_err(Fault::new)?))
    }

    /// The state after whatever the templates do. Blocks.
    fn carry_out(&self, command: &'static str, session: &mut Session) -> Result<bool, Fault> {
        let mut context = self.context(command);
        if let Some(template) = &self.request_template {
            template.render(&mut context, session).map_err(Fault::new)?;
        }
        let reply = session.last().ok_or_else(|| Fault::new("request_template: it did not call `http_request.send()`"))?;
        reply.fault().map_or(Ok(()), Err)?;
        state(&self.response_template.render(&mut context, session).map_err(Fault::new)?)
    }
}

fn state(text: &str) -> Result<bool, Fault> {
    match text.to_ascii_lowercase().as_str() {
        "on" => Ok(true),
        "off" => Ok(false),
        other => Err(Fault::new(format!("response_template: expected `on` or `off`, it gave `{other:.40}`"))),
    }
}

struct ScriptedDevice {
    recipe: Arc<ScriptedRecipe>,
    client: Client,
    scripts: Arc<Scripts>,
    limit: Duration,
}

impl ScriptedDevice {
    async fn run(&self, command: &'static str) -> Result<bool, Fault> {
        let (recipe, gone) = (self.recipe.clone(), StopToken::new());
        let mut session = Session::new(
            self.client.clone(),
            self.scripts.clone(),
            Handle::current(),
            Draft::new(recipe.url(command), recipe.login.clone()),
            self.limit,
            gone.clone(),
        );
        if recipe.request_template.is_none() {
            session.send_draft().await;
            if let Some(outcome) = recipe.read_quickly(command, &session) {
                return outcome;
            }
        }
        // Nobody waits any more: the thread ends at its next step.
        let _ends_it = gone.drop_guard();
        let done = tokio::task::spawn_blocking(move || recipe.carry_out(command, &mut session));
        done.await.map_err(Fault::new)?
    }
}

impl Driver for ScriptedDevice {
    fn query(&mut self) -> Boxed<'_, Result<Reading, Fault>> {
        Box::pin(async move { self.run("status").await.map(Reading::from) })
    }

    fn switch(&mut self, on: bool) -> Boxed<'_, Result<bool, Fault>> {
        Box::pin(async move { self.run(if on { "on" } else { "off" }).await })
    }

    fn limit(&self, _: Option<f64>) -> Duration {
        self.limit
    }
}
