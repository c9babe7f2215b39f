//! Functions, objects, kept variables, secrets: what the caller puts in, and what comes out in errors and logs.

#![allow(clippy::unwrap_used, clippy::panic)]

use serde_json::{Value, json};
use template::{Answer, Call, Context, ErrorKind, Expression, Failure, Host, NoHost, Object, Template};

/// Answers like a power device's HTTP request and like the operations of the server; remembers what was called.
#[derive(Default)]
struct Recorder {
    calls: Vec<Value>,
    log: Vec<String>,
}

const REQUEST: Object = Object { id: 1, kind: "http_request" };
const RESPONSE: Object = Object { id: 2, kind: "http_response" };

impl Host for Recorder {
    fn call(&mut self, call: &Call<'_>) -> Result<Answer, Failure> {
        self.calls.push(json!([call.object.map(|object| object.kind), call.name, call.positional, call.named]));
        match (call.object, call.name) {
            (None, "call_method") => {
                let (method, parameters) = call.method()?;
                if method == "no.such" {
                    return Err(Failure::new(404, format!("No method {method} available")));
                }
                Ok(json!({ "method": method, "parameters": parameters }).into())
            }
            (None, "set_result") => call.arguments(["name", "value"]).map(|_| Value::Null.into()),
            (Some(object), "send") if *object == REQUEST => Ok(Answer::Object(RESPONSE)),
            (Some(object), "json") if *object == RESPONSE => Ok(json!({ "ison": true }).into()),
            (Some(_), "set_url") => Ok(Value::Null.into()),
            _ => Err(Failure::new(400, format!("there is no `{}`", call.name))),
        }
    }

    fn attribute(&mut self, object: &Object, name: &str) -> Result<Option<Answer>, Failure> {
        Ok((*object == RESPONSE && name == "status_code").then(|| json!(200).into()))
    }

    fn log_debug(&mut self, message: &str) {
        self.log.push(message.to_owned());
    }
}

