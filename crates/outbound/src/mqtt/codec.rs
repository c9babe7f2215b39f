//! The packets: from bytes and to bytes. Knows no state.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::{Message, MqttError, MqttOptions, Qos, Version};

/// Bytes of an MQTT payload that we publish.
pub const MAX_PAYLOAD: usize = 8 * 1024 * 1024;

/// Seconds without anything from us after which the broker gives us up.
pub(super) const KEEP_ALIVE: u16 = 60;

/// Something that a broker sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Packet {
    ConnAck(ConnAck),
    Publish {
        message: Message,
        /// Zero for [`Qos::AtMostOnce`].
        id: u16,
    },
    /// A message that was too large and has been skipped; it is acknowledged all the same.
    Skipped {
        qos: Qos,
        id: u16,
    },
    PubAck {
        id: u16,
        reason: u8,
    },
    PubRec {
        id: u16,
        reason: u8,
    },
    PubRel {
        id: u16,
    },
    PubComp {
        id: u16,
        reason: u8,
    },
    SubAck {
        id: u16,
        reasons: Vec<u8>,
    },
    UnsubAck,
    PingResp,
    Disconnect {
        reason: u8,
    },
}

/// The broker's answer to a connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ConnAck {
    /// Zero: welcome.
    pub(super) reason: u8,
    /// How many of our messages may be unacknowledged.
    pub(super) receive_maximum: u16,
    /// Largest packet that the broker takes.
    pub(super) maximum_packet: Option<u32>,
    /// Highest QoS that the broker takes.
    pub(super) maximum_qos: Qos,
    /// Whether the broker keeps messages.
    pub(super) retain: bool,
    /// Another keep-alive time than ours.
    pub(super) keep_alive: Option<u16>,
}

impl Default for ConnAck {
    fn default() -> Self {
        Self { reason: 0, receive_maximum: u16::MAX, maximum_packet: None, maximum_qos: Qos::ExactlyOnce, retain: true, keep_alive: None }
    }
}

/// What breaks the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed(pub(super) &'static str);

// Types of packets.
const CONNECT: u8 = 1;
const CONNACK: u8 = 2;
pub(super) const PUBLISH: u8 = 3;
pub(super) const PUBACK: u8 = 4;
pub(super) const PUBREC: u8 = 5;
pub(super) const PUBREL: u8 = 6;
pub(super) const PUBCOMP: u8 = 7;
const SUBSCRIBE: u8 = 8;
const SUBACK: u8 = 9;
const UNSUBSCRIBE: u8 = 10;
const UNSUBACK: u8 = 11;
const PINGREQ: u8 = 12;
const PINGRESP: u8 = 13;
const DISCONNECT: u8 = 14;

/// What follows the fixed header, as a packet.
pub(super) fn decode(version: Version, first: u8, mut body: Bytes) -> Result<Packet, Malformed> {
    let body = &mut body;
    match first >> 4 {
        CONNACK => conn_ack(version, body).map(Packet::ConnAck),
        PUBLISH => publish(version, first, body),
        PUBACK => ack(body).map(|(id, reason)| Packet::PubAck { id, reason }),
        PUBREC => ack(body).map(|(id, reason)| Packet::PubRec { id, reason }),
        PUBREL => ack(body).map(|(id, _)| Packet::PubRel { id }),
        PUBCOMP => ack(body).map(|(id, reason)| Packet::PubComp { id, reason }),
        SUBACK => {
            let id = number(body)?;
            if version == Version::V5 {
                skip_properties(body)?;
            }
            Ok(Packet::SubAck { id, reasons: body.to_vec() })
        }
        UNSUBACK => Ok(Packet::UnsubAck),
        PINGRESP => Ok(Packet::PingResp),
        DISCONNECT if version == Version::V5 => Ok(Packet::Disconnect { reason: body.first().copied().unwrap_or(0) }),
        _ => Err(Malformed("a packet that brokers do not send")),
    }
}

/// QoS, packet number and where the body goes on, of a PUBLISH of which perhaps only the beginning is there; `None` when it is not enough.
pub(super) fn publish_head(first: u8, beginning: &[u8]) -> Result<Option<(Qos, u16)>, Malformed> {
    let qos = Qos::from_number(i64::from(first >> 1 & 3)).ok_or(Malformed("QoS 3"))?;
    let Some(length) = beginning.first_chunk::<2>() else { return Ok(None) };
    let at = 2 + usize::from(u16::from_be_bytes(*length));
    if qos == Qos::AtMostOnce {
        return Ok(Some((qos, 0)));
    }
    Ok(beginning.get(at..).and_then(<[u8]>::first_chunk::<2>).map(|id| (qos, u16::from_be_bytes(*id))))
}

