//! The endpoints of the socket (wire document 5, section 2).

use serde_json::{Map, Value, json};

use super::connection::ConnId;
use super::host::{Host, MAX_REMOTE_METHODS, Waiting};
use super::request::Request;
use super::status::{Query, wanted};
use crate::model::{HostState, SOFTWARE_VERSION};

/// Endpoints that exist from the first moment.
const BASIC: &[&str] = &[
    "list_endpoints",
    "info",
    "emergency_stop",
    "register_remote_method",
    "gcode/help",
    "gcode/script",
    "gcode/restart",
    "gcode/firmware_restart",
    "gcode/subscribe_output",
    "objects/list",
    "objects/query",
    "objects/subscribe",
];

/// Endpoints that come with a section of the configuration: endpoint, section.
const BY_SECTION: &[(&str, &str)] = &[
    ("bed_mesh/dump_mesh", "bed_mesh"),
    ("pause_resume/cancel", "pause_resume"),
    ("pause_resume/pause", "pause_resume"),
    ("pause_resume/resume", "pause_resume"),
];

/// Endpoints that come when the host is ready.
const WHEN_READY: &[&str] = &["query_endstops/status", "motion_report/dump_trapq"];

/// Names of motion queues that can be dumped.
const QUEUES: [&str; 2] = ["toolhead", "extruder"];

/// Result of an endpoint: an answer now, an error, or nothing yet.
type Handled = Result<Option<Value>, String>;

impl Host {
    /// Handles a frame of a client; malformed ones are dropped.
    pub(super) fn handle_frame(&mut self, conn: ConnId, frame: &[u8]) {
        if !self.connections.contains_key(&conn) {
            return;
        }
        let Some(request) = Request::parse(frame) else {
            tracing::debug!("dropping a malformed request");
            return;
        };
        let handled = self.handle(conn, &request);
        // What the request made the printer say goes out before its answer.
        self.deliver();
        match handled {
            Ok(None) => {}
            Ok(Some(result)) => self.answer(conn, request.id.as_ref(), Ok(result)),
            Err(message) => self.answer(conn, request.id.as_ref(), Err(message)),
        }
    }

    fn handle(&mut self, conn: ConnId, request: &Request) -> Handled {
        if !self.endpoints().contains(&request.method.as_str()) {
            return Err(format!("webhooks: No registered callback for path '{}'", request.method));
        }
        match request.method.as_str() {
            "info" => self.info(request).map(Some),
            "list_endpoints" => Ok(Some(json!({ "endpoints": self.endpoints() }))),
            "emergency_stop" => {
                self.model.shutdown("Shutdown due to webhooks request");
                Ok(Some(json!({})))
            }
            "register_remote_method" => self.register_remote_method(conn, request).map(Some),
            "gcode/help" => Ok(Some(Value::Object(self.model.help()))),
            "gcode/script" => {
                let script = request.text("script")?;
                self.script(conn, request, script)
            }
            "gcode/restart" => self.script(conn, request, "RESTART"),
            "gcode/firmware_restart" => self.script(conn, request, "FIRMWARE_RESTART"),
            "pause_resume/pause" => self.script(conn, request, "PAUSE"),
            "pause_resume/resume" => self.script(conn, request, "RESUME"),
            "pause_resume/cancel" => self.script(conn, request, "CANCEL_PRINT"),
            "gcode/subscribe_output" => self.subscribe_output(conn, request).map(Some),
            "objects/list" => Ok(Some(json!({ "objects": self.model.object_names() }))),
            "objects/query" => self.query(conn, request, None),
            "objects/subscribe" => {
                let template = request.optional_object("response_template")?;
                self.query(conn, request, Some(template))
            }
            "query_endstops/status" => {
                let ticket = self.ticket(Waiting::Request(conn, request.id.clone()));
                self.model.submit_endstop_query(ticket);
                Ok(None)
            }
            "motion_report/dump_trapq" => self.dump_trapq(conn, request).map(Some),
            "bed_mesh/dump_mesh" => {
                request.optional_object("mesh_args")?;
                Ok(Some(self.model.bed_mesh_dump()))
            }
            other => Err(format!("webhooks: No registered callback for path '{other}'")),
        }
    }

    fn endpoints(&self) -> Vec<&'static str> {
        let ready = matches!(self.model.state(), HostState::Ready | HostState::Shutdown);
        let by_section = BY_SECTION.iter().filter(|(_, section)| self.model.has_object(section)).map(|(name, _)| *name);
        let when_ready = WHEN_READY.iter().filter(|_| ready).copied();
        BASIC.iter().copied().chain(by_section).chain(when_ready).collect()
    }

    fn info(&self, request: &Request) -> Result<Value, String> {
        request.optional_object("client_info")?;
        Ok(json!({
            "state": self.model.state().as_str(),
            "state_message": self.model.message(),
            "hostname": "simulated-printer",
            "klipper_path": "/simulated/klipper",
            "python_path": "/simulated/python",
            "process_id": std::process::id(),
            "user_id": rustix::process::getuid().as_raw(),
            "group_id": rustix::process::getgid().as_raw(),
            "log_file": self.options.log_file.as_ref().map(|path| path.to_string_lossy()),
            "config_file": self.options.config_file.to_string_lossy(),
            "software_version": SOFTWARE_VERSION,
            "cpu_info": "simulated",
        }))
    }

    fn register_remote_method(&mut self, conn: ConnId, request: &Request) -> Result<Value, String> {
        let template = request.object("response_template")?.clone();
        let method = request.text("remote_method")?.to_owned();
        if let Some(connection) = self.connections.get_mut(&conn)
            && connection.remote.len() < MAX_REMOTE_METHODS
        {
            connection.remote.insert(method, template);
        }
        Ok(json!({}))
    }

    fn subscribe_output(&mut self, conn: ConnId, request: &Request) -> Result<Value, String> {
        let template = request.optional_object("response_template")?;
        if let Some(connection) = self.connections.get_mut(&conn) {
            connection.output = Some(template);
        }
        Ok(json!({}))
    }

    fn script(&mut self, conn: ConnId, request: &Request, script: &str) -> Handled {
        let ticket = self.ticket(Waiting::Request(conn, request.id.clone()));
        self.model.submit_script(ticket, script);
        Ok(None)
    }

    fn query(&mut self, conn: ConnId, request: &Request, subscribe: Option<Map<String, Value>>) -> Handled {
        let wanted = wanted(request.object("objects")?)?;
        self.status.ask(Query { conn, id: request.id.clone(), wanted, subscribe });
        Ok(None)
    }

    fn dump_trapq(&mut self, conn: ConnId, request: &Request) -> Result<Value, String> {
        let name = request.text("name")?;
        if !QUEUES.contains(&name) {
            return Err(format!("The value '{name}' is not valid for name"));
        }
        let template = request.optional_object("response_template")?;
        if let Some(connection) = self.connections.get_mut(&conn) {
            connection.dumps.retain(|(known, t)| known != name || *t != template);
            connection.dumps.push((name.to_owned(), template));
        }
        Ok(json!({ "header": ["time", "duration", "start_velocity", "acceleration", "start_position", "direction"] }))
    }
}
