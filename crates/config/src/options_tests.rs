use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;

use crate::{CommaList, Context, Dictionary, Entry, Loaded, OptionSet, Reader, Secret, Secrets, choices, load_text, options, unparsed};

choices! {
    /// How services are controlled.
    pub(crate) enum Provider {
        /// Not at all.
        None = "none",
        /// Over D-Bus.
        Dbus = "systemd_dbus" | "dbus",
    }
}

options! {
    /// How the server listens.
    ///
    /// A second paragraph.
    pub(crate) struct ServerOptions: "server" {
        /// Bind address; `all` means both | families.
        host: String = "0.0.0.0",
        /// HTTP port.
        port: u16 { min 1 } = 7125,
        /// Firmware host socket.
        fwhost_uds_address ["klippy_uds_address"]: PathBuf = "/tmp/klippy_uds",
        /// Where certificates are.
        certs: PathBuf = "{data_path}/certs",
        /// Log in attempts.
        max_login_attempts: Option<u32> { min 1 } = None,
        /// Who controls services.
        provider: Provider = Provider::Dbus,
        /// Pause.
        delay: Duration { above 0, max 10.5 } = 0.5,
        /// Warn.
        enable_observer_warnings: bool { was "enable_inotify_warnings" } = true,
        /// Old switch.
        enable_debug_logging: bool { deprecated "use the command line" } = false,
        /// Trusted addresses.
        trusted_clients: Vec<String> = &[],
        /// Extra headers.
        headers: Dictionary = &[],
    }
}

options! {
    /// A switchable thing.
    pub(crate) struct PowerOptions: "power <name>" | "plug <name>" {
        /// Kind of device.
        r#type: String,
        /// Password.
        password: Option<Secret> = None,
        /// Limit without default.
        poll_interval: f64 { min 1 },
        /// Events.
        events: CommaList = &["a", "b"],
    }
}

options! {
    struct SpoolOptions: "spool" | "spoolman" {
        sync_rate: u32 { min 1 } = 5,
    }
}

options! {
    struct EmptyOptions: "history" {}
}

fn document(text: &str) -> Loaded {
    let loaded = load_text("core.conf", text);
    assert_eq!(loaded.problems, []);
    loaded
}

fn context() -> Context {
    let (secrets, _) = Secrets::parse("core.secrets", b"[plug]\npassword: hunter2");
    Context { data_path: "/data".into(), home: Some("/home/pi".into()), secrets }
}

/// Reads `[server]` and gives it with the problems and warnings.
fn server(options: &str) -> (ServerOptions, Vec<String>, Vec<String>) {
    let loaded = document(&format!("[server]\n{options}"));
    let context = context();
    let mut reader = Reader::new(&loaded.document, &context);
    let options = reader.read_or_default();
    let lines = |problems: &[crate::Problem]| problems.iter().map(ToString::to_string).collect();
    (options, lines(&reader.problems), lines(&reader.warnings))
}

#[test]
fn defaults_hold_without_options() {
    let (options, problems, warnings) = server("");
    assert_eq!((options.host.as_str(), options.port, options.provider), ("0.0.0.0", 7125, Provider::Dbus));
    assert_eq!(options.certs, Path::new("/data/certs"));
    assert_eq!(options.max_login_attempts, None);
    assert_eq!(options.delay, Duration::from_millis(500));
    assert_eq!((problems, warnings), (vec![], vec![]));
    assert_eq!(ServerOptions::default().port, 7125);
}

#[test]
fn values_are_converted() {
    let (options, problems, _) = server(
        "host: all\nport = 80\ncerts: ~/certs\nmax_login_attempts: 3\nprovider: DBUS\ndelay: 2\ntrusted_clients:\n  10.0.0.0/8\n  # office\n  ::1\nheaders:\n  a=b=c\n",
    );
    assert_eq!(problems, [""; 0]);
    assert_eq!((options.host.as_str(), options.port, options.max_login_attempts), ("all", 80, Some(3)));
    assert_eq!(options.certs, Path::new("/home/pi/certs"));
    assert_eq!(options.delay, Duration::from_secs(2));
    assert_eq!(options.trusted_clients, ["10.0.0.0/8", "::1"]);
    assert_eq!(options.headers.0["a"], "b=c");
}

#[test]
fn faulty_values_are_all_reported_and_have_defaults() {
    let (options, problems, _) = server("port: 0\nmax_login_attempts: x\nprovider: upstart\ndelay: 0\nhost: ok\n");
    assert_eq!(
        problems,
        [
            "core.conf:2: [server] port: expected a whole number from 0 to 65535, at least 1, found `0`",
            "core.conf:3: [server] max_login_attempts: expected a whole number, 0 or more, at least 1, found `x`",
            "core.conf:4: [server] provider: expected one of `none`, `systemd_dbus`, found `upstart`",
            "core.conf:5: [server] delay: expected a number of seconds, 0 or more, above 0, at most 10.5, found `0`",
        ]
    );
    assert_eq!((options.port, options.provider, options.host.as_str()), (7125, Provider::Dbus, "ok"));
}