fn publish(version: Version, first: u8, body: &mut Bytes) -> Result<Packet, Malformed> {
    let qos = Qos::from_number(i64::from(first >> 1 & 3)).ok_or(Malformed("QoS 3"))?;
    let topic = text(body)?;
    let id = if qos == Qos::AtMostOnce { 0 } else { number(body)? };
    if version == Version::V5 {
        skip_properties(body)?;
    }
    Ok(Packet::Publish { message: Message { topic, payload: body.split_to(body.len()), qos, retain: first & 1 == 1 }, id })
}

fn ack(body: &mut Bytes) -> Result<(u16, u8), Malformed> {
    let id = number(body)?;
    // Version 5 may leave out a reason of zero; older ones never have any.
    Ok((id, body.first().copied().unwrap_or(0)))
}

fn conn_ack(version: Version, body: &mut Bytes) -> Result<ConnAck, Malformed> {
    if body.len() < 2 {
        return Err(Malformed("a short CONNACK"));
    }
    body.advance(1);
    let mut answer = ConnAck { reason: body.get_u8(), ..ConnAck::default() };
    if version != Version::V5 || body.is_empty() {
        return Ok(answer);
    }
    let length = variable(body)?;
    if length > body.len() {
        return Err(Malformed("properties that go beyond their packet"));
    }
    let mut properties = body.split_to(length);
    while properties.has_remaining() {
        match properties.get_u8() {
            0x21 => answer.receive_maximum = number(&mut properties)?.max(1),
            0x27 => answer.maximum_packet = Some(long(&mut properties)?),
            0x24 => answer.maximum_qos = Qos::from_number(i64::from(byte(&mut properties)?)).ok_or(Malformed("QoS 3"))?,
            0x25 => answer.retain = byte(&mut properties)? != 0,
            0x13 => answer.keep_alive = Some(number(&mut properties)?),
            other => skip_property(other, &mut properties)?,
        }
    }
    Ok(answer)
}

fn skip_property(identifier: u8, properties: &mut Bytes) -> Result<(), Malformed> {
    match identifier {
        0x28..=0x2A => drop(byte(properties)?),
        0x22 => drop(number(properties)?),
        0x11 => drop(long(properties)?),
        0x12 | 0x15 | 0x1A | 0x1C | 0x1F => drop(text(properties)?),
        0x16 => skip(properties)?,
        0x26 => {
            skip(properties)?;
            skip(properties)?;
        }
        _ => return Err(Malformed("an unknown property")),
    }
    Ok(())
}

fn skip_properties(body: &mut Bytes) -> Result<(), Malformed> {
    let length = variable(body)?;
    if length > body.len() {
        return Err(Malformed("properties that go beyond their packet"));
    }
    body.advance(length);
    Ok(())
}

