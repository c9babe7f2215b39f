//! Plugs with encrypted HTTP: an emulator that computes everything apart from the driver's code, the driver against it, and a client that
//! others wrote for real plugs against it.

use std::sync::Arc;

use aes::cipher::block_padding::Pkcs7;
use aes::cipher::{BlockModeDecrypt, BlockModeEncrypt, KeyIvInit};
use md5::{Digest, Md5};
use parking_lot::Mutex;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};
use serde_json::{Value, json};

use super::emulators::{Got, Reply, WebEmulator, plug_answer, said_by_python_kasa};
use super::rig::Rig;
use crate::power::Action;

/// What a plug of the emulator is like.
#[derive(Debug, Clone, Copy)]
struct Nature {
    /// Proofs that bind both seeds.
    is_second: bool,
    /// Methods with parameters instead of modules.
    knows_methods: bool,
    /// Zero is a single plug.
    sockets: usize,
    login: [&'static str; 2],
}

const TAPO: Nature = Nature { is_second: true, knows_methods: true, sockets: 0, login: ["anna@example.org", "hunter2"] };
const KASA: Nature = Nature { is_second: false, knows_methods: false, ..TAPO };

/// A session as the plug keeps it.
#[derive(Default)]
struct Held {
    local: Vec<u8>,
    is_proven: bool,
    number: Option<i32>,
}

struct Klap {
    web: WebEmulator,
    held: Arc<Mutex<Held>>,
    /// Questions in the clear.
    asked: Arc<Mutex<Vec<Value>>>,
}

const REMOTE: [u8; 16] = [9; 16];
const COOKIE: &str = "TP_SESSIONID=A0B1";

fn sha256(parts: &[&[u8]]) -> Vec<u8> {
    digest(&SHA256, &parts.concat()).as_ref().to_vec()
}

fn login_hash(nature: Nature) -> Vec<u8> {
    let [user, password] = nature.login.map(str::as_bytes);
    if nature.is_second {
        let sha1 = |text| digest(&SHA1_FOR_LEGACY_USE_ONLY, text).as_ref().to_vec();
        sha256(&[&sha1(user), &sha1(password)])
    } else {
        Md5::digest([Md5::digest(user), Md5::digest(password)].concat()).to_vec()
    }
}

impl Klap {
    async fn start(nature: Nature) -> Self {
        let (held, asked) = (Arc::<Mutex<Held>>::default(), Arc::<Mutex<Vec<Value>>>::default());
        let mut states = vec![false; nature.sockets.max(1)];
        let (session, seen) = (held.clone(), asked.clone());
        let web = WebEmulator::start(move |got: &Got| {
            let mut held = session.lock();
            let refused = |status| Reply::Raw(status, String::new(), String::new());
            let hash = login_hash(nature);
            let cookie = got.header("cookie");
            match got.target.as_str() {
                "/app/handshake1" if got.bytes.len() == 16 && got.method == "POST" => {
                    *held = Held { local: got.bytes.clone(), ..Held::default() };
                    let proof = if nature.is_second { sha256(&[&held.local, &REMOTE, &hash]) } else { sha256(&[&held.local, &hash]) };
                    Reply::Octets(format!("Set-Cookie: {COOKIE};TIMEOUT=86400\r\n"), [&REMOTE[..], &proof].concat())
                }
                "/app/handshake2" if cookie == Some(COOKIE) => {
                    let proof = if nature.is_second { sha256(&[&REMOTE, &held.local, &hash]) } else { sha256(&[&REMOTE, &hash]) };
                    held.is_proven = got.bytes == proof;
                    if held.is_proven { Reply::Octets(String::new(), Vec::new()) } else { refused(403) }
                }
                target if cookie == Some(COOKIE) && held.is_proven => {
                    let number: i32 = target.strip_prefix("/app/request?seq=").unwrap().parse().unwrap();
                    let derived = |purpose: &[u8]| sha256(&[purpose, &held.local, &REMOTE, &hash]);
                    let vector = derived(b"iv");
                    let first = i32::from_be_bytes(vector[28..].try_into().unwrap());
                    assert_eq!(number, held.number.unwrap_or(first) + 1, "numbers go up one by one");
                    let counted = number.to_be_bytes();
                    let (signature, sealed) = got.bytes.split_at(32);
                    assert_eq!(signature, sha256(&[&derived(b"ldk")[..28], &counted, sealed]));
                    let key: [u8; 16] = derived(b"lsk")[..16].try_into().unwrap();
                    let initial: [u8; 16] = [&vector[..12], &counted].concat().try_into().unwrap();
                    let plain = cbc::Decryptor::<aes::Aes128>::new(&key.into(), &initial.into()).decrypt_padded_vec::<Pkcs7>(sealed);
                    let question: Value = serde_json::from_slice(&plain.unwrap()).unwrap();
                    held.number = Some(number);
                    seen.lock().push(question.clone());
                    let answer = if nature.knows_methods {
                        method_answer(&question, nature.sockets, &mut states)
                    } else if question["method"].is_string() {
                        json!({"err_code": -1})
                    } else {
                        plug_answer(&question, nature.sockets, &mut states)
                    };
                    let answer = cbc::Encryptor::<aes::Aes128>::new(&key.into(), &initial.into())
                        .encrypt_padded_vec::<Pkcs7>(answer.to_string().as_bytes());
                    Reply::Octets(String::new(), [&[0; 32][..], &answer].concat())
                }
                _ => refused(403),
            }
        })
        .await;
        Self { web, held, asked }
    }