#[test]
fn limits_include_their_ends_only_for_min_and_max() {
    assert_eq!(server("delay: 10.5\nport: 1").1, [""; 0]);
    assert_eq!(server("delay: 10.6\nport: 1").1.len(), 1);
}

#[test]
fn both_names_are_accepted() {
    assert_eq!(server("klippy_uds_address: /a").0.fwhost_uds_address, Path::new("/a"));
    assert_eq!(server("fwhost_uds_address: /a").0.fwhost_uds_address, Path::new("/a"));
    let (options, _, warnings) = server("klippy_uds_address: /a\nfwhost_uds_address: /b");
    assert_eq!(options.fwhost_uds_address, Path::new("/b"));
    assert_eq!(
        warnings,
        ["core.conf:2: [server] klippy_uds_address: ignored, because it is another name of `fwhost_uds_address`, which is set too"]
    );
}

#[test]
fn outdated_options_and_names_warn() {
    let (options, problems, warnings) = server("enable_inotify_warnings: no\nenable_debug_logging: yes");
    assert!(!options.enable_observer_warnings && options.enable_debug_logging);
    assert_eq!(problems, [""; 0]);
    assert_eq!(
        warnings,
        [
            "core.conf:2: [server] enable_inotify_warnings: this name is deprecated: write `enable_observer_warnings`",
            "core.conf:3: [server] enable_debug_logging: this option is deprecated: use the command line",
        ]
    );
}

#[test]
fn effective_lists_typed_values_under_all_names() {
    let map = server("port: 80\nklippy_uds_address: /a").0.effective();
    assert_eq!(map["port"], 80);
    assert_eq!(map["fwhost_uds_address"], "/a");
    assert_eq!(map["klippy_uds_address"], "/a");
    assert_eq!(map["max_login_attempts"], json!(null));
    assert_eq!(map["delay"], 0.5);
    assert_eq!(map["provider"], "systemd_dbus");
    assert_eq!(map["enable_inotify_warnings"], true);
    assert_eq!(map["trusted_clients"], json!([]));
    assert_eq!(map["headers"], json!({}));
}

#[test]
fn prefix_sections_are_read_with_their_names() {
    let loaded = document(
        "[server]\n[power my led]\ntype: gpio\npoll_interval: 1\n[plug b]\ntype: x\npoll_interval: 0.5\n[power]\n[powers c]\n[power d]\n",
    );
    let context = context();
    let mut reader = Reader::new(&loaded.document, &context);
    let entries: Vec<Entry<PowerOptions>> = reader.read_all();
    let names: Vec<_> = entries.iter().map(|entry| (entry.section.as_str(), entry.name.as_str(), entry.options.is_some())).collect();
    assert_eq!(names, [("power my led", "my led", true), ("plug b", "b", false), ("power d", "d", false)]);
    assert_eq!(entries[0].options.as_ref().unwrap().events, CommaList(vec!["a".into(), "b".into()]));
    let faults: Vec<String> = entries[1..].iter().flat_map(|entry| &entry.problems).map(ToString::to_string).collect();
    assert_eq!(
        faults,
        [
            "core.conf:7: [plug b] poll_interval: expected a number, at least 1, found `0.5`",
            "core.conf:10: [power d] type: expected text; this option is required",
            "core.conf:10: [power d] poll_interval: expected a number, at least 1; this option is required",
        ]
    );
    assert_eq!(reader.problems.len(), 3);
    let sound: Vec<bool> = entries.into_iter().map(|entry| entry.sound().is_ok()).collect();
    assert_eq!(sound, [true, false, false]);
    let rest = unparsed(&loaded.document, &reader.usage);
    assert_eq!(rest.len(), 3, "[server], [power] and [powers c] were not read: {rest:?}");
}

#[test]
fn secrets_are_filled_in_and_never_shown() {
    let loaded = document(
        "[server]\n[power a]\ntype: x\npoll_interval: 2\npassword: {secrets.plug.password}\n[power b]\npassword: {secrets.no.thing}\n",
    );
    let context = context();
    let mut reader = Reader::new(&loaded.document, &context);
    let a: PowerOptions = reader.read_section("power a").unwrap().sound().unwrap();
    assert_eq!(a.password.as_ref().unwrap().expose(), "hunter2");
    assert_eq!(a.effective()["password"], "{secrets.plug.password}");
    assert!(!format!("{a:?} {context:?}").contains("hunter2"));
    let b = reader.read_section::<PowerOptions>("power b").unwrap();
    assert_eq!(b.problems[0].to_string(), "core.conf:6: [power b] type: expected text; this option is required");
    assert_eq!(
        b.problems[1].to_string(),
        "core.conf:7: [power b] password: expected a secret for `{secrets.no.thing}` in the secrets file"
    );
}

