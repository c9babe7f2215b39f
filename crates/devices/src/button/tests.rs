//! Buttons at simulated lines, among them those of docs/buttons.md, with a server that notes what it is asked.

use std::sync::Arc;
use std::time::Duration;

use config::{Context, Reader};
use parking_lot::Mutex;
use rpc::{Access, ConnectionKind, Connections, Dispatcher, Identity, Registry};
use runtime::{Supervisor, TaskTracker};
use serde_json::{Map, Value, json};
use tokio::sync::Notify;

use super::{Buttons, ConfiguredButton, Parts};
use crate::gpio::simulated::SimulatedChips;
use crate::gpio::{Gpio, Pin};
use crate::script::Scripts;

const RECIPES: &str = include_str!("../../../../docs/buttons.md");

/// Longer than all debounce periods here. Time is simulated.
const SETTLED: Duration = Duration::from_millis(250);

type Calls = Arc<Mutex<Vec<(String, Value)>>>;

/// Where the method `test.slow` waits.
#[derive(Default)]
struct Gate {
    entered: Notify,
    open: Notify,
}

struct Rig {
    chips: SimulatedChips,
    gpio: Gpio,
    calls: Calls,
    gate: Arc<Gate>,
    print_state: Arc<Mutex<&'static str>>,
    warnings: Arc<Mutex<Vec<String>>>,
    connection: rpc::connection::Registered,
    supervisor: Supervisor,
    _dispatcher: Arc<Dispatcher>,
}

impl Rig {
    async fn start(text: &str) -> Self {
        let loaded = config::load_text("core.conf", text);
        let context = Context::default();
        let mut reader = Reader::new(&loaded.document, &context);
        let configured = ConfiguredButton::read(&mut reader, &context.secrets);
        assert!(reader.problems.is_empty() && reader.warnings.is_empty(), "{:?} {:?}", reader.problems, reader.warnings);
        assert_eq!(config::unparsed(&loaded.document, &reader.usage), [""; 0]);
        let (calls, print_state) = (Calls::default(), Arc::new(Mutex::new("standby")));
        let gate = Arc::<Gate>::default();
        let (dispatcher, supervisor) = (server(&calls, &print_state, &gate), Supervisor::new());
        let scripts = Scripts::new(supervisor.stop_token().clone());
        scripts.connect(&dispatcher);
        let connections = Arc::new(Connections::default());
        let connection = connections.register(ConnectionKind::Unix, Identity::Local, None);
        let chips = SimulatedChips::default();
        let gpio = Gpio::new(Arc::new(chips.clone()));
        let warnings = Arc::new(Mutex::new(Vec::new()));
        let shown = warnings.clone();
        let warn = Arc::new(move |part: &str, fault: Option<String>| shown.lock().push(fault.unwrap_or_else(|| format!("{part} is well"))));
        Buttons::new(configured, Parts { gpio: gpio.clone(), scripts, connections, warn }).start(&supervisor);
        let rig = Self { chips, gpio, calls, gate, print_state, warnings, connection, supervisor, _dispatcher: dispatcher };
        rig.pass(SETTLED).await;
        rig
    }

    async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    /// Moves a line and waits until what follows has been done.
    async fn set(&self, pin: &str, level: bool) {
        self.chips.press(pin, level);
        self.pass(SETTLED).await;
    }

    /// Methods that were called since the last time, with their arguments.
    fn called(&self) -> Vec<(String, Value)> {
        std::mem::take(&mut self.calls.lock())
    }

    /// What clients were told since the last time.
    fn told(&self) -> Vec<Value> {
        let mut frames = Vec::new();
        self.connection.connection.outbox.take(&mut frames, usize::MAX);
        let messages = frames.iter().map(|frame| serde_json::from_slice::<Value>(frame).unwrap());
        messages.filter(|message| message["method"] == "notify_button_event").map(|message| message["params"][0].clone()).collect()
    }

    async fn stop(self) {
        assert!(self.supervisor.stop(Duration::from_secs(5)).await.is_clean());
    }
}

/// The methods that the recipes call.
fn server(calls: &Calls, print_state: &Arc<Mutex<&'static str>>, gate: &Arc<Gate>) -> Arc<Dispatcher> {
    let mut registry = Registry::default();
    for method in [
        "printer.emergency_stop",
        "printer.firmware_restart",
        "printer.print.pause",
        "printer.gcode.script",
        "machine.reboot",
        "machine.device_power.post_device",
    ] {
        registry.op(method).access(Access::Admin).answer(calls, move |calls, _, arguments: Map<String, Value>| {
            calls.lock().push((method.to_owned(), arguments.into()));
            Ok("ok")
        });
    }
    registry.op("printer.objects.query").access(Access::View).answer(print_state, |state, _, arguments: Map<String, Value>| {
        assert!(arguments["objects"].get("print_stats").is_some());
        Ok(json!({"eventtime": 1.0, "status": {"print_stats": {"state": *state.lock()}}}))
    });
    registry.op("test.slow").access(Access::View).handle(gate, |gate, _, (): ()| async move {
        gate.entered.notify_one();
        gate.open.notified().await;
        Ok("ok")
    });
    Arc::new(Dispatcher { operations: Arc::new(registry.build().unwrap()), tasks: TaskTracker::new() })
}

