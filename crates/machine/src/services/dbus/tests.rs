//! Against a bus of our own with a systemd and a logind of our own. Skipped, with a line that says so, where there is no `dbus-daemon`.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use parking_lot::Mutex as Lock;
use tempfile::TempDir;
use tokio::sync::mpsc;
use zbus::Variant;

use super::*;

/// Whatever a test waits for must happen within this time.
const DEADLINE: Duration = Duration::from_secs(20);

const CONFIG: &str = r#"<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN" "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>unix:path=SOCKET</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*"/><allow receive_sender="*"/><allow own="*"/></policy></busconfig>"#;

struct Bus {
    folder: TempDir,
    daemon: Child,
}

impl Bus {
    async fn start() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let config = CONFIG.replace("SOCKET", folder.path().join("bus").to_str().unwrap());
        std::fs::write(folder.path().join("config"), config).unwrap();
        let Some(daemon) = Self::daemon(&folder) else {
            println!("skipped: there is no dbus-daemon");
            return None;
        };
        let bus = Self { folder, daemon };
        bus.ready().await;
        Some(bus)
    }

    fn daemon(folder: &TempDir) -> Option<Child> {
        let config = format!("--config-file={}", folder.path().join("config").display());
        Command::new("dbus-daemon").args([&config, "--nofork", "--nopidfile"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("bus")
    }

    fn address(&self) -> String {
        format!("unix:path={}", self.socket().display())
    }

    async fn ready(&self) {
        timeout(DEADLINE, async {
            while std::os::unix::net::UnixStream::connect(self.socket()).is_err() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await
        .expect("the bus opens");
    }

    fn kill(&mut self) {
        self.daemon.kill().unwrap();
        self.daemon.wait().unwrap();
        let _ = std::fs::remove_file(self.socket());
    }

    fn provider(&self) -> Arc<Systemd> {
        Arc::new(Systemd::new(Some(self.address()), Arc::default()))
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

/// Our own systemd, logind and PolicyKit.
struct Mock {
    connection: Connection,
    calls: Arc<Lock<Vec<String>>>,
}

const KLIPPER: &str = "/org/freedesktop/systemd1/unit/klipper_2eservice";

fn row(name: &str, load: &str, path: &str) -> Row {
    let path = OwnedObjectPath::try_from(path).unwrap();
    (name.into(), "d".into(), load.into(), "active".into(), "running".into(), String::new(), path.clone(), 0, String::new(), path)
}

impl Mock {
    async fn start(bus: &Bus, names: &[&'static str]) -> Self {
        let connection = Builder::address(bus.address().as_str()).build().await.unwrap();
        let mut messages = MessageStream::from(&connection);
        let calls: Arc<Lock<Vec<String>>> = Arc::default();
        let (answering, noted) = (connection.clone(), calls.clone());
        tokio::spawn(async move {
            while let Some(Ok(message)) = messages.next().await {
                if message.message_type() == Type::MethodCall {
                    answer(&answering, &message, &noted).await;
                }
            }
        });
        for name in names {
            connection.request_name(*name).await.unwrap();
        }
        Self { connection, calls }
    }

    async fn change(&self, state: &str) {
        let changed =
            HashMap::from([("ActiveState", Variant::from(state)), ("SubState", Variant::from("dead")), ("Other", Variant::from(5u32))]);
        let body = (UNIT, changed, Vec::<&str>::new());
        self.connection.emit_signal(None::<&str>, KLIPPER, PROPERTIES, "PropertiesChanged", &body).await.unwrap();
    }
}

async fn answer(connection: &Connection, message: &Message, calls: &Arc<Lock<Vec<String>>>) {
    let header = message.header();
    let member = header.member().map(ToString::to_string).unwrap_or_default();
    let sent = match member.as_str() {
        "ListUnits" => {
            let rows =
                vec![row("klipper.service", "loaded", KLIPPER), row("a.device", "loaded", "/a"), row("gone.service", "not-found", "/b")];
            connection.reply(&header, &rows).await
        }
        "Get" => connection.reply(&header, &Variant::from("kvm")).await,
        "CheckAuthorization" => connection.reply(&header, &((true, false, HashMap::<&str, &str>::new()),)).await,
        "StartUnit" | "StopUnit" | "RestartUnit" => {
            let (unit, mode): (String, String) = message.body().deserialize().unwrap();
            if unit.starts_with("refused") {
                connection.reply_error(&header, "org.freedesktop.systemd1.NoSuchUnit", &"Unit refused.service not found.").await
            } else {
                calls.lock().push(format!("{member} {unit} {mode}"));
                connection.reply(&header, &OwnedObjectPath::try_from("/job").unwrap()).await
            }
        }
        "PowerOff" | "Reboot" | "Halt" => {
            calls.lock().push(member);
            connection.reply(&header, &()).await
        }
        _ => connection.reply(&header, &()).await,
    };
    sent.unwrap();
}

fn watching(provider: &Arc<Systemd>) -> (mpsc::UnboundedReceiver<News>, tokio::task::JoinHandle<ProviderError>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let provider = provider.clone();
    let task = tokio::spawn(async move { Provider::watch(&*provider, &move |news| drop(sender.send(news))).await });
    (receiver, task)
}

async fn next(news: &mut mpsc::UnboundedReceiver<News>) -> News {
    timeout(DEADLINE, news.recv()).await.expect("news in time").expect("the watch goes on")
}

#[tokio::test]
async fn services_are_listed_followed_and_started() {
    let Some(bus) = Bus::start().await else { return };
    let mock = Mock::start(&bus, &[SYSTEMD, POLKIT]).await;
    let provider = bus.provider();
    let (mut news, _task) = watching(&provider);
    let running = UnitState { active_state: "active".into(), sub_state: "running".into() };
    assert_eq!(next(&mut news).await, News::All(States::from([("klipper".to_owned(), running)])));
    mock.change("failed").await;
    let failed = UnitState { active_state: "failed".into(), sub_state: "dead".into() };
    assert_eq!(next(&mut news).await, News::One("klipper".to_owned(), failed));
    provider.act(Action::Restart, "klipper").await.unwrap();
    provider.act(Action::Stop, "klipper").await.unwrap();
    assert_eq!(*mock.calls.lock(), ["RestartUnit klipper.service replace", "StopUnit klipper.service replace"]);
    let refused = provider.act(Action::Start, "refused").await.unwrap_err();
    assert_eq!(refused, ProviderError::Failed("Unit refused.service not found.".to_owned()));
    assert_eq!(provider.virtualization().await, Virtualization::named("kvm"));
    assert!(provider.may("org.freedesktop.systemd1.manage-units").await.is_ok_and(|may| may));
}

#[tokio::test]
async fn power_goes_through_logind() {
    let Some(bus) = Bus::start().await else { return };
    let mock = Mock::start(&bus, &[LOGIND]).await;
    let provider = bus.provider();
    for action in [PowerAction::Reboot, PowerAction::Shutdown(ShutdownAction::Poweroff), PowerAction::Shutdown(ShutdownAction::Halt)] {
        provider.power(action).await.unwrap();
    }
    assert_eq!(*mock.calls.lock(), ["Reboot", "PowerOff", "Halt"]);
}

#[tokio::test]
async fn a_bus_that_goes_away_is_an_error_and_one_that_returns_is_used() {
    let Some(mut bus) = Bus::start().await else { return };
    let provider = bus.provider();
    assert!(matches!(provider.act(Action::Start, "klipper").await, Err(ProviderError::Lost(_))), "no systemd there");
    let _mock = Mock::start(&bus, &[SYSTEMD]).await;
    let (mut news, task) = watching(&provider);
    next(&mut news).await;
    bus.kill();
    assert!(matches!(timeout(DEADLINE, task).await.unwrap().unwrap(), ProviderError::Lost(_)));
    assert!(matches!(provider.act(Action::Start, "klipper").await, Err(ProviderError::Lost(_))));
    bus.daemon = Bus::daemon(&bus.folder).unwrap();
    bus.ready().await;
    let mock = Mock::start(&bus, &[SYSTEMD]).await;
    provider.act(Action::Start, "klipper").await.unwrap();
    assert_eq!(*mock.calls.lock(), ["StartUnit klipper.service replace"]);
}

#[test]
fn the_start_of_a_process_is_read_past_its_name() {
    assert_eq!(start_time("5 (a ) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20"), Some(4242));
    assert_eq!(start_time("5 (a"), None);
}
