//! Type `smartplug_b`: plugs that speak JSON within encrypted HTTP (KLAP).
//!
//! Two languages are spoken there: that of the older plugs (`smartplug_a`), and one of methods with parameters. Which one, and how the plug
//! hashes its login, is found out at the first contact, so that nobody has to know the age of a plug.

mod cipher;
mod session;

use std::time::SystemTime;

use outbound::Client;
use rpc::transfer::Boxed;
use serde_json::{Value, json};
use template::Rendered;

use super::plug::{accepted, addressed, info, missing, no_socket, read_relay, read_socket, relay};
use super::{Driver, Fault};
use crate::base::{Base, Protocol};
use crate::power::build::Section;
use crate::power::model::Reading;
use crate::power::options::KlapOptions;

use cipher::{Generation, Login};
use session::Line;

/// Logins of plugs that were set up without an account, or not yet: none, and those that the vendor's two applications leave behind.
const DEFAULTS: [[&str; 2]; 3] = [["", ""], ["kasa@tp-link.net", "kasaSetup"], ["test@tp-link.net", "test"]];

/// What plugs know us by.
const TERMINAL: &str = "Ym93c3ByaXQ=";

/// What is needed to talk to a plug.
pub(crate) struct KlapRecipe {
    base: Base,
    logins: Vec<Login>,
    output: Option<u16>,
}

pub(crate) fn read(section: &mut Section<'_, '_, '_>) -> Option<KlapRecipe> {
    let plug = section.take::<KlapOptions>()?;
    let base = match Base::new(&plug.address, Protocol::Http, Some(plug.port)) {
        Ok(base) => base,
        Err(expected) => return section.reject("address", expected),
    };
    let text = |option: &'_ Option<Rendered>| option.as_ref().map_or(String::new(), |text| text.expose().to_owned());
    let (user, password) = (text(&plug.user), text(&plug.password));
    if user.is_empty() != password.is_empty() {
        return section.reject(if user.is_empty() { "user" } else { "password" }, "expected both, or none of `user` and `password`");
    }
    Some(KlapRecipe { base, logins: logins(&user, &password), output: plug.output_id })
}

/// The given login first, each as both generations hash it.
fn logins(user: &str, password: &str) -> Vec<Login> {
    let given = (!user.is_empty()).then_some([user, password]);
    let pairs = given.into_iter().chain(DEFAULTS);
    pairs
        .flat_map(|[user, password]| [Generation::Second, Generation::First].map(|generation| Login::new(generation, user, password)))
        .collect()
}

impl KlapRecipe {
    pub(crate) fn driver(self, client: &Client) -> Box<dyn Driver> {
        Box::new(Plug { line: Line::new(client, self.base, self.logins), output: self.output, language: None })
    }
}

/// What is spoken within the cipher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Language {
    /// That of `smartplug_a`.
    Modules,
    Methods,
}

struct Plug {
    line: Line,
    output: Option<u16>,
    /// Known after the first answer.
    language: Option<Language>,
}

impl Plug {
    async fn ask(&mut self, question: Value) -> Result<Value, Fault> {
        Ok(self.line.ask(&question).await?.0)
    }

    async fn language(&mut self) -> Result<Language, Fault> {
        if let Some(language) = self.language {
            return Ok(language);
        }
        let (answer, generation) = self.line.ask(&method("get_device_info", None)).await?;
        let knows_methods = generation == Generation::Second && !answer["error_code"].is_null();
        if knows_methods {
            // A plug that has no time now says nothing of its language.
            accepted(&answer["error_code"], "error_code")?;
        }
        Ok(*self.language.insert(if knows_methods { Language::Methods } else { Language::Modules }))
    }

    /// State of the socket, and its id when it is one of a strip.
    async fn socket(&mut self) -> Result<(bool, Option<String>), Fault> {
        let output = self.output;
        match (self.language().await?, output) {
            (Language::Modules, output) => read_socket(&self.ask(info()).await?, output),
            (Language::Methods, None) => read_device(&self.ask(method("get_device_info", None)).await?),
            (Language::Methods, Some(output)) => {
                let answer = self.ask(method("get_child_device_list", Some(json!({"start_index": 0})))).await?;
                read_child(&answer, output)
            }
        }
    }

    async fn turn(&mut self, on: bool) -> Result<(), Fault> {
        let id = match self.output {
            Some(_) => self.socket().await?.1,
            None => None,
        };
        match self.language().await? {
            Language::Modules => read_relay(&self.ask(addressed(relay(on), id.as_ref())).await?),
            Language::Methods => read_set(&self.ask(set(on, id.as_deref())).await?, id.is_some()),
        }
    }
}

impl Driver for Plug {
    fn query(&mut self) -> Boxed<'_, Result<Reading, Fault>> {
        Box::pin(async move { self.socket().await.map(|(is_on, _)| Reading::from(is_on)) })
    }

    fn switch(&mut self, on: bool) -> Boxed<'_, Result<bool, Fault>> {
        Box::pin(async move { self.turn(on).await.map(|()| on) })
    }
}

/// A question in the language of methods.
fn method(name: &str, parameters: Option<Value>) -> Value {
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_millis() as u64;
    let mut question = json!({"method": name, "request_time_milis": now, "terminal_uuid": TERMINAL});
    if let Some(parameters) = parameters {
        question["params"] = parameters;
    }
    question
}

fn set(on: bool, id: Option<&str>) -> Value {
    let state = json!({"device_on": on});
    match id {
        Some(id) => method("control_child", Some(json!({"device_id": id, "requestData": {"method": "set_device_info", "params": state}}))),
        None => method("set_device_info", Some(state)),
    }
}

fn read_device(answer: &Value) -> Result<(bool, Option<String>), Fault> {
    accepted(&answer["error_code"], "error_code")?;
    Ok((answer["result"]["device_on"].as_bool().ok_or_else(|| missing("device_on"))?, None))
}

/// Sockets say their place, counted from 1; those of other devices stand in order.
fn read_child(answer: &Value, output: u16) -> Result<(bool, Option<String>), Fault> {
    accepted(&answer["error_code"], "error_code")?;
    let children = answer["result"]["child_device_list"].as_array().ok_or_else(|| missing("child_device_list"))?;
    let in_place = children.iter().find(|child| child["slot_number"].as_u64() == Some(u64::from(output) + 1));
    let in_order = || children.get(usize::from(output)).filter(|child| child["slot_number"].is_null());
    let child = in_place.or_else(in_order).ok_or_else(|| no_socket(output))?;
    let id = child["device_id"].as_str().ok_or_else(|| missing("device_id"))?;
    Ok((child["device_on"].as_bool().ok_or_else(|| missing("device_on"))?, Some(id.to_owned())))
}

fn read_set(answer: &Value, is_child: bool) -> Result<(), Fault> {
    accepted(&answer["error_code"], "error_code")?;
    if is_child { accepted(&answer["result"]["responseData"]["error_code"], "responseData") } else { Ok(()) }
}
