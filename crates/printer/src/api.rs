//! Operations: document 1 *Printer*, and the two stores of *Server administration*.

use std::sync::Arc;

use fwhost::{GcodeEntry, Restart};
use protocol::ApiError;
use protocol::status::Selection;
use rpc::operation::Reply;
use rpc::{Access, Answer, Outcome, Registry, Rendered};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use crate::endpoints::Endpoints;
use crate::info;
use crate::service::{PrintTarget, Printer};

/// What most printer operations answer.
const OK: &str = "ok";

#[derive(Deserialize, JsonSchema)]
struct ObjectsParams {
    /// Printer objects and their wanted fields.
    objects: Selection,
}

#[derive(Deserialize, JsonSchema)]
struct ScriptParams {
    /// Gcode, several commands separated by newlines.
    script: String,
}

#[derive(Deserialize, JsonSchema)]
struct StartParams {
    /// Path relative to the gcode root.
    filename: String,
}

#[derive(Deserialize, JsonSchema)]
struct TemperatureParams {
    /// Adds sensors of the temperature monitor kind.
    #[serde(default)]
    include_monitors: bool,
}

#[derive(Deserialize, JsonSchema)]
struct GcodeStoreParams {
    /// Newest entries wanted; all when absent or 0.
    #[serde(default)]
    count: Option<u32>,
}

#[derive(Serialize, JsonSchema)]
struct GcodeStore {
    /// Oldest first.
    #[schemars(with = "Vec<GcodeLine>")]
    gcode_store: Vec<GcodeEntry>,
}

/// *GCode Tracking Object* of document 1, for the contract.
#[derive(JsonSchema)]
#[allow(dead_code)]
struct GcodeLine {
    message: String,
    /// Unix seconds.
    time: f64,
    /// `command` or `response`.
    r#type: String,
}

/// Sensor name to *Temperature store entry* of document 1.
#[derive(JsonSchema)]
#[allow(dead_code)]
struct Temperatures(std::collections::BTreeMap<String, Series>);

/// The same as JSON text.
struct TemperaturesText(String);

impl Reply for TemperaturesText {
    fn into_answer(self) -> Result<Answer, ApiError> {
        Ok(self.0.into())
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<Temperatures>()
    }
}

/// *Temperature store entry* of document 1, for the contract; series that a sensor does not report are left out.
#[derive(JsonSchema)]
#[allow(dead_code)]
struct Series {
    temperatures: Option<Vec<Option<f64>>>,
    targets: Option<Vec<f64>>,
    speeds: Option<Vec<f64>>,
    powers: Option<Vec<f64>>,
}

impl Printer {
    /// Declares the operations.
    pub fn register(self: &Arc<Self>, registry: &mut Registry) {
        self.register_status(registry);
        self.register_control(registry);
        self.register_stores(registry);
        registry.set_dynamic(Arc::new(Endpoints::new(self.host.clone())));
    }

    fn register_status(self: &Arc<Self>, registry: &mut Registry) {
        registry
            .op("printer.info")
            .get("/printer/info")
            .post("/printer/info")
            .access(Access::View)
            .doc("State, paths and version of the firmware host.")
            .handle(self, |printer, _, (): ()| async move {
                let info = printer.host.request("info", None).await?;
                Ok(rendered(&info::with_both_names(&info)))
            });
        registry
            .op("printer.objects.list")
            .get("/printer/objects/list")
            .post("/printer/objects/list")
            .access(Access::View)
            .doc("Names of the printer objects that can be queried and subscribed.")
            .handle(self, |printer, _, (): ()| async move { Ok(rendered(&printer.host.request("objects/list", None).await?)) });
        registry
            .op("printer.objects.query")
            .get("/printer/objects/query")
            .post("/printer/objects/query")
            .access(Access::View)
            .doc("Values of printer objects; what the printer does not have is left out.")
            .query_names_objects()
            .respond(self, |printer, _, params: ObjectsParams| match printer.host.query_cached(&params.objects) {
                Some(status) => Outcome::Done(Ok(status.into())),
                None => {
                    let host = printer.host.clone();
                    Outcome::working(async move { host.query(&params.objects).await.map(|status| Rendered(status.into())) })
                }
            });
        registry
            .op("printer.objects.subscribe")
            .get("/printer/objects/subscribe")
            .post("/printer/objects/subscribe")
            .access(Access::View)
            .doc("Values of printer objects, and from then on their changes as notify_status_update on this connection. Replaces the connection's earlier subscription; no objects cancel it.")
            .query_names_objects()
            .handle(self, |printer, call, params: ObjectsParams| async move { printer.subscribe(&call, params.objects).await });
        registry
            .op("printer.query_endstops.status")
            .get("/printer/query_endstops/status")
            .post("/printer/query_endstops/status")
            .access(Access::View)
            .doc("State of each endstop: open or TRIGGERED.")
            .handle(self, |printer, _, (): ()| async move { Ok(rendered(&printer.host.request("query_endstops/status", None).await?)) });
        registry
            .op("printer.gcode.help")
            .get("/printer/gcode/help")
            .post("/printer/gcode/help")
            .access(Access::View)
            .doc("Help texts of the gcode commands that have one.")
            .handle(self, |printer, _, (): ()| async move { Ok(rendered(&printer.host.request("gcode/help", None).await?)) });
    }

