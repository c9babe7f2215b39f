//! What the host answered.

use std::borrow::Cow;
use std::sync::Arc;

use protocol::FwhostState;
use protocol::status::{HostStatus, Selection, Text};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::{Lost, Session};
use crate::exchange::{Purpose, Taken, Waiter};
use crate::failure::Failure;
use crate::message;
use crate::model::{Input, Phase};

/// Objects that clients cannot do without (wire/1-core.md section 4.1).
const REQUIRED: [&str; 3] = ["virtual_sdcard", "display_status", "pause_resume"];

/// The object with the host's own state; followed whatever happens.
const WEBHOOKS: &str = "webhooks";

/// The object that lists temperature sensors.
const HEATERS: &str = "heaters";

type Outcome<'m> = Result<&'m RawValue, Cow<'m, str>>;

impl Session<'_> {
    pub(super) fn answered(&mut self, id: Option<u64>, outcome: Outcome<'_>) -> Result<(), Lost> {
        match self.shared.exchange.take(id) {
            Taken::NeverAsked => Err(Lost::Rubbish("an answer to a request that was never made")),
            Taken::Abandoned => {
                self.shared.mirror.lock().command_completed();
                Ok(())
            }
            Taken::Pending(pending) => {
                if pending.command {
                    // Before the caller hears of it, so that it reads its own writes.
                    self.shared.mirror.lock().command_completed();
                }
                match pending.waiter {
                    Waiter::Caller { answer, query } => {
                        let result = self.result(query.as_ref(), outcome)?;
                        // The caller may have gone in this moment.
                        let _ = answer.send(result);
                        Ok(())
                    }
                    Waiter::Own(purpose) => self.answered_us(&pending.endpoint, purpose, outcome),
                }
            }
        }
    }

    fn result(&mut self, query: Option<&Selection>, outcome: Outcome<'_>) -> Result<Result<Arc<str>, Failure>, Lost> {
        let raw = match outcome {
            Ok(raw) => raw,
            Err(text) => return Ok(Err(Failure::Host(text.into_owned()))),
        };
        let Some(asked) = query else { return Ok(Ok(raw.get().into())) };
        let status = host_status(raw)?;
        let (diff, discovered) = self.shared.mirror.lock().absorb(asked, &status);
        if discovered {
            self.second_look = Some(Instant::now());
        }
        self.changed(diff.as_deref());
        Ok(Ok(Arc::default()))
    }

    fn answered_us(&mut self, endpoint: &str, purpose: Purpose, outcome: Outcome<'_>) -> Result<(), Lost> {
        if let Err(text) = &outcome {
            self.quirks.warn("refused", &format_args!("it refused our own request '{endpoint}': {text}"));
        }
        let result = outcome.ok();
        match purpose {
            Purpose::Info => self.got_info(result)?,
            Purpose::Endpoints => self.got_endpoints(result)?,
            Purpose::Objects => self.got_objects(result)?,
            Purpose::Standing(objects) => self.got_values(&objects, result)?,
            Purpose::Plain => {}
        }
        self.check_loaded();
        Ok(())
    }

    fn got_info(&mut self, result: Option<&RawValue>) -> Result<(), Lost> {
        #[derive(Deserialize)]
        struct Info<'a> {
            #[serde(borrow)]
            state: &'a RawValue,
            #[serde(borrow)]
            state_message: Option<&'a RawValue>,
        }
        self.info_pending = false;
        self.load.info = false;
        let Some(raw) = result else { return Ok(()) };
        let info: Info<'_> = read(raw, "an answer to info without a state")?;
        let state = message::text(info.state).ok_or(Lost::Rubbish("an answer to info without a state"))?;
        if self.shared.view.load().info.as_deref() != Some(raw.get()) {
            let text = info.state_message.and_then(message::text);
            self.shared.update_view(|view| {
                view.info = Some(raw.get().into());
                if let Some(text) = text {
                    view.state_message = text.as_ref().into();
                }
            });
        }
        self.step(Input::Host(FwhostState::from_host(&state)));
        Ok(())
    }

    fn got_endpoints(&mut self, result: Option<&RawValue>) -> Result<(), Lost> {
        #[derive(Deserialize)]
        struct Endpoints {
            endpoints: Vec<String>,
        }
        self.load.endpoints = false;
        let Some(raw) = result else { return Ok(()) };
        let list: Endpoints = read(raw, "a malformed list of endpoints")?;
        let mut endpoints: Vec<Text> = list.endpoints.iter().map(|name| Text::from(name.as_str())).collect();
        endpoints.sort_unstable();
        endpoints.dedup();
        self.shared.update_view(|view| view.endpoints = endpoints.into());
        Ok(())
    }

    fn got_objects(&mut self, result: Option<&RawValue>) -> Result<(), Lost> {
        #[derive(Deserialize)]
        struct Objects {
            objects: Vec<String>,
        }
        let Phase::Loading { host, .. } = self.model.phase() else { return Ok(()) };
        self.load.objects = false;
        let Some(raw) = result else {
            self.load.values = false;
            return Ok(());
        };
        let list: Objects = read(raw, "a malformed list of objects")?;
        let objects: Arc<[Text]> = list.objects.iter().map(|name| Text::from(name.as_str())).collect();
        let missing = match host {
            FwhostState::Ready => REQUIRED.into_iter().filter(|name| !has(&objects, name)).collect(),
            _ => Vec::new(),
        };
        if !missing.is_empty() {
            tracing::warn!(fwhost.missing = ?missing, "the printer's configuration lacks sections that clients need");
        }
        self.shared.update_view(|view| {
            view.objects = objects.clone();
            view.missing_requirements = missing;
        });
        self.follow(match host {
            // After a failed start objects may be half-built, and looking at those can make things worse.
            FwhostState::Error => [Text::from(WEBHOOKS)].into(),
            _ if has(&objects, WEBHOOKS) => objects,
            _ => objects.iter().cloned().chain([Text::from(WEBHOOKS)]).collect(),
        });
        Ok(())
    }

    fn got_values(&mut self, objects: &Arc<[Text]>, result: Option<&RawValue>) -> Result<(), Lost> {
        self.subscribing = false;
        if !Arc::ptr_eq(objects, &self.standing) {
            // Meanwhile others are wanted, and their answer will have everything.
            self.follow(self.standing.clone());
            return Ok(());
        }
        if !self.load.objects {
            self.load.values = false;
        }
        let Some(raw) = result else { return Ok(()) };
        let status = host_status(raw)?;
        let diff = self.shared.mirror.lock().load(objects, &status, Instant::now());
        if has(objects, HEATERS) {
            self.follow_temperatures();
        }
        self.changed(diff.as_deref());
        Ok(())
    }

    fn follow_temperatures(&self) {
        let field = |object: &str, field: &str| self.shared.mirror.lock().field(object, field);
        let names = |list: &str| -> Vec<Text> {
            let names: Vec<String> = field(HEATERS, list).and_then(|json| serde_json::from_str(&json).ok()).unwrap_or_default();
            names.iter().map(|name| Text::from(name.as_str())).collect()
        };
        let (sensors, monitors) = (names("available_sensors"), names("available_monitors"));
        self.shared.temperatures.lock().follow(&sensors, monitors, field);
    }

    fn check_loaded(&mut self) {
        if matches!(self.model.phase(), Phase::Loading { .. })
            && !(self.load.info || self.load.endpoints || self.load.objects || self.load.values)
        {
            self.step(Input::Loaded);
        }
    }
}

fn has(objects: &[Text], name: &str) -> bool {
    objects.iter().any(|object| &**object == name)
}

/// Reads a result of our own request; what does not fit is rubbish of this kind.
fn read<'m, T: Deserialize<'m>>(raw: &'m RawValue, kind: &'static str) -> Result<T, Lost> {
    serde_json::from_str(raw.get()).map_err(|_| Lost::Rubbish(kind))
}

pub(super) fn host_status(raw: &RawValue) -> Result<HostStatus<'_>, Lost> {
    read(raw, "a malformed status")
}
