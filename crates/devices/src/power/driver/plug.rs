//! Type `smartplug_a`: plugs that speak JSON behind a chained XOR on a port of their own (wire/3-devices.md section 2.5).

use std::io::ErrorKind;

use rpc::transfer::Boxed;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{Driver, Fault};
use crate::power::build::Section;
use crate::power::model::Reading;
use crate::power::options::{PlugOptions, PowerOptions, whole_seconds};

/// First key of the cipher.
const FIRST_KEY: u8 = 0xab;

/// Bytes of an answer of a plug. Strips with many sockets send some kilobytes.
const MAX_ANSWER: usize = 64 * 1024;

#[derive(Debug)]
pub(crate) struct Plug {
    address: String,
    port: u16,
    output: Option<u16>,
    /// Seconds that the plug waits before it goes off.
    delay: Option<u64>,
}

pub(crate) fn read(options: &PowerOptions, section: &mut Section<'_, '_, '_>) -> Option<Plug> {
    let plug = section.take::<PlugOptions>()?;
    let (mut address, mut output) = (plug.address.as_str(), plug.output_id);
    if let Some((host, number)) = plug.address.split_once('/') {
        match number.parse() {
            Ok(number) => (address, output) = (host, output.or(Some(number))),
            Err(_) => return section.reject("address", "expected the number of a socket after `/`"),
        }
        section.warn("address", "this form is deprecated: write the number of the socket as `output_id`");
    }
    if address.is_empty() {
        return section.reject("address", "expected the name or the address of the plug");
    }
    Some(Plug { address: address.to_owned(), port: plug.port, output, delay: options.timer.map(whole_seconds) })
}

impl Plug {
    async fn ask(&self, question: &Value) -> Result<Value, Fault> {
        let io = |error: std::io::Error| match error.kind() {
            ErrorKind::UnexpectedEof => Fault::new("the plug broke its answer off"),
            _ => Fault::new(format!("no connection to the plug: {error}")),
        };
        let mut stream = TcpStream::connect((self.address.as_str(), self.port)).await.map_err(io)?;
        stream.write_all(&seal(question.to_string().as_bytes())).await.map_err(io)?;
        let length = stream.read_u32().await.map_err(io)? as usize;
        if length > MAX_ANSWER {
            return Err(Fault::new(format!("the answer of the plug is larger than {MAX_ANSWER} bytes")));
        }
        let mut answer = vec![0; length];
        stream.read_exact(&mut answer).await.map_err(io)?;
        let _ = stream.shutdown().await;
        serde_json::from_slice(&open(&answer)).map_err(|_| Fault::new("the answer of the plug is no JSON"))
    }

    async fn socket(&self) -> Result<(bool, Option<String>), Fault> {
        read_socket(&self.ask(&info()).await?, self.output)
    }

    async fn command(&self, command: Value, id: Option<&String>) -> Result<Value, Fault> {
        self.ask(&addressed(command, id)).await
    }
}

/// The question for everything that a plug knows of itself.
pub(super) fn info() -> Value {
    json!({"system": {"get_sysinfo": {}}})
}

/// State and id of a socket in the answer; the id belongs to sockets of strips.
pub(super) fn read_socket(answer: &Value, output: Option<u16>) -> Result<(bool, Option<String>), Fault> {
    let info = &answer["system"]["get_sysinfo"];
    let Some(output) = output else {
        return Ok((number(&info["relay_state"], "relay_state")? == 1, None));
    };
    let child = info["children"].get(usize::from(output)).ok_or_else(|| no_socket(output))?;
    let id = child["id"].as_str().ok_or_else(|| missing("id"))?;
    Ok((number(&child["state"], "state")? == 1, Some(id.to_owned())))
}

/// The command that switches.
pub(super) fn relay(on: bool) -> Value {
    json!({"system": {"set_relay_state": {"state": u8::from(on)}}})
}

/// Whether it did.
pub(super) fn read_relay(answer: &Value) -> Result<(), Fault> {
    accepted(&answer["system"]["set_relay_state"]["err_code"], "err_code")
}

/// A command for one socket of a strip.
pub(super) fn addressed(mut command: Value, id: Option<&String>) -> Value {
    if let Some(id) = id {
        command["context"] = json!({"child_ids": [id]});
    }
    command
}

/// A code of an answer: zero is success.
pub(super) fn accepted(code: &Value, name: &str) -> Result<(), Fault> {
    match number(code, name)? {
        0 => Ok(()),
        code => Err(Fault::new(format!("the plug refused with code {code}"))),
    }
}

pub(super) fn no_socket(output: u16) -> Fault {
    Fault::new(format!("the plug has no socket {output}"))
}

impl Driver for Plug {
    fn query(&mut self) -> Boxed<'_, Result<Reading, Fault>> {
        Box::pin(async move { self.socket().await.map(|(is_on, _)| Reading::from(is_on)) })
    }

    fn switch(&mut self, on: bool) -> Boxed<'_, Result<bool, Fault>> {
        Box::pin(async move {
            let id = match self.output {
                Some(_) => self.socket().await?.1,
                None => None,
            };
            match self.delay.filter(|_| !on) {
                Some(delay) => {
                    self.command(json!({"count_down": {"delete_all_rules": null}}), id.as_ref()).await?;
                    let rule = json!({"enable": 1, "delay": delay, "act": 0, "name": "turn off"});
                    let answer = self.command(json!({"count_down": {"add_rule": rule}}), id.as_ref()).await?;
                    accepted(&answer["count_down"]["add_rule"]["err_code"], "err_code")?;
                }
                None => read_relay(&self.command(relay(on), id.as_ref()).await?)?,
            }
            Ok(on)
        })
    }

    fn has_timer(&self) -> bool {
        true
    }
}

