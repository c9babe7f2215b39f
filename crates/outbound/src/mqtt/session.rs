//! What is under way on one connection: a pure state machine. Packets go in; bytes for the broker and effects for us come out.
//!
//! ```text
//! we publish     QoS 0: done when written      QoS 1: ─► PUBACK: done      QoS 2: ─► PUBREC, we send PUBREL ─► PUBCOMP: done
//! they publish   QoS 0: deliver                QoS 1: deliver, we PUBACK   QoS 2: deliver once, we PUBREC ─► PUBREL, we PUBCOMP
//! ```

use std::collections::{HashMap, HashSet};

use bytes::BytesMut;

use super::codec::{self, ConnAck, MAX_PAYLOAD, Malformed, PUBACK, PUBCOMP, PUBREC, PUBREL, Packet};
use super::{Message, MqttError, Qos, Version};

/// Our messages that the broker has not acknowledged yet; further ones wait in the queue. A broker with usual settings keeps the order of so many.
pub(super) const MAX_UNACKNOWLEDGED: usize = 20;

/// Reason codes from here on are refusals.
const REFUSED: u8 = 0x80;

/// What a packet of the broker causes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Effect<T> {
    /// Somebody's message.
    Deliver(Message),
    /// A publication has ended.
    Finished(T, Result<(), MqttError>),
    /// These filters were refused.
    NotSubscribed(Vec<String>),
    /// The broker ends the connection.
    Ended(u8),
}

#[derive(Debug)]
struct Sent<T> {
    ticket: T,
    /// What is expected next: PUBACK, PUBREC or PUBCOMP.
    expected: u8,
}

/// One connection. `T` is what the worker keeps about a publication.
#[derive(Debug)]
pub(super) struct Session<T> {
    version: Version,
    limits: ConnAck,
    last_id: u16,
    sent: HashMap<u16, Sent<T>>,
    /// Numbers of messages with QoS 2 that have been delivered and whose PUBREL is still to come.
    delivered: HashSet<u16>,
    subscribing: HashMap<u16, Vec<String>>,
    /// What waits to be written.
    pub(super) out: BytesMut,
}

impl<T> Session<T> {
    pub(super) fn new(version: Version, limits: ConnAck) -> Self {
        Self {
            version,
            limits,
            last_id: 0,
            sent: HashMap::new(),
            delivered: HashSet::new(),
            subscribing: HashMap::new(),
            out: BytesMut::new(),
        }
    }

    /// False while enough is unacknowledged.
    pub(super) fn takes_more(&self) -> bool {
        self.sent.len() < MAX_UNACKNOWLEDGED.min(self.limits.receive_maximum.into())
    }

    /// True when there is nothing to write and no answer of the broker to come.
    pub(super) fn awaits_nothing(&self) -> bool {
        self.out.is_empty() && self.sent.is_empty() && self.subscribing.is_empty()
    }

    /// Publishes. Gives the ticket back with what there is to say about it already: a fault, or that it is done once it is written.
    pub(super) fn publish(&mut self, mut message: Message, ticket: T) -> Option<(T, Result<(), MqttError>)> {
        message.qos = message.qos.min(self.limits.maximum_qos);
        message.retain &= self.limits.retain;
        let largest = self.limits.maximum_packet.map_or(usize::MAX, |bytes| bytes as usize).min(MAX_PAYLOAD);
        let id = if message.qos == Qos::AtMostOnce { 0 } else { self.new_id() };
        let written = codec::put_publish(self.version, &message, id, largest, &mut self.out);
        if written.is_err() || message.qos == Qos::AtMostOnce {
            return Some((ticket, written));
        }
        let expected = if message.qos == Qos::AtLeastOnce { PUBACK } else { PUBREC };
        self.sent.insert(id, Sent { ticket, expected });
        None
    }

    /// Asks for messages.
    pub(super) fn subscribe(&mut self, filters: &[(String, Qos)]) {
        if filters.is_empty() {
            return;
        }
        let id = self.new_id();
        codec::put_subscribe(self.version, id, filters, &mut self.out);
        self.subscribing.insert(id, filters.iter().map(|(filter, _)| filter.clone()).collect());
    }