#[test]
fn sections_have_other_names_and_the_first_wins() {
    let loaded = document("[server]\n[spoolman]\nsync_rate: 7\n");
    let context = Context::default();
    let mut reader = Reader::new(&loaded.document, &context);
    let entry = reader.read::<SpoolOptions>().unwrap();
    assert_eq!((entry.section.as_str(), entry.name.as_str(), entry.options.unwrap().sync_rate), ("spoolman", "", 7));
    assert!(reader.read::<EmptyOptions>().is_none());
    assert_eq!(reader.read_or_default::<EmptyOptions>(), EmptyOptions {});

    let loaded = document("[server]\n[spoolman]\n[spool]\nsync_rate: 8\n");
    let mut reader = Reader::new(&loaded.document, &context);
    assert_eq!(reader.read_or_default::<SpoolOptions>().sync_rate, 8);
    assert_eq!(unparsed(&loaded.document, &reader.usage).len(), 2);
}

#[test]
fn inherited_options_count() {
    let loaded = document("[DEFAULT]\nport: 81\n[server]\n");
    let context = Context::default();
    let mut reader = Reader::new(&loaded.document, &context);
    assert_eq!(reader.read_or_default::<ServerOptions>().port, 81);
    assert_eq!(unparsed(&loaded.document, &reader.usage), [""; 0]);
}

#[test]
fn options_with_free_names_are_read_by_prefix() {
    let loaded = document("[server]\n[sensor a]\nparameter_x:\n  units=kW\nparameter_y: =\nother: 1\n");
    let context = Context::default();
    let mut reader = Reader::new(&loaded.document, &context);
    let parameters: Vec<(String, Dictionary)> = reader.read_prefixed("sensor a", "parameter_");
    assert_eq!(parameters.len(), 1);
    assert_eq!((parameters[0].0.as_str(), parameters[0].1.0["units"].as_str()), ("x", "kW"));
    assert_eq!(
        reader.problems[0].to_string(),
        "core.conf:5: [sensor a] parameter_y: expected a dictionary, one `key=value` per line, found `=`"
    );
}

#[test]
fn components_add_their_own_faults_and_warnings() {
    let loaded = document("[server]\nport: 1\n");
    let context = Context::default();
    let mut reader = Reader::new(&loaded.document, &context);
    reader.reject("server", "port", "expected a port other than ssl_port");
    reader.warn("server", "ssl_port", "not set");
    reader.warn("ldap", "host", "not set");
    assert_eq!(reader.problems[0].to_string(), "core.conf:2: [server] port: expected a port other than ssl_port");
    assert_eq!(reader.warnings[0].to_string(), "core.conf:1: [server] ssl_port: not set");
    assert_eq!(reader.warnings[1].to_string(), "core.conf: [ldap] host: not set");
}

#[test]
fn sections_describe_themselves() {
    let doc = ServerOptions::describe();
    assert_eq!((doc.name, doc.text.as_str()), ("server", "How the server listens.\n\nA second paragraph."));
    let port = &doc.options[1];
    assert_eq!((port.name, port.default.as_str(), port.required), ("port", "7125", false));
    assert_eq!(port.kind, "a whole number from 0 to 65535, at least 1");
    assert_eq!(doc.options[3].default, "{data_path}/certs");
    let doc = PowerOptions::describe();
    assert_eq!((doc.name, doc.aliases), ("power <name>", &["plug <name>"][..]));
    assert_eq!((doc.options[0].name, doc.options[0].required), ("type", true));
    assert_eq!(doc.options[3].default, "a, b");
}

#[test]
fn the_reference_is_one_table_per_section() {
    let page = crate::reference(&[SpoolOptions::describe(), ServerOptions::describe(), EmptyOptions::describe()]);
    for part in [
        "# Configuration reference\n",
        "\n## [spool]\n\nAlso accepted: `[spoolman]`.\n\n| Option | Type | Default | Meaning |\n|---|---|---|---|\n| `sync_rate` | a whole number, 0 or more, at least 1 | `5` |  |\n",
        "| `host` | text | `0.0.0.0` | Bind address; `all` means both \\| families. |\n",
        "| `max_login_attempts` | a whole number, 0 or more, at least 1 | none | Log in attempts. |\n",
        "Firmware host socket. Also accepted: `klippy_uds_address`. |\n",
        "Warn. Former name: `enable_inotify_warnings`. |\n",
        "Old switch. Deprecated: use the command line. |\n",
        "\n## [history]\n\nNo options.\n",
    ] {
        assert!(page.contains(part), "{part}\nis not in\n{page}");
    }
    let table = page.lines().filter(|line| line.starts_with('|'));
    assert!(table.clone().count() > 10 && table.into_iter().all(|line| line.replace("\\|", "").matches('|').count() == 5));
    assert_eq!(page, crate::reference(&[SpoolOptions::describe(), ServerOptions::describe(), EmptyOptions::describe()]));
}
