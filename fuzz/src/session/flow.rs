//! What one end of a session sends and the other receives: each message contains its number, and the rest of
//! it follows from that.

use whitewater::channel::Carrier;
use whitewater::session::Connection;
use whitewater::{Channel, ChannelConfig};

/// Ordered channels: two by KCP, and one in packets, which what is too long for one goes beside.
const ORDERED: [Channel; 3] = [Channel::ordered(0), Channel::ordered(1), Channel::ordered(2)];
const SEQUENCED: Channel = Channel::sequenced(3);

/// The channels of a session under test.
pub(super) fn channels() -> Vec<ChannelConfig> {
    let [first, second, third] = ORDERED.map(Channel::config);
    vec![first, second, ChannelConfig { carrier: Carrier::Packets, ..third }, SEQUENCED.into()]
}

/// One direction of a session.
#[derive(Debug, Default)]
pub(super) struct Flow {
    /// Numbers of the next message sent and expected of each ordered channel.
    ordered: [(u32, u32); ORDERED.len()],
    datagrams: u32,
    /// Bit n: datagram n was received.
    taken: [u64; 16],
    sequenced: (u32, Option<u32>),
}

impl Flow {
    /// Sends something: on a channel, or as a datagram.
    pub(super) fn send(&mut self, end: &mut Connection, what: u8, len: usize) {
        match what % 5 {
            2 if self.datagrams < 1024 => {
                let sent = end.send_datagram(&content(DATAGRAMS, self.datagrams, len * 4));
                self.datagrams += u32::from(sent.is_ok());
            }
            ordered @ (0 | 1 | 3) => {
                // By KCP; as long as what is cut; and as long as what a packet has no room for.
                let (which, len) = [(0, len * 8), (1, len * 100), (0, 0), (2, len * 8)][usize::from(ordered)];
                let next = &mut self.ordered[which].0;
                *next += u32::from(end.send(ORDERED[which], &content(which, *next, len)).is_ok());
            }
            _ => {
                let next = &mut self.sequenced.0;
                *next += u32::from(end.send(SEQUENCED, &content(NEWEST, *next, len)).is_ok());
            }
        }
    }

    /// Takes what has arrived. Unless somebody has `meddled`, it is what was sent: once, and in order where that is promised.
    pub(super) fn take(&mut self, end: &mut Connection, meddled: bool) {
        for (which, channel) in ORDERED.into_iter().enumerate() {
            while let Some(message) = end.recv(channel) {
                let next = &mut self.ordered[which].1;
                let expected = || content(which, *next, message.len().saturating_sub(5));
                assert!(meddled || message == expected(), "{channel:?}");
                *next += 1;
            }
        }
        while let Some(datagram) = end.recv_datagram() {
            if !meddled {
                let number = number(DATAGRAMS, &datagram);
                let (word, bit) = (number / 64, 1 << (number % 64));
                assert!(number < self.datagrams, "datagram {number} was not sent");
                let word = &mut self.taken[word as usize];
                assert_eq!(std::mem::replace(word, *word | bit) & bit, 0, "datagram {number} came twice");
            }
        }
        while let Some(message) = end.recv(SEQUENCED) {
            if !meddled {
                let number = number(NEWEST, &message);
                let last = self.sequenced.1.replace(number);
                assert!(last.is_none_or(|last| last < number), "out of sequence");
            }
        }
    }

    /// Asks which datagrams are known to have arrived: they have.
    pub(super) fn told(&self, sender: &mut Connection, meddled: bool) {
        while let Some(id) = sender.pop_delivered() {
            let word = self.taken.get(usize::try_from(id.0 / 64).unwrap_or(usize::MAX));
            // It may not have been read yet, but it was sent.
            assert!(meddled || word.is_some() && id.0 < u64::from(self.datagrams), "datagram {}", id.0);
        }
    }

    /// Whether everything reliable has arrived.
    pub(super) fn is_through(&self) -> bool {
        self.ordered.iter().all(|(sent, taken)| sent == taken)
    }
}

fn content(flow: usize, number: u32, len: usize) -> Vec<u8> {
    let start = flow.to_le_bytes()[0];
    let mut bytes = vec![start];
    bytes.extend_from_slice(&number.to_le_bytes());
    let low = number.to_le_bytes()[0] ^ start;
    bytes.extend((0..len).map(|index| index.to_le_bytes()[0] ^ low));
    bytes
}

/// The number of an intact message.
fn number(flow: usize, bytes: &[u8]) -> u32 {
    let number = bytes.get(1..5).and_then(|bytes| bytes.try_into().ok()).map_or(u32::MAX, u32::from_le_bytes);
    assert!(bytes == content(flow, number, bytes.len().saturating_sub(5)), "a message was altered");
    number
}

/// What contents begin with, behind those of ordered channels.
const DATAGRAMS: usize = 3;
const NEWEST: usize = 4;