    /// Asks for no more messages.
    pub(super) fn unsubscribe(&mut self, filters: &[String]) {
        if !filters.is_empty() {
            let id = self.new_id();
            codec::put_unsubscribe(self.version, id, filters, &mut self.out);
        }
    }

    /// Takes a packet.
    pub(super) fn take(&mut self, packet: Packet) -> Result<Option<Effect<T>>, Malformed> {
        Ok(match packet {
            Packet::Publish { message, id } => self.arrived(message, id),
            Packet::Skipped { qos, id } => {
                self.acknowledge(qos, id);
                None
            }
            Packet::PubRel { id } => {
                self.delivered.remove(&id);
                codec::put_ack(PUBCOMP, id, &mut self.out);
                None
            }
            Packet::PubAck { id, reason } => self.acknowledged(id, PUBACK, reason),
            Packet::PubRec { id, reason } => self.acknowledged(id, PUBREC, reason),
            Packet::PubComp { id, reason } => self.acknowledged(id, PUBCOMP, reason),
            Packet::SubAck { id, reasons } => self.subscribed(id, &reasons),
            Packet::UnsubAck | Packet::PingResp => None,
            Packet::Disconnect { reason } => Some(Effect::Ended(reason)),
            Packet::ConnAck(_) => return Err(Malformed("a second CONNACK")),
        })
    }

    /// Tickets of everything that was not acknowledged.
    pub(super) fn unfinished(self) -> impl Iterator<Item = T> {
        self.sent.into_values().map(|sent| sent.ticket)
    }

    fn arrived(&mut self, message: Message, id: u16) -> Option<Effect<T>> {
        let is_new = message.qos != Qos::ExactlyOnce || !self.delivered.contains(&id);
        self.acknowledge(message.qos, id);
        is_new.then_some(Effect::Deliver(message))
    }

    fn acknowledge(&mut self, qos: Qos, id: u16) {
        match qos {
            Qos::AtMostOnce => {}
            Qos::AtLeastOnce => codec::put_ack(PUBACK, id, &mut self.out),
            Qos::ExactlyOnce => {
                self.delivered.insert(id);
                codec::put_ack(PUBREC, id, &mut self.out);
            }
        }
    }

    fn acknowledged(&mut self, id: u16, kind: u8, reason: u8) -> Option<Effect<T>> {
        let sent = self.sent.get_mut(&id)?;
        if sent.expected != kind {
            return None;
        }
        if kind == PUBREC && reason < REFUSED {
            sent.expected = PUBCOMP;
            codec::put_ack(PUBREL, id, &mut self.out);
            return None;
        }
        let ticket = self.sent.remove(&id)?.ticket;
        Some(Effect::Finished(ticket, if reason < REFUSED { Ok(()) } else { Err(MqttError::Refused(reason)) }))
    }

    fn subscribed(&mut self, id: u16, reasons: &[u8]) -> Option<Effect<T>> {
        let filters = self.subscribing.remove(&id)?;
        let refused = filters.into_iter().zip(reasons).filter(|(_, reason)| **reason >= REFUSED);
        let refused: Vec<String> = refused.map(|(filter, _)| filter).collect();
        (!refused.is_empty()).then_some(Effect::NotSubscribed(refused))
    }