/// The blocks of configuration in the documentation.
fn recipes() -> String {
    let blocks = RECIPES.split("```ini\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.collect::<Vec<_>>().join("\n")
}

fn call(method: &str, arguments: Value) -> (String, Value) {
    (method.to_owned(), arguments)
}

#[tokio::test(start_paused = true)]
async fn the_recipes_of_the_documentation_do_what_it_says() {
    let rig = Rig::start(&recipes()).await;
    for line in ["gpio20", "gpio21", "gpio22", "gpio24", "gpio26"] {
        // With a pull-up: high, and not pressed.
        rig.set(line, true).await;
    }
    rig.called();

    rig.set("gpio26", false).await;
    assert_eq!(rig.called(), [call("printer.emergency_stop", json!({}))]);

    *rig.print_state.lock() = "printing";
    rig.set("gpio20", false).await;
    assert_eq!(rig.called(), []);
    rig.set("gpio20", true).await;
    *rig.print_state.lock() = "complete";
    rig.set("gpio20", false).await;
    assert_eq!(rig.called(), [call("machine.device_power.post_device", json!({"device": "psu", "action": "off"}))]);

    rig.set("gpio21", false).await;
    rig.set("gpio21", true).await;
    assert_eq!(rig.called(), [call("printer.firmware_restart", json!({}))]);
    rig.set("gpio21", false).await;
    rig.pass(Duration::from_secs(3)).await;
    rig.set("gpio21", true).await;
    assert_eq!(rig.called(), [call("machine.reboot", json!({}))]);

    for (pause, expected) in [(2, 0), (2, 0), (0, 1), (2, 0)] {
        rig.pass(Duration::from_secs(pause)).await;
        rig.set("gpio22", false).await;
        rig.set("gpio22", true).await;
        let called = rig.called();
        assert_eq!(called.len(), expected, "{called:?}");
        assert!(called.iter().all(|(_, arguments)| *arguments == json!({"device": "light", "action": "toggle"})));
    }

    *rig.print_state.lock() = "printing";
    rig.set("gpio23", true).await;
    assert_eq!(rig.called(), [call("printer.print.pause", json!({}))]);
    rig.set("gpio23", false).await;
    *rig.print_state.lock() = "paused";
    rig.set("gpio23", true).await;
    assert_eq!(rig.called(), []);
    let told: Vec<_> = rig.told().iter().map(|told| (told["name"].clone(), told["aux"].clone())).collect();
    let door = |aux: Value| (json!("door"), aux);
    assert_eq!(
        told,
        [door(json!({"door": "open", "times": 1})), door(json!({"door": "closed"})), door(json!({"door": "open", "times": 2}))]
    );

    rig.pass(Duration::from_secs(1)).await;
    rig.set("gpio24", false).await;
    assert_eq!(rig.called(), [call("printer.gcode.script", json!({"script": "LOAD_FILAMENT SPEED=5"}))]);
    assert_eq!(*rig.warnings.lock(), [""; 0]);
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn clients_are_told_once_for_each_event() {
    let text = "[button a b]\npin: gpio4\non_press:\n  {send_notification()}{send_notification('again')}\n  { raise_error('later') }\non_release: {send_notification(data=[event.pressed, user_data])}\n";
    let rig = Rig::start(text).await;
    rig.set("gpio4", true).await;
    rig.set("gpio4", false).await;
    let told = rig.told();
    assert_eq!((told.len(), &told[0]["name"], &told[0]["type"], &told[0]["aux"]), (2, &json!("b"), &json!("gpio"), &Value::Null));
    assert_eq!(told[1]["aux"], json!([false, {}]));
    let (press, release) = (&told[0]["event"], &told[1]["event"]);
    assert_eq!((&press["pressed"], &release["pressed"]), (&json!(true), &json!(false)));
    let seconds = |value: &Value| value.as_f64().unwrap();
    assert!((seconds(&release["elapsed_time"]) - 0.25).abs() < 0.01, "{release}");
    assert!(seconds(&press["render_time"]) > 0.0 && seconds(&press["received_time"]) <= seconds(&press["render_time"]), "{press}");
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn spikes_and_hasty_changes_do_nothing() {
    let text = "[button a]\npin: gpio4\nminimum_event_time: 2\non_press: {send_notification('press')}\non_release: {send_notification('release')}\n";
    let rig = Rig::start(text).await;
    let aux = || rig.told().iter().map(|told| told["aux"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    rig.pass(Duration::from_secs(2)).await;
    rig.chips.press("gpio4", true);
    rig.pass(Duration::from_millis(20)).await;
    rig.set("gpio4", false).await;
    assert_eq!(aux(), [""; 0], "a spike");
    rig.set("gpio4", true).await;
    rig.set("gpio4", false).await;
    assert_eq!(aux(), ["press"], "the release came too soon, and restarts the clock");
    rig.set("gpio4", true).await;
    rig.pass(Duration::from_secs(2)).await;
    rig.set("gpio4", false).await;
    assert_eq!(aux(), ["release"]);
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_template_that_fails_harms_nothing_else() {
    let text = "[button bad]\npin: gpio1\non_press:\n  {% do user_data.update({'n': user_data.get('n', 0) + 1}) %}\n  {% do send_notification(user_data.n) %}\n  { call_method('no.such.method') }\n[button big]\npin: gpio2\non_press:\n  {% do send_notification(user_data|length) %}\n  {% do user_data.update({'text': 'x' * 300000}) %}\n  {% do call_method('printer.gcode.script', script='reached') %}\n[button good]\npin: gpio3\non_press: {send_notification('x' * 70000)}\non_release: {send_notification('fine')}\n";
    let rig = Rig::start(text).await;
    for _ in 0..2 {
        for pin in ["gpio1", "gpio2", "gpio3"] {
            rig.set(pin, true).await;
            rig.set(pin, false).await;
        }
    }
    let told: Vec<_> = rig.told().iter().map(|told| format!("{} {}", told["name"].as_str().unwrap(), told["aux"])).collect();
    assert_eq!(told, ["bad 1", "big 0", "good \"fine\"", "bad 2", "big 0", "good \"fine\""]);
    assert_eq!(rig.called().len(), 2);
    rig.stop().await;
}

/// The clock runs here: a simulated one stands still while a template waits.
#[tokio::test]
async fn events_of_a_button_wait_for_each_other_and_for_nobody_else() {
    let text = "[button slow]\npin: gpio1\ndebounce_period: 0.01\non_press: { call_method('test.slow') }\non_release: {send_notification('up')}\n[button other]\npin: gpio2\ndebounce_period: 0.01\non_press: {send_notification('other')}\n";
    let rig = Rig::start(text).await;
    let first = async |told: &str| {
        while !rig.told().iter().any(|message| message["aux"] == told) {
            rig.pass(Duration::from_millis(5)).await;
        }
    };
    rig.chips.press("gpio1", true);
    rig.gate.entered.notified().await;
    rig.set("gpio1", false).await;
    rig.chips.press("gpio2", true);
    first("other").await;
    assert_eq!(rig.told(), [json!(null); 0], "the release waits");
    rig.gate.open.notify_one();
    first("up").await;
    rig.chips.press("gpio1", true);
    rig.gate.entered.notified().await;
    // Does not wait for the template, whose gate stays closed.
    rig.stop().await;
}

#[test]
fn too_many_waiting_events_are_lost() {
    let (sender, mut events) = tokio::sync::mpsc::channel(super::listener::MAX_WAITING);
    let (queue, now) = (super::listener::Queue(sender), tokio::time::Instant::now());
    for n in 0..20_u32 {
        queue.add("b", super::debounce::Change { is_pressed: n.is_multiple_of(2), at: now, elapsed: Duration::from_secs(n.into()) });
    }
    drop(queue);
    let kept = std::iter::from_fn(|| events.try_recv().ok()).map(|change| change.elapsed.as_secs());
    assert_eq!(kept.collect::<Vec<_>>(), (0..16).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_line_that_cannot_be_used_is_shown_and_asked_for_again() {
    let text = "[button a]\npin: gpio4\non_press: {send_notification()}\n";
    let rig = Rig::start(text).await;
    for n in 0_u32..1200 {
        rig.chips.press("gpio4", n.is_multiple_of(2));
        rig.pass(Duration::from_millis(1)).await;
    }
    assert!(rig.warnings.lock()[0].starts_with("[button a] The line cannot be used: more than 500 changes"), "{:?}", rig.warnings.lock());
    // While it rests the line is free.
    let other = rig.gpio.claim(&Pin::read("gpio4").unwrap()).unwrap();
    rig.pass(Duration::from_secs(61)).await;
    assert_eq!(rig.warnings.lock()[1..], ["[button a] The line cannot be used: the line gpiochip0/gpio4 is used by another section"]);
    drop(other);
    rig.pass(Duration::from_secs(6)).await;
    assert_eq!(rig.warnings.lock()[2..], ["button a is well"]);
    rig.told();
    rig.set("gpio4", false).await;
    rig.set("gpio4", true).await;
    assert_eq!(rig.told().len(), 1);
    rig.stop().await;
}
