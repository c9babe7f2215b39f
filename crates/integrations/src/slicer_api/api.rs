//! The operations of the emulated API, and their shapes as far as they say nothing of the printer. Answers are not wrapped.

use std::collections::BTreeMap;
use std::sync::Arc;

use protocol::FwhostState;
use protocol::error::ApiResult;
use protocol::version::{API_VERSION_STRING, UPSTREAM_VERSION};
use rpc::{Access, Call, Registry};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CHAMBER, SlicerApi, SlicerApiOptions};

/// Version of the emulated API.
const EMULATED_VERSION: &str = "0.1";

/// Version of the plug-in for UFP containers that slicers are told of.
const UFP_VERSION: &str = "0.2.2";

#[derive(Serialize, JsonSchema)]
struct Version {
    /// Version of our API.
    server: &'static str,
    /// Version of the emulated API.
    api: &'static str,
    /// Begins with the name by which slicers know the emulated server.
    text: String,
}

#[derive(Serialize, JsonSchema)]
struct ServerState {
    /// Version of our API.
    server: &'static str,
    /// Null when the printer is ready.
    safemode: Option<&'static str>,
}

#[derive(Serialize, JsonSchema)]
struct CurrentUser {
    _is_external_client: bool,
    _login_mechanism: &'static str,
    name: &'static str,
    active: bool,
    user: bool,
    /// Whether the caller may change the server.
    admin: bool,
    /// Not told.
    apikey: Option<String>,
    permissions: Vec<String>,
    groups: Vec<&'static str>,
}

impl CurrentUser {
    fn of(call: &Call) -> Self {
        let admin = call.identity.may(Access::Admin);
        let groups = if admin { vec!["admins", "users"] } else { vec!["users"] };
        Self {
            _is_external_client: false,
            _login_mechanism: "apikey",
            name: "_api",
            active: true,
            user: true,
            admin,
            apikey: None,
            permissions: Vec::new(),
            groups,
        }
    }
}

#[derive(Serialize, JsonSchema)]
struct Settings {
    plugins: BTreeMap<&'static str, UfpPlugin>,
    feature: Feature,
    webcam: Webcam,
}

/// What tells slicers that UFP containers are welcome.
#[derive(Serialize, JsonSchema)]
struct UfpPlugin {
    align_inline_thumbnail: bool,
    inline_thumbnail: bool,
    inline_thumbnail_align_value: &'static str,
    inline_thumbnail_scale_value: &'static str,
    installed: bool,
    installed_version: &'static str,
    scale_inline_thumbnail: bool,
    state_panel_thumbnail: bool,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Feature {
    sd_support: bool,
    temperature_graph: bool,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(clippy::struct_excessive_bools, reason = "the shape of the other server's API")]
struct Webcam {
    flip_h: bool,
    flip_v: bool,
    rotate90: bool,
    stream_url: String,
    webcam_enabled: bool,
}

impl From<&SlicerApiOptions> for Settings {
    fn from(options: &SlicerApiOptions) -> Self {
        let ufp = UfpPlugin {
            align_inline_thumbnail: false,
            inline_thumbnail: false,
            inline_thumbnail_align_value: "left",
            inline_thumbnail_scale_value: "50",
            installed: true,
            installed_version: UFP_VERSION,
            scale_inline_thumbnail: false,
            state_panel_thumbnail: true,
        };
        Self {
            plugins: options.enable_ufp.then_some(("UltimakerFormatPackage", ufp)).into_iter().collect(),
            feature: Feature { sd_support: false, temperature_graph: false },
            webcam: Webcam {
                flip_h: options.flip_h,
                flip_v: options.flip_v,
                rotate90: options.rotate_90,
                stream_url: options.stream_url.clone(),
                webcam_enabled: options.webcam_enabled,
            },
        }
    }
}

#[derive(Serialize, JsonSchema)]
struct Profiles {
    profiles: BTreeMap<&'static str, Profile>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(clippy::struct_excessive_bools, reason = "the shape of the other server's API")]
struct Profile {
    id: &'static str,
    name: &'static str,
    color: &'static str,
    model: &'static str,
    default: bool,
    current: bool,
    heated_bed: bool,
    heated_chamber: bool,
    axes: BTreeMap<&'static str, Axis>,
}

#[derive(Serialize, JsonSchema)]
struct Axis {
    /// Millimetres a minute.
    speed: u32,
    inverted: bool,
}

const AXES: [(&str, u32); 4] = [("x", 6000), ("y", 6000), ("z", 6000), ("e", 300)];

/// Parameters of a script.
#[derive(Deserialize, JsonSchema)]
struct CommandParams {
    /// Gcode commands, run one after the other.
    #[serde(default)]
    commands: Vec<String>,
    /// A single one.
    command: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Nothing {}

/// Parameters of the choice of a file.
#[derive(Deserialize, JsonSchema)]
struct SelectParams {
    /// Root of the file.
    root: String,
    /// Path below it.
    path: String,
    /// What to do.
    #[serde(rename = "command")]
    _command: FileCommand,
    /// Whether to print it.
    #[serde(default)]
    print: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum FileCommand {
    /// Choose the file.
    Select,
}

impl SlicerApi {
    /// Declares the operations and the route of uploads.
    pub fn register(self: &Arc<Self>, registry: &mut Registry) {
        self.register_greetings(registry);
        self.register_printer(registry);
        registry.upload("/api/files/local", "/api/files/core");
        registry
            .op("slicer_api.select")
            .post("/api/files/core/{root}/{path}")
            .bare()
            .access(Access::Control)
            .doc("Chooses an uploaded file and prints it when asked to; during a print it is queued if uploads are, else refused.")
            .handle(self, |api, call, params: SelectParams| async move {
                if params.print { api.print(&params.root, params.path, call).await } else { Ok(()) }
            });
    }