    /// A number that nothing under way has. There is one: far fewer are ever in use.
    fn new_id(&mut self) -> u16 {
        loop {
            self.last_id = self.last_id.checked_add(1).unwrap_or(1);
            if !self.sent.contains_key(&self.last_id) && !self.subscribing.contains_key(&self.last_id) {
                return self.last_id;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session() -> Session<u32> {
        Session::new(Version::V311, ConnAck::default())
    }

    fn message(qos: Qos) -> Message {
        Message { topic: "t".into(), payload: "x".into(), qos, retain: false }
    }

    #[test]
    fn each_quality_ends_where_it_should() {
        let mut session = session();
        assert_eq!(session.publish(message(Qos::AtMostOnce), 1), Some((1, Ok(()))));
        assert_eq!(session.publish(message(Qos::AtLeastOnce), 2), None);
        assert_eq!(session.publish(message(Qos::ExactlyOnce), 3), None);
        assert_eq!(session.take(Packet::PubComp { id: 2, reason: 0 }), Ok(None), "not yet");
        assert_eq!(session.take(Packet::PubAck { id: 1, reason: 0 }), Ok(Some(Effect::Finished(2, Ok(())))));
        assert_eq!(session.take(Packet::PubAck { id: 1, reason: 0 }), Ok(None), "only once");
        session.out.clear();
        assert_eq!(session.take(Packet::PubRec { id: 2, reason: 0 }), Ok(None));
        assert_eq!(&session.out[..], b"\x62\x02\x00\x02");
        assert_eq!(session.take(Packet::PubComp { id: 2, reason: 0 }), Ok(Some(Effect::Finished(3, Ok(())))));
        assert_eq!(session.unfinished().count(), 0);
    }

    #[test]
    fn a_refusal_names_its_reason() {
        let mut session = session();
        assert!(session.awaits_nothing());
        session.publish(message(Qos::ExactlyOnce), 1);
        session.out.clear();
        assert!(!session.awaits_nothing());
        assert_eq!(session.take(Packet::PubRec { id: 1, reason: 0x87 }), Ok(Some(Effect::Finished(1, Err(MqttError::Refused(0x87))))));
        session.subscribe(&[("a".into(), Qos::AtMostOnce), ("b".into(), Qos::AtMostOnce)]);
        let refused = session.take(Packet::SubAck { id: 2, reasons: vec![0, 0x80] });
        assert_eq!(refused, Ok(Some(Effect::NotSubscribed(vec!["b".into()]))));
        session.out.clear();
        assert!(session.awaits_nothing());
    }

    #[test]
    fn exactly_once_is_delivered_once() {
        let mut session = session();
        let packet = || Packet::Publish { message: message(Qos::ExactlyOnce), id: 5 };
        assert_eq!(session.take(packet()), Ok(Some(Effect::Deliver(message(Qos::ExactlyOnce)))));
        assert_eq!(session.take(packet()), Ok(None), "a repetition");
        assert_eq!(session.take(Packet::PubRel { id: 5 }), Ok(None));
        assert_eq!(&session.out[..], b"\x50\x02\x00\x05\x50\x02\x00\x05\x70\x02\x00\x05");
        assert!(session.take(packet()).unwrap().is_some(), "the number is free again");
    }

    #[test]
    fn what_the_broker_cannot_do_is_not_asked_of_it() {
        let limits =
            ConnAck { receive_maximum: 2, maximum_packet: Some(20), maximum_qos: Qos::AtLeastOnce, retain: false, ..ConnAck::default() };
        let mut session = Session::new(Version::V5, limits);
        assert_eq!(session.publish(Message { retain: true, ..message(Qos::ExactlyOnce) }, 1), None);
        assert_eq!(session.out[0], 0x32, "QoS 1, not retained");
        assert!(session.takes_more());
        session.publish(message(Qos::AtLeastOnce), 2);
        assert!(!session.takes_more());
        let large = Message { payload: vec![0; 20].into(), ..message(Qos::AtMostOnce) };
        assert_eq!(session.publish(large, 3), Some((3, Err(MqttError::TooLarge(20)))));
        assert_eq!(session.unfinished().count(), 2);
    }

    #[test]
    fn numbers_go_round_and_leave_out_those_in_use() {
        let mut session = session();
        session.publish(message(Qos::AtLeastOnce), 1);
        session.last_id = u16::MAX;
        session.publish(message(Qos::AtLeastOnce), 2);
        assert_eq!(session.take(Packet::PubAck { id: 2, reason: 0 }), Ok(Some(Effect::Finished(2, Ok(())))));
    }
}