    /// As after a loss of power.
    fn forget(&self) {
        *self.held.lock() = Held::default();
    }

    fn handshakes(&self) -> usize {
        self.web.lines().iter().filter(|line| line.ends_with("handshake1")).count()
    }

    fn section(&self, lines: &str) -> String {
        format!("[power x]\ntype: smartplug_b\naddress: {}\n{lines}\n", self.web.address())
    }
}

fn method_answer(question: &Value, sockets: usize, states: &mut [bool]) -> Value {
    assert!(question["terminal_uuid"].is_string() && question["request_time_milis"].is_u64(), "{question}");
    let parameters = &question["params"];
    let wrong = json!({"error_code": -1008});
    match question["method"].as_str().unwrap() {
        "get_device_info" if sockets == 0 => json!({"error_code": 0, "result": {"device_id": "00", "device_on": states[0]}}),
        "get_device_info" => json!({"error_code": 0, "result": {"device_id": "00"}}),
        "set_device_info" => match parameters["device_on"].as_bool() {
            Some(on) => {
                states[0] = on;
                json!({"error_code": 0})
            }
            None => wrong,
        },
        "get_child_device_list" => {
            // Not in the order of their places.
            let child = |number: usize| json!({"device_id": format!("00{number}"), "device_on": states[number], "slot_number": number + 1});
            json!({"error_code": 0, "result": {"child_device_list": (0..sockets).rev().map(child).collect::<Vec<_>>(), "start_index": 0, "sum": sockets}})
        }
        "control_child" => {
            let chosen: usize = parameters["device_id"].as_str().unwrap().parse().unwrap();
            assert_eq!(parameters["requestData"]["method"], "set_device_info");
            states[chosen] = parameters["requestData"]["params"]["device_on"].as_bool().unwrap();
            json!({"error_code": 0, "result": {"responseData": {"error_code": 0}}})
        }
        _ => wrong,
    }
}

const LOGIN: &str = "user: anna@example.org\npassword: {secrets.plug.password}";

#[tokio::test]
async fn plugs_of_every_kind_are_asked_and_switched() {
    let strip = |nature| Nature { sockets: 3, ..nature };
    let late = Nature { knows_methods: false, ..TAPO };
    for (nature, lines) in [(TAPO, ""), (KASA, ""), (late, ""), (strip(TAPO), "output_id: 1"), (strip(KASA), "output_id: 1")] {
        let plug = Klap::start(nature).await;
        let rig = Rig::start(&plug.section(&format!("{LOGIN}\n{lines}")));
        assert_eq!(rig.problems, Vec::<String>::new());
        rig.until("off").await;
        assert_eq!((rig.switch("x", Action::On).await, rig.query("x").await), (Ok("on"), "on"), "{nature:?}");
        assert_eq!((rig.switch("x", Action::Toggle).await, rig.query("x").await), (Ok("off"), "off"), "{nature:?}");
        assert_eq!(plug.handshakes(), 1, "one session serves for all");
        let shown = format!("{:?}", plug.web.got());
        assert!(!shown.contains("hunter2") && !shown.contains("anna"), "{shown}");
        rig.stop().await;
    }
}

#[tokio::test]
async fn only_the_chosen_socket_is_switched() {
    let plug = Klap::start(Nature { sockets: 3, ..TAPO }).await;
    let rig = Rig::start(&plug.section(&format!("{LOGIN}\noutput_id: 2")));
    rig.until("off").await;
    rig.switch("x", Action::On).await.unwrap();
    let told = plug.asked.lock().iter().rfind(|question| question["method"] == "control_child").cloned().unwrap();
    assert_eq!(told["params"]["device_id"], "002");
    let absent = Rig::start(&plug.section(&format!("{LOGIN}\noutput_id: 3")));
    assert_eq!(absent.fault().await, "the plug has no socket 3");
}

#[tokio::test]
async fn a_plug_that_forgot_its_session_is_greeted_anew() {
    let plug = Klap::start(TAPO).await;
    let rig = Rig::start(&plug.section(LOGIN));
    rig.until("off").await;
    plug.forget();
    assert_eq!((rig.query("x").await, plug.handshakes()), ("off", 2));
    plug.forget();
    assert_eq!((rig.switch("x", Action::On).await, rig.told()), (Ok("on"), vec!["x off".to_owned(), "x on".to_owned()]));
}

#[tokio::test]
async fn plugs_without_account_need_no_login() {
    for login in [["", ""], ["kasa@tp-link.net", "kasaSetup"], ["test@tp-link.net", "test"]] {
        for nature in [TAPO, KASA] {
            let plug = Klap::start(Nature { login, ..nature }).await;
            Rig::start(&plug.section("")).until("off").await;
            Rig::start(&plug.section(LOGIN)).until("off").await;
        }
    }
}

#[tokio::test]
async fn answers_that_are_none_become_reasons_and_pass() {
    let plug = Klap::start(TAPO).await;
    let wrong = Rig::start(&plug.section("user: anna@example.org\npassword: Hunter2"));
    assert_eq!(wrong.fault().await, "the plug has another login: check `user` and `password`, capitals count");
    type Answer = fn(&Got) -> Reply;
    let cases: [(Answer, &str); 6] = [
        (|_| Reply::Raw(200, String::new(), "<html>".into()), "this is no plug that speaks KLAP"),
        (|_| Reply::Octets(String::new(), vec![1; 47]), "this is no plug that speaks KLAP"),
        (|_| Reply::Octets(String::new(), vec![1; 48]), "the plug has another login: check `user` and `password`, capitals count"),
        (|_| Reply::Raw(404, String::new(), String::new()), "the device does not know the address that was asked (status 404)"),
        (|_| Reply::Raw(302, "Location: http://127.0.0.1:1/\r\n".into(), String::new()), "the device redirects to another address"),
        (|_| Reply::Silence, "no answer within 0.5 s"),
    ];
    for (answer, reason) in cases {
        let web = WebEmulator::start(answer).await;
        let rig = Rig::start(&format!("[power x]\ntype: smartplug_b\ntimeout: 0.5\naddress: {}\n", web.address()));
        assert_eq!(rig.fault().await, reason);
    }
}

/// The emulator is right when a client that others wrote for real plugs understands it.
#[tokio::test]
async fn another_client_understands_the_emulator() {
    const CLIENT: &str = "
import asyncio, sys
from kasa import Credentials, DeviceConfig
from kasa.iot import IotPlug
from kasa.protocols import IotProtocol, SmartProtocol
from kasa.transports import KlapTransport, KlapTransportV2
async def main():
    def config(port):
        return DeviceConfig('127.0.0.1', port_override=int(port), credentials=Credentials('anna@example.org', 'hunter2'))
    tapo = SmartProtocol(transport=KlapTransportV2(config=config(sys.argv[1])))
    before = await tapo.query('get_device_info')
    await tapo.query({'set_device_info': {'device_on': True}})
    after = await tapo.query('get_device_info')
    print(before['get_device_info']['device_on'], after['get_device_info']['device_on'])
    await tapo.close()
    kasa = IotPlug('127.0.0.1', protocol=IotProtocol(transport=KlapTransport(config=config(sys.argv[2]))))
    await kasa.update()
    before = kasa.is_on
    await kasa.turn_on()
    await kasa.update()
    print(before, kasa.is_on, kasa.alias)
    await kasa.disconnect()
asyncio.run(main())
";
    let (tapo, kasa) = (Klap::start(TAPO).await, Klap::start(KASA).await);
    let Some((said, failed)) = said_by_python_kasa(CLIENT, &[tapo.web.port, kasa.web.port]).await else { return };
    assert_eq!(said, "False True\nFalse True printer\n", "{failed}");
    for plug in [&tapo, &kasa] {
        Rig::start(&plug.section(LOGIN)).until("on").await;
    }
}