fn secrets() -> config::Secrets {
    config::Secrets::parse("core.secrets", br#"{"mqtt": {"password": "hunter2", "user": "me", "pin": 4711}}"#).0
}

fn context() -> Context {
    Context::new(&secrets())
        .with("command", "on")
        .with("urls", json!({ "on": "http://x/on" }))
        .with_function("call_method")
        .with_function("set_result")
        .with_object("http_request", REQUEST)
}

fn render(source: &str) -> (Result<String, template::Error>, Recorder) {
    let mut host = Recorder::default();
    let result = Template::compile(source).and_then(|template| template.render(&mut context(), &mut host));
    (result, host)
}

#[test]
fn call_method_takes_names_or_a_dictionary() {
    for source in
        ["call_method('a.b', x=1, y=[none])", "call_method('a.b', {'x': 1, 'y': [none]})", "call_method('a.b', {'x': 1}, y=[none])"]
    {
        let (text, _) = render(&format!("{{% set r = {source} %}}{{r.method}} {{r.parameters|tojson}}"));
        assert_eq!(text.unwrap(), r#"a.b {"x": 1, "y": [null]}"#);
    }
    for source in ["call_method()", "call_method(5)", "call_method('a', 5)", "call_method('a', {}, 3)"] {
        let error = render(&format!("{{{source}}}")).0.unwrap_err();
        assert_eq!((error.kind, error.status()), (ErrorKind::Host(400), 400));
        assert!(error.message.starts_with("call_method: expected"), "{error}");
    }
    let error = render("x\n{call_method('no.such')}").0.unwrap_err();
    assert_eq!((error.to_string().as_str(), error.status()), ("line 2: No method no.such available", 404));
}

#[test]
fn objects_stay_with_the_caller() {
    let source = "{% do http_request.set_url(urls[command]) %}{% set resp = http_request.send(attempts=2) %}
        {% if resp.status_code == 200 and resp.json()['ison'] %}on{% else %}off{% endif %}{resp.nothing}";
    let (text, host) = render(source);
    assert_eq!(text.unwrap(), "on");
    let expected = json!([
        ["http_request", "set_url", ["http://x/on"], {}],
        ["http_request", "send", [], { "attempts": 2 }],
        ["http_response", "json", [], {}],
    ]);
    assert_eq!(Value::from(host.calls), expected);
    assert_eq!(render("{http_request.fly()}").0.unwrap_err().message, "there is no `fly`");
    assert!(render("{set_result('a', unknown)}").0.unwrap_err().message.contains("undefined"));
    assert!(render("{set_result('a', 1, 2)}").0.unwrap_err().message.contains("at most 2"));
    assert!(render("{set_result('a', name=2)}").0.unwrap_err().message.contains("twice"));
}

#[test]
fn kept_variables_change_and_others_do_not() {
    let template =
        Template::compile("{% do user_data.__setitem__('n', user_data.get('n', 0) + 1) %}{% do event.update(x=1) %}{user_data.n}").unwrap();
    let mut context = Context::default().with_kept("user_data", json!({})).with("event", json!({}));
    for expected in ["1", "2", "3"] {
        assert_eq!(template.render(&mut context, &mut NoHost).unwrap(), expected);
    }
    assert_eq!(context.kept("user_data"), Some(&json!({ "n": 3 })));
    assert_eq!(context.kept("event"), None);
    let failing = Template::compile("{% do user_data.update(seen=true) %}{1 / 0}").unwrap();
    assert!(failing.render(&mut context, &mut NoHost).is_err());
    assert_eq!(context.kept("user_data"), Some(&json!({ "n": 3, "seen": true })), "an error does not undo what came before it");
    let cyclic = Template::compile("{% do user_data.update(me=user_data) %}").unwrap();
    assert!(cyclic.render(&mut context, &mut NoHost).unwrap_err().message.starts_with("`user_data` cannot be kept"));
}

#[test]
fn raise_error_carries_its_status() {
    for (source, status) in
        [("raise_error('stop')", 400), ("raise_error('stop', 409)", 409), ("raise_error(message='stop', code=503)", 503)]
    {
        let error = render(&format!("{{{source}}}")).0.unwrap_err();
        assert_eq!((error.kind, error.status(), error.message.as_str()), (ErrorKind::Raised(status), status, "stop"));
    }
    assert!(render("{raise_error('x', 200)}").0.unwrap_err().message.contains("400 to 599"));
    assert_eq!(render("{1 / 0}").0.unwrap_err().status(), 500);
}

#[test]
fn secrets_are_printed_but_never_told() {
    assert_eq!(render("{secrets.mqtt.user}:{secrets.mqtt.password}").0.unwrap(), "me:hunter2");
    for source in [
        "{raise_error('no entry with ' ~ secrets.mqtt.password)}",
        "{raise_error(secrets)}",
        "{raise_error('pin %d' % secrets.mqtt.pin)}",
        "{secrets.mqtt.password + 1}",
        "{secrets.mqtt.password()}",
        "{secrets[secrets.mqtt.password].x}",
        "{secrets.mqtt.password|fromjson}",
        "{'%d' % secrets.mqtt.password}",
        "{'{}{}'.format(secrets.mqtt.password)}",
        "{{}[secrets.mqtt.password].y}",
        "{'%(hunter2)s' % {}}",
        "{l|map(secrets.mqtt.password)|list}{[1]|map(secrets.mqtt.password)}",
        "{call_method(secrets.mqtt.password, 1)}",
    ] {
        let error = render(source).0.unwrap_err().to_string();
        assert!(!error.contains("hunter2") && !error.contains("4711"), "{source}: {error}");
    }
    let (_, host) = render("{log_debug('%s logs in with %s', secrets.mqtt.user, secrets.mqtt.password)}{log_debug('50%')}");
    assert_eq!(host.log, ["*** logs in with ***", "50%"]);
    assert!(!format!("{:?}", context()).contains("hunter2"));
}

#[test]
fn a_secret_that_does_not_exist_is_no_empty_text() {
    let message = |source: &str| render(source).0.unwrap_err().to_string();
    assert_eq!(message("\n\n x{secrets.mqtt.pasword}"), "line 1: there is no `mqtt.pasword` in the secrets file");
    assert_eq!(message("{secrets['nothing']}"), "line 1: there is no `nothing` in the secrets file");
    assert_eq!(message("{secrets.a.b}"), "line 1: `secrets.a` is undefined");
    assert_eq!(render("{secrets.mqtt.zz|default('x')}{secrets.get('zz', 'y')}{'z' if secrets.zz else 'n'}").0.unwrap(), "xyn");
}

#[test]
fn errors_name_the_option_and_the_line() {
    let template = Template::compile("a\n{% if true %}\n  {1 +\n 'x'}\n{% endif %}").unwrap().of("[button fan] on_press");
    let error = template.render(&mut Context::default(), &mut NoHost).unwrap_err();
    assert_eq!(error.to_string(), "[button fan] on_press, line 3: `+` cannot be used between a whole number and text");
    assert_eq!(Template::compile("a\n\n{% endif %}").unwrap_err().line, 3);
    let in_macro = Template::compile("{% macro m() %}\n{ [].pop() }\n{% endmacro %}\n\n{m()}").unwrap();
    assert_eq!(in_macro.render(&mut Context::default(), &mut NoHost).unwrap_err().line, 2);
}

#[test]
fn expressions_give_typed_values() {
    let mut context = Context::default().with("payload", r#"{"t": 21.5, "on": true}"#).with("limit", 20);
    for (source, expected) in [
        ("(payload|fromjson).t > limit", json!(true)),
        ("(payload|fromjson).t", json!(21.5)),
        ("payload|fromjson", json!({ "t": 21.5, "on": true })),
        ("[limit, (1, none)]", json!([20, [1, null]])),
        ("unknown", json!(null)),
        ("limit // 3, 'x'", json!([6, "x"])),
        ("{'a': range(2), 1: 2}", json!({ "a": [0, 1], "1": 2 })),
    ] {
        assert_eq!(Expression::compile(source).unwrap().evaluate(&mut context, &mut NoHost).unwrap(), expected, "{source}");
    }
    for source in ["", "1 2", "{1}}", "1 +", "%}"] {
        assert!(Expression::compile(source).is_err(), "{source}");
    }
    assert!(Expression::compile("range").unwrap().evaluate(&mut context, &mut NoHost).is_err());
}

config::options! {
    /// A device.
    struct Device: "device" {
        /// Name at the broker.
        user: template::Rendered = "",
        /// Word at the broker.
        password: Option<template::Rendered> = None,
        /// What to send.
        payload: Template = "{command}",
    }
}

fn read(text: &str) -> (Device, Vec<String>) {
    let loaded = config::load_text("core.conf", &format!("[server]\n[device]\n{text}"));
    let context = config::Context { data_path: "/data".into(), secrets: secrets(), ..config::Context::default() };
    let mut reader = config::Reader::new(&loaded.document, &context);
    let device = reader.read_or_default::<Device>();
    (device, reader.problems.iter().map(ToString::to_string).collect())
}

#[test]
fn options_are_templates() {
    let (device, problems) =
        read("user: {secrets.mqtt.user}@{data_path}\npassword: { secrets.mqtt.password ~ '!' }\npayload: P{command|upper}\n");
    assert_eq!(problems, [""; 0]);
    assert_eq!((device.user.expose(), device.password.as_ref().unwrap().expose()), ("me@/data", "hunter2!"));
    let mut context = Context::default().with("command", "on");
    assert_eq!(device.payload.render(&mut context, &mut NoHost).unwrap(), "PON");
    let shown = format!("{device:?} {}", json!(config::OptionSet::effective(&device)));
    assert!(!shown.contains("hunter2") && !shown.contains("me@"), "{shown}");
    assert!(shown.contains("secrets.mqtt.password"), "the source is shown: {shown}");
    assert_eq!(Device::default().payload.source(), "{command}");
}

#[test]
fn faulty_templates_are_faults_of_the_configuration() {
    let (_, problems) = read("user: {secrets.mqtt.nobody}\npassword: pass{word\npayload:\n  {% if %}\n");
    assert_eq!(
        problems,
        [
            "core.conf:3: [device] user: expected a template that can be rendered (line 1: there is no `mqtt.nobody` in the secrets file)",
            "core.conf:4: [device] password: expected a template (line 1: what is opened here is not closed: expected `}`)",
            "core.conf:5: [device] payload: expected a template (line 1: expected a value, found `%}`)",
        ]
    );
}

#[test]
fn the_examples_of_the_manual_compile() {
    let page = include_str!("../../../docs/templates.md");
    let examples: Vec<&str> = page.split("```jinja\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(examples.len(), 4);
    for example in &examples {
        Template::compile(example).unwrap();
    }
    let event = json!([{}, { "filename": "a.gcode", "print_duration": 3725.5 }]);
    let text = Template::compile(examples[3]).unwrap().render(&mut Context::default().with("event_args", event), &mut NoHost).unwrap();
    assert_eq!(text, "Printed a.gcode in 1:02 h");
}

#[test]
fn the_manual_names_every_filter_and_test() {
    let page = include_str!("../../../docs/templates.md");
    for (list, form) in [("**Filters**: ", "{x|NAME}"), ("**Tests**: ", "{x is NAME}")] {
        let names = page.split(list).nth(1).unwrap().split('.').next().unwrap();
        for name in names.split(',').map(str::trim) {
            Template::compile(&form.replace("NAME", name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
}
