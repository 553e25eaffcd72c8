//! What one end of a session sent and the other received. A message contains its number, and the rest of it
//! follows from that.

use crate::draw::Draw;
use std::collections::BTreeSet;
use whitewater::Channel;
use whitewater::session::Connection;

/// In order: two by KCP, one in packets.
pub(crate) const ORDERED: [Channel; 3] = [Channel::ordered(0), Channel::ordered(1), Channel::ordered(2)];
const PACKED: usize = 2;
pub(crate) const SEQUENCED: Channel = Channel::sequenced(3);
/// The name of datagrams in what they say.
const DATAGRAM: u8 = 10;

/// One direction of one session.
#[derive(Default)]
pub(crate) struct Flow {
    /// Numbers of the next message sent and expected, of each channel in order.
    pub(crate) ordered: [(u32, u32); ORDERED.len()],
    /// The next datagram, and those that arrived.
    datagrams: (u32, BTreeSet<u32>),
    sequenced: (u32, Option<u32>),
    told: BTreeSet<u64>,
}

impl Flow {
    /// Sends a bit of everything, now and then.
    pub(crate) fn send(&mut self, draw: &mut Draw, end: &mut Connection) {
        for index in 0..PACKED {
            if draw.one_in(4) {
                let len = if draw.one_in(20) { draw.below(4000) } else { draw.below(100) };
                self.send_on(index, len as usize, end);
            }
        }
        if draw.one_in(3) {
            let len = if draw.one_in(10) { draw.below(900) } else { draw.below(100) };
            let next = &mut self.datagrams.0;
            *next += u32::from(end.send_datagram(&content(DATAGRAM, *next, len as usize)).is_ok());
        }
        if draw.one_in(3) {
            // Now and then it is too long for a packet.
            let len = if draw.one_in(20) { draw.below(4000) } else { draw.below(100) };
            self.send_on(PACKED, len as usize, end);
            let next = &mut self.sequenced.0;
            *next += u32::from(end.send(SEQUENCED, &content(SEQUENCED.number(), *next, 10)).is_ok());
        }
        if draw.one_in(100) {
            // And now and then it has to be cut.
            let (index, len) = (draw.below(ORDERED.len() as u64), draw.below(60_000));
            self.send_on(index as usize, len as usize, end);
        }
    }

    /// Sends a message on one of the channels in order; whether it was taken.
    pub(crate) fn send_on(&mut self, index: usize, len: usize, end: &mut Connection) -> bool {
        let (channel, next) = (ORDERED[index], &mut self.ordered[index].0);
        let is_sent = end.send(channel, &content(channel.number(), *next, len)).is_ok();
        *next += u32::from(is_sent);
        is_sent
    }

    /// Takes what has arrived: once, whole, and in order where that is promised.
    pub(crate) fn take(&mut self, end: &mut Connection) {
        for (channel, (_, next)) in ORDERED.into_iter().zip(&mut self.ordered) {
            while let Some(message) = end.recv(channel) {
                assert_eq!(number(channel.number(), &message), *next, "{channel:?}");
                *next += 1;
            }
        }
        let mut buf = [0; 1200];
        while let Ok(len) = end.recv_datagram_into(&mut buf) {
            let number = number(DATAGRAM, &buf[..len]);
            assert!(number < self.datagrams.0 && self.datagrams.1.insert(number), "datagram {number} twice");
        }
        while let Some(message) = end.recv(SEQUENCED) {
            let number = number(SEQUENCED.number(), &message);
            assert!(self.sequenced.1.is_none_or(|last| last < number), "out of sequence");
            self.sequenced.1 = Some(number);
        }
    }

    /// Asks the sender which datagrams are known to have arrived.
    pub(crate) fn ask(&mut self, sender: &mut Connection) {
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
