//! What the host calls us for: status updates, gcode output, remote methods.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::answers::host_status;
use super::{Lost, Session};
use crate::event::HostEvent;
use crate::message;
use crate::model::Input;
use crate::stores::gcode::GcodeKind;

/// Starts the output lines that announce a new state of the host, up to a quarter of a second before the status update does.
const STATE_LINE: &str = "// Klipper state: ";

impl Session<'_> {
    pub(super) fn called(&mut self, method: &str, params: Option<&RawValue>) -> Result<(), Lost> {
        let name = method.strip_prefix(&*self.token).and_then(|rest| rest.strip_prefix(' '));
        match (name, params) {
            (Some("status"), Some(params)) => self.status_update(params),
            (Some("output"), Some(params)) => self.gcode_output(params),
            (Some(name), params) if name.starts_with("call ") => {
                self.remote_call(&name["call ".len()..], params);
                Ok(())
            }
            _ => {
                self.quirks.warn("unknown call", &format_args!("ignored a call of '{}'", start_of(method)));
                Ok(())
            }
        }
    }

    fn status_update(&mut self, params: &RawValue) -> Result<(), Lost> {
        let status = host_status(params)?;
        let diff = self.shared.mirror.lock().tick(&status, Instant::now());
        self.changed(diff.as_deref());
        Ok(())
    }

    fn gcode_output(&mut self, params: &RawValue) -> Result<(), Lost> {
        #[derive(Deserialize)]
        struct Output<'a> {
            #[serde(borrow)]
            response: &'a RawValue,
        }
        let output: Output<'_> = serde_json::from_str(params.get()).map_err(|_| Lost::Rubbish("malformed gcode output"))?;
        let line: Arc<str> = message::text(output.response).ok_or(Lost::Rubbish("malformed gcode output"))?.into();
        self.shared.record_gcode(GcodeKind::Response, &line);
        self.shared.emit(&HostEvent::GcodeResponse(line.clone()));
        if line.starts_with(STATE_LINE) {
            self.step(Input::Hint);
        }
        Ok(())
    }

    fn remote_call(&mut self, name: &str, params: Option<&RawValue>) {
        if !self.shared.remote.call(name, params) {
            tracing::debug!(fwhost.remote_method = name, "remote method is no longer registered");
        }
    }
}

/// Enough of a foreign text for a log line.
fn start_of(text: &str) -> &str {
    &text[..text.floor_char_boundary(80)]
}