fn number(value: &Value, name: &str) -> Result<i64, Fault> {
    value.as_i64().ok_or_else(|| missing(name))
}

pub(super) fn missing(name: &str) -> Fault {
    Fault::new(format!("the answer of the plug has no `{name}`"))
}

/// A frame: length, and each byte with the cipher of the one before it as key.
fn seal(plain: &[u8]) -> Vec<u8> {
    let mut key = FIRST_KEY;
    let sealed = plain.iter().map(|byte| {
        key ^= byte;
        key
    });
    (plain.len() as u32).to_be_bytes().into_iter().chain(sealed).collect()
}

/// The inverse, without the length.
fn open(sealed: &[u8]) -> Vec<u8> {
    let keys = [FIRST_KEY].into_iter().chain(sealed.iter().copied());
    sealed.iter().zip(keys).map(|(byte, key)| byte ^ key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::power::tests::emulators::{PlugEmulator, plug_frame, said_by_python_kasa};
    use proptest::prelude::*;

    fn plug(port: u16, output: Option<u16>, delay: Option<u64>) -> Plug {
        Plug { address: "127.0.0.1".into(), port, output, delay }
    }

    #[test]
    fn frames_are_those_of_the_vendor() {
        let sealed = seal(br#"{"system":{"get_sysinfo":{}}}"#);
        let expected = "0000001dd0f281f88bff9af7d5ef94b6d1b4c09fec95e68fe187e8caf08bf68bf6";
        assert_eq!(data_encoding::HEXLOWER.encode(&sealed), expected);
        assert_eq!(open(&sealed[4..]), br#"{"system":{"get_sysinfo":{}}}"#);
    }

    #[tokio::test]
    async fn a_plug_is_asked_and_switched() {
        let emulator = PlugEmulator::start(0).await;
        let mut plug = plug(emulator.port, None, None);
        assert_eq!(plug.query().await, Ok(Reading::Off));
        assert_eq!(plug.switch(true).await, Ok(true));
        assert_eq!(plug.query().await, Ok(Reading::On));
        assert_eq!(emulator.asked()[1], json!({"system": {"set_relay_state": {"state": 1}}}));
    }

    #[tokio::test]
    async fn one_socket_of_a_strip_is_switched() {
        let emulator = PlugEmulator::start(3).await;
        assert_eq!(plug(emulator.port, Some(1), None).switch(true).await, Ok(true));
        let states = [0, 1, 2].map(|socket| plug(emulator.port, Some(socket), None));
        let mut seen = Vec::new();
        for mut plug in states {
            seen.push(plug.query().await.unwrap());
        }
        assert_eq!(seen, [Reading::Off, Reading::On, Reading::Off]);
        assert_eq!(plug(emulator.port, Some(3), None).query().await, Err(Fault::new("the plug has no socket 3")));
    }

    #[tokio::test]
    async fn a_delay_is_left_to_the_plug() {
        let emulator = PlugEmulator::start(0).await;
        assert_eq!(plug(emulator.port, None, Some(5)).switch(false).await, Ok(false));
        let rule = json!({"enable": 1, "delay": 5, "act": 0, "name": "turn off"});
        assert_eq!(emulator.asked(), [json!({"count_down": {"delete_all_rules": null}}), json!({"count_down": {"add_rule": rule}})]);
    }

    /// The emulator is right when a client that others wrote for real plugs understands it.
    #[tokio::test]
    async fn another_client_understands_the_emulator() {
        const CLIENT: &str = "
import asyncio, sys
from kasa import DeviceConfig
from kasa.iot import IotPlug
async def main():
    plug = IotPlug('127.0.0.1', config=DeviceConfig('127.0.0.1', port_override=int(sys.argv[1])))
    await plug.update()
    before = plug.is_on
    await plug.turn_on()
    await plug.update()
    print(before, plug.is_on, plug.alias)
    await plug.disconnect()
asyncio.run(main())
";
        let emulator = PlugEmulator::start(0).await;
        let Some((said, failed)) = said_by_python_kasa(CLIENT, &[emulator.port]).await else { return };
        assert_eq!(said, "False True printer\n", "{failed}");
        assert_eq!(plug(emulator.port, None, None).query().await, Ok(Reading::On), "and we see what it did");
    }

    #[tokio::test]
    async fn answers_that_are_none_become_reasons() {
        for (answer, reason) in [
            (plug_frame(b"<html>"), "the answer of the plug is no JSON"),
            (plug_frame(br#"{"system":{"get_sysinfo":{}}}"#), "the answer of the plug has no `relay_state`"),
            (vec![0xff; 8], "the answer of the plug is larger than 65536 bytes"),
            (vec![0, 0, 0, 9, 1], "the plug broke its answer off"),
            (Vec::new(), "the plug broke its answer off"),
        ] {
            let emulator = PlugEmulator::that_answers(answer).await;
            assert_eq!(plug(emulator.port, None, None).query().await, Err(Fault::new(reason)));
        }
    }

    proptest! {
        #[test]
        fn what_is_sealed_opens(plain: Vec<u8>) {
            let sealed = seal(&plain);
            prop_assert_eq!(&sealed, &plug_frame(&plain));
            prop_assert_eq!(open(&sealed[4..]), plain);
        }
    }
}
