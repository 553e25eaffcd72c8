//! What one end of a session sent and the other received. A message contains its number, and the rest of it
//! follows from that.

use crate::draw::Draw;
use std::collections::BTreeSet;
use whitewater::Time;
use whitewater::message::channel::Received;
use whitewater::session::{Blob, Connection};

pub(crate) const LANES: usize = 2;

/// One direction of one session.
#[derive(Default)]
pub(crate) struct Flow {
    /// Numbers of the next message sent and the next expected, for each lane and for the reliable channel.
    pub(crate) ordered: [(u32, u32); LANES + 1],
    /// The number of the next datagram, and those that arrived.
    datagrams: (u32, BTreeSet<u32>),
    sequenced: (u32, Option<u32>),
    told: BTreeSet<u64>,
}

impl Flow {
    /// Sends a bit of everything now and then.
    pub(crate) fn send(&mut self, now: Time, draw: &mut Draw, end: &mut Connection<Blob>) {
        for lane in 0..LANES {
            if draw.one_in(4) {
                let len = if draw.one_in(20) { draw.below(4000) } else { draw.below(100) };
                self.send_on(lane, len as usize, end);
            }
        }
        if draw.one_in(3) {
            let len = if draw.one_in(10) { draw.below(900) } else { draw.below(100) };
            let next = &mut self.datagrams.0;
            *next += u32::from(end.send_datagram(&content(10, *next, len as usize)).is_ok());
        }
        if draw.one_in(3) {
            let next = &mut self.ordered[LANES].0;
            let message = Blob(content(11, *next, draw.below(100) as usize));
            *next += u32::from(end.send_message(0, now, message).is_ok());
            let next = &mut self.sequenced.0;
            *next += u32::from(end.send_message(1, now, Blob(content(12, *next, 10))).is_ok());
        }
    }

    /// Sends a message on a lane. Returns whether it was accepted.
    pub(crate) fn send_on(&mut self, lane: usize, len: usize, end: &mut Connection<Blob>) -> bool {
        let next = &mut self.ordered[lane].0;
        let is_sent = end.send(lane, &content(lane as u8, *next, len)).is_ok();
        *next += u32::from(is_sent);
        is_sent
    }

    /// Receives everything: each message once, whole, and in order where that is promised.
    pub(crate) fn take(&mut self, end: &mut Connection<Blob>) {
        let mut buf = [0; 5000];
        for lane in 0..LANES {
            while let Ok(len) = end.recv(lane, &mut buf) {
                assert_eq!(number(lane as u8, &buf[..len]), self.ordered[lane].1, "lane {lane}");
                self.ordered[lane].1 += 1;
            }
        }
        while let Ok(len) = end.recv_datagram(&mut buf) {
            let number = number(10, &buf[..len]);
            assert!(number < self.datagrams.0 && self.datagrams.1.insert(number), "datagram {number} twice");
        }
        while let Some(Received::Message(Blob(bytes))) = end.recv_message(0) {
            assert_eq!(number(11, &bytes), self.ordered[LANES].1, "channel");
            self.ordered[LANES].1 += 1;
        }
        while let Some(Received::Message(Blob(bytes))) = end.recv_message(1) {
            let number = number(12, &bytes);
            assert!(self.sequenced.1.is_none_or(|last| last < number), "out of sequence");
            self.sequenced.1 = Some(number);
        }
    }

    /// Asks the sender which datagrams it knows to have arrived.
    pub(crate) fn ask(&mut self, sender: &mut Connection<Blob>) {
        while let Some(id) = sender.pop_delivered() {
            self.told.insert(id.0);
        }
    }

    /// Checks that what was reported as arrived did arrive.
    pub(crate) fn check_told(&self) {
        let stray = self.told.iter().find(|id| !self.datagrams.1.contains(&(**id as u32)));
        assert!(stray.is_none(), "told of a datagram that did not arrive: {stray:?}");
    }

    /// Whether everything reliable has arrived.
    pub(crate) fn is_through(&self) -> bool {
        self.ordered.iter().all(|(sent, taken)| sent == taken)
    }
}

fn content(flow: u8, number: u32, len: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len + 5);
    bytes.push(flow);
    bytes.extend_from_slice(&number.to_le_bytes());
    let low = number.to_le_bytes()[0] ^ flow;
    bytes.extend((0..len).map(|index| index.to_le_bytes()[0] ^ low));
    bytes
}

/// The number of an intact message.
fn number(flow: u8, bytes: &[u8]) -> u32 {
    let number = u32::from_le_bytes(bytes[1..5].try_into().unwrap());
    assert_eq!(bytes, content(flow, number, bytes.len() - 5), "altered");
    number
}