    fn register_control(self: &Arc<Self>, registry: &mut Registry) {
        registry
            .op("printer.emergency_stop")
            .get("/printer/emergency_stop")
            .post("/printer/emergency_stop")
            .access(Access::Control)
            .doc("Halts the printer at once; it is in state shutdown afterwards.")
            .handle(self, |printer, _, (): ()| async move { printer.host.emergency_stop().await.map(|()| OK) });
        for (name, restart, doc) in [
            ("restart", Restart::Host, "Restarts the firmware host: configuration is read again, micro-controllers are not reset."),
            ("firmware_restart", Restart::Firmware, "Restarts the firmware host and resets the micro-controllers."),
        ] {
            registry
                .op(format!("printer.{name}"))
                .post(&format!("/printer/{name}"))
                .access(Access::Control)
                .doc(doc)
                .handle(self, move |printer, _, (): ()| async move { printer.host.restart_gcode(restart).await.map(|()| OK) });
        }
        registry
            .op("printer.gcode.script")
            .get("/printer/gcode/script")
            .post("/printer/gcode/script")
            .access(Access::Control)
            .doc("Runs gcode; answers when the commands are done or one has failed.")
            .handle(self, |printer, _, params: ScriptParams| async move { printer.host.gcode(&params.script, true).await.map(|()| OK) });
        registry
            .op("printer.print.start")
            .post("/printer/print/start")
            .access(Access::Control)
            .doc("Starts a print of a file in the gcode root.")
            .handle(self, |printer, call, params: StartParams| async move {
                printer.start_print(&PrintTarget::parse(&params.filename)?, call.identity.name()).await.map(|()| OK)
            });
        for (name, doc) in [("pause", "Pauses the print."), ("resume", "Resumes the paused print."), ("cancel", "Cancels the print.")] {
            let endpoint = format!("pause_resume/{name}");
            registry.op(format!("printer.print.{name}")).post(&format!("/printer/print/{name}")).access(Access::Control).doc(doc).handle(
                self,
                move |printer, _, (): ()| {
                    let endpoint = endpoint.clone();
                    async move { printer.host.request(&endpoint, None).await.map(|result| rendered(&result)) }
                },
            );
        }
    }

    fn register_stores(self: &Arc<Self>, registry: &mut Registry) {
        registry
            .op("server.temperature_store")
            .get("/server/temperature_store")
            .access(Access::View)
            .doc("Recent temperatures, targets, powers and fan speeds of every sensor, one value per second, oldest first.")
            .answer(self, |printer, _, params: TemperatureParams| {
                Ok(TemperaturesText(printer.host.temperature_store(params.include_monitors)))
            });
        registry
            .op("server.gcode_store")
            .get("/server/gcode_store")
            .access(Access::View)
            .doc("Recent console lines: commands given through the script operation, and responses.")
            .answer(self, |printer, _, params: GcodeStoreParams| {
                Ok(GcodeStore { gcode_store: printer.host.gcode_store(params.count.map(|count| count as usize)) })
            });
    }
}

fn rendered(json: &str) -> Rendered {
    Rendered(json.as_bytes().to_vec().into())
}