/// A number of one to four bytes, seven bits each.
fn variable(body: &mut Bytes) -> Result<usize, Malformed> {
    let mut value = 0;
    for shift in [0, 7, 14, 21] {
        let next = byte(body)?;
        value |= usize::from(next & 0x7f) << shift;
        if next & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(Malformed("a length of more than four bytes"))
}

fn byte(body: &mut Bytes) -> Result<u8, Malformed> {
    body.try_get_u8().map_err(|_| Malformed("a packet that ends early"))
}

fn number(body: &mut Bytes) -> Result<u16, Malformed> {
    body.try_get_u16().map_err(|_| Malformed("a packet that ends early"))
}

fn long(body: &mut Bytes) -> Result<u32, Malformed> {
    body.try_get_u32().map_err(|_| Malformed("a packet that ends early"))
}

fn text(body: &mut Bytes) -> Result<String, Malformed> {
    let length = usize::from(number(body)?);
    if length > body.len() {
        return Err(Malformed("a text that goes beyond its packet"));
    }
    String::from_utf8(body.split_to(length).to_vec()).map_err(|_| Malformed("a text that is not UTF-8"))
}

fn skip(body: &mut Bytes) -> Result<(), Malformed> {
    let length = usize::from(number(body)?);
    if length > body.len() {
        return Err(Malformed("data that goes beyond its packet"));
    }
    body.advance(length);
    Ok(())
}

/// CONNECT.
pub(super) fn connect(options: &MqttOptions, client_id: &str, maximum_packet: u32, out: &mut BytesMut) {
    let (name, level) = match options.version {
        Version::V31 => ("MQIsdp", 3),
        Version::V311 => ("MQTT", 4),
        Version::V5 => ("MQTT", 5),
    };
    let mut body = BytesMut::new();
    put_text(&mut body, name);
    body.put_u8(level);
    let will = options.will.as_ref();
    let mut flags = 0b10;
    if let Some(will) = will {
        flags |= 0b100 | will.qos.number() << 3 | u8::from(will.retain) << 5;
    }
    // Before version 5 a password without a name is not possible.
    let username = options.username.as_deref().or(options.password.as_ref().map(|_| ""));
    flags |= u8::from(options.password.is_some()) << 6 | u8::from(username.is_some()) << 7;
    body.put_u8(flags);
    body.put_u16(KEEP_ALIVE);
    if options.version == Version::V5 {
        body.put_u8(5);
        body.put_u8(0x27);
        body.put_u32(maximum_packet);
    }
    put_text(&mut body, client_id);
    if let Some(will) = will {
        if options.version == Version::V5 {
            body.put_u8(0);
        }
        put_text(&mut body, &will.topic);
        put_data(&mut body, &will.payload);
    }
    if let Some(username) = username {
        put_text(&mut body, username);
    }
    if let Some(password) = &options.password {
        put_text(&mut body, password);
    }
    put_packet(out, CONNECT << 4, &body);
}

/// PUBLISH; `id` is zero for [`Qos::AtMostOnce`].
///
/// # Errors
/// [`MqttError::TooLarge`] when the packet is larger than `maximum`; nothing has been written then.
pub(super) fn put_publish(version: Version, message: &Message, id: u16, maximum: usize, out: &mut BytesMut) -> Result<(), MqttError> {
    let has_id = message.qos != Qos::AtMostOnce;
    let head = 2 + message.topic.len() + if has_id { 2 } else { 0 } + usize::from(version == Version::V5);
    let length = head + message.payload.len();
    if length + 5 > maximum {
        return Err(MqttError::TooLarge(maximum));
    }
    out.reserve(length + 5);
    out.put_u8(PUBLISH << 4 | message.qos.number() << 1 | u8::from(message.retain));
    put_variable(out, length);
    put_text(out, &message.topic);
    if has_id {
        out.put_u16(id);
    }
    if version == Version::V5 {
        out.put_u8(0);
    }
    out.put_slice(&message.payload);
    Ok(())
}

/// PUBACK, PUBREC, PUBREL or PUBCOMP.
pub(super) fn put_ack(kind: u8, id: u16, out: &mut BytesMut) {
    // PUBREL must carry this flag.
    let flags = if kind == PUBREL { 0b10 } else { 0 };
    put_packet(out, kind << 4 | flags, &id.to_be_bytes());
}

/// SUBSCRIBE.
pub(super) fn put_subscribe(version: Version, id: u16, filters: &[(String, Qos)], out: &mut BytesMut) {
    let mut body = BytesMut::new();
    body.put_u16(id);
    if version == Version::V5 {
        body.put_u8(0);
    }
    for (filter, qos) in filters {
        put_text(&mut body, filter);
        body.put_u8(qos.number());
    }
    put_packet(out, SUBSCRIBE << 4 | 0b10, &body);
}

/// UNSUBSCRIBE.
pub(super) fn put_unsubscribe(version: Version, id: u16, filters: &[String], out: &mut BytesMut) {
    let mut body = BytesMut::new();
    body.put_u16(id);
    if version == Version::V5 {
        body.put_u8(0);
    }
    filters.iter().for_each(|filter| put_text(&mut body, filter));
    put_packet(out, UNSUBSCRIBE << 4 | 0b10, &body);
}

/// PINGREQ.
pub(super) fn put_ping(out: &mut BytesMut) {
    put_packet(out, PINGREQ << 4, &[]);
}

/// DISCONNECT, the orderly one.
pub(super) fn put_disconnect(out: &mut BytesMut) {
    put_packet(out, DISCONNECT << 4, &[]);
}

fn put_packet(out: &mut BytesMut, first: u8, body: &[u8]) {
    out.put_u8(first);
    put_variable(out, body.len());
    out.put_slice(body);
}

fn put_variable(out: &mut BytesMut, mut value: usize) {
    loop {
        let low = (value & 0x7f) as u8;
        value >>= 7;
        out.put_u8(if value == 0 { low } else { low | 0x80 });
        if value == 0 {
            return;
        }
    }
}

fn put_text(out: &mut BytesMut, text: &str) {
    put_data(out, text.as_bytes());
}

/// Data with its length; what the protocol cannot carry is cut (callers have checked it).
fn put_data(out: &mut BytesMut, data: &[u8]) {
    let length = u16::try_from(data.len()).unwrap_or(u16::MAX);
    out.put_u16(length);
    out.put_slice(data.get(..usize::from(length)).unwrap_or(data));
}

#[cfg(test)]
mod tests;