    /// What programs ask to find out whom they talk to.
    fn register_greetings(self: &Arc<Self>, registry: &mut Registry) {
        registry
            .op("slicer_api.version")
            .get("/api/version")
            .bare()
            .access(Access::View)
            .doc("Versions of this server and of the API that it emulates.")
            .answer(self, |_, _, (): ()| {
                Ok(Version { server: API_VERSION_STRING, api: EMULATED_VERSION, text: format!("OctoPrint (Moonraker {UPSTREAM_VERSION})") })
            });
        registry.op("slicer_api.server").get("/api/server").bare().access(Access::View).doc("Whether the printer can be used.").answer(
            self,
            |api, _, (): ()| {
                let is_ready = api.host.status().state == FwhostState::Ready;
                Ok(ServerState { server: API_VERSION_STRING, safemode: (!is_ready).then_some("settings") })
            },
        );
        registry
            .op("slicer_api.login")
            .get("/api/login")
            .post("/api/login")
            .bare()
            .access(Access::View)
            .doc("The caller. Nothing is logged in: whoever may ask is in already.")
            .answer(self, |_, call, (): ()| Ok(CurrentUser::of(call)));
        registry
            .op("slicer_api.current_user")
            .get("/api/currentuser")
            .bare()
            .access(Access::View)
            .doc("The caller.")
            .answer(self, |_, call, (): ()| Ok(CurrentUser::of(call)));
        registry
            .op("slicer_api.settings")
            .get("/api/settings")
            .bare()
            .access(Access::View)
            .doc("Which files are welcome, and where the camera is.")
            .answer(self, |api, _, (): ()| Ok(Settings::from(&api.options)));
    }

    fn register_printer(self: &Arc<Self>, registry: &mut Registry) {
        registry
            .op("slicer_api.job")
            .get("/api/job")
            .bare()
            .access(Access::View)
            .doc("What is printed, and how far it is.")
            .answer(self, |api, _, (): ()| Ok(api.job()));
        registry
            .op("slicer_api.printer")
            .get("/api/printer")
            .bare()
            .access(Access::View)
            .doc("State and temperatures.")
            .answer(self, |api, _, (): ()| Ok(api.printer()));
        registry
            .op("slicer_api.profiles")
            .get("/api/printerprofiles")
            .bare()
            .access(Access::View)
            .doc("The one printer that there is.")
            .answer(self, |api, _, (): ()| Ok(api.profiles()));
        registry
            .op("slicer_api.command")
            .post("/api/printer/command")
            .bare()
            .access(Access::Control)
            .doc("Runs gcode commands. What fails is told as output of the printer only.")
            .handle(self, |api, _, params: CommandParams| async move {
                api.run(params.commands.into_iter().chain(params.command).collect()).await?;
                ApiResult::Ok(Nothing {})
            });
    }

    fn profiles(&self) -> Profiles {
        let profile = Profile {
            id: "_default",
            name: "Default",
            color: "default",
            model: "Default",
            default: true,
            current: true,
            heated_bed: self.has_object("heater_bed"),
            heated_chamber: self.has_object(CHAMBER),
            axes: AXES.into_iter().map(|(name, speed)| (name, Axis { speed, inverted: false })).collect(),
        };
        Profiles { profiles: BTreeMap::from([("_default", profile)]) }
    }
}
