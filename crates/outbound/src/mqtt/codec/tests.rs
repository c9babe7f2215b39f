use super::*;
use proptest::prelude::*;

fn options(version: Version) -> MqttOptions {
    let mut options = MqttOptions::to("h", 1);
    options.version = version;
    options.username = Some("u".into());
    options.password = Some("p".into());
    options.announce("w", "on", "off", Qos::AtLeastOnce)
}

fn connect_bytes(version: Version) -> Vec<u8> {
    let mut out = BytesMut::new();
    connect(&options(version), "id", 9, &mut out);
    out.to_vec()
}

#[test]
fn a_connect_is_what_the_standards_say() {
    // Clean session, will with QoS 1 retained, password, name.
    let tail = b"\x00\x02id\x00\x01w\x00\x03off\x00\x01u\x00\x01p";
    assert_eq!(connect_bytes(Version::V31), [b"\x10\x1e\x00\x06MQIsdp\x03\xee\x00\x3c", &tail[..]].concat());
    assert_eq!(connect_bytes(Version::V311), [b"\x10\x1c\x00\x04MQTT\x04\xee\x00\x3c", &tail[..]].concat());
    let five = [b"\x10\x23\x00\x04MQTT\x05\xee\x00\x3c\x05\x27\x00\x00\x00\x09\x00\x02id\x00", &tail[4..]].concat();
    assert_eq!(connect_bytes(Version::V5), five);
}

#[test]
fn an_answer_to_a_connect_says_what_the_broker_takes() {
    let body = Bytes::from_static(b"\x00\x00\x0c\x21\x00\x0a\x27\x00\x00\x10\x00\x24\x01\x25\x00");
    let Ok(Packet::ConnAck(answer)) = decode(Version::V5, 0x20, body) else { panic!() };
    let expected =
        ConnAck { receive_maximum: 10, maximum_packet: Some(4096), maximum_qos: Qos::AtLeastOnce, retain: false, ..ConnAck::default() };
    assert_eq!(answer, expected);
    let old = decode(Version::V311, 0x20, Bytes::from_static(b"\x00\x05")).unwrap();
    assert_eq!(old, Packet::ConnAck(ConnAck { reason: 5, ..ConnAck::default() }));
}

#[test]
fn subscriptions_carry_their_properties_only_in_version_five() {
    let mut out = BytesMut::new();
    put_subscribe(Version::V311, 7, &[("a/#".into(), Qos::ExactlyOnce)], &mut out);
    put_unsubscribe(Version::V5, 8, &["b".into()], &mut out);
    put_ping(&mut out);
    put_disconnect(&mut out);
    assert_eq!(&out[..], b"\x82\x08\x00\x07\x00\x03a/#\x02\xa2\x06\x00\x08\x00\x00\x01b\xc0\x00\xe0\x00");
}

#[test]
fn a_message_that_the_broker_would_not_take_is_not_written() {
    let message = Message { topic: "t".into(), payload: vec![0; 100].into(), qos: Qos::AtMostOnce, retain: false };
    let mut out = BytesMut::new();
    assert_eq!(put_publish(Version::V5, &message, 0, 100, &mut out), Err(MqttError::TooLarge(100)));
    assert!(out.is_empty());
}

proptest! {
    #[test]
    fn no_packet_breaks_it(first in any::<u8>(), body in prop::collection::vec(any::<u8>(), 0..100), five in any::<bool>()) {
        let _ = decode(if five { Version::V5 } else { Version::V311 }, first, body.clone().into());
        let _ = publish_head(first, &body);
    }
}
