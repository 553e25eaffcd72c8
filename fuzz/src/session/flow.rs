//! What one end of a session sends and the other receives: each message contains its number, and the rest of
//! it follows from that.

use whitewater::Time;
use whitewater::message::channel::Received;
use whitewater::session::{Blob, Connection};

/// Lanes of a session under test.
pub(super) const LANES: usize = 2;

/// One direction of a session.
#[derive(Debug, Default)]
pub(super) struct Flow {
    /// Numbers of the next message sent and the next expected, for each lane and for the reliable channel.
    ordered: [(u32, u32); LANES + 1],
    datagrams: u32,
    /// Bit n: datagram n was received.
    taken: [u64; 16],
    sequenced: (u32, Option<u32>),
}

impl Flow {
    /// Sends something: on a lane, as a datagram, on a channel.
    pub(super) fn send(&mut self, now: Time, end: &mut Connection<Blob>, what: u8, len: usize) {
        let what = usize::from(what) % 5;
        match what {
            lane if lane < LANES => {
                let next = &mut self.ordered[lane].0;
                *next += u32::from(end.send(lane, &content(what, *next, len * 8)).is_ok());
            }
            2 if self.datagrams < 1024 => {
                let sent = end.send_datagram(&content(what, self.datagrams, len * 4));
                self.datagrams += u32::from(sent.is_ok());
            }
            3 => {
                let next = &mut self.ordered[LANES].0;
                *next += u32::from(end.send_message(0, now, Blob(content(what, *next, len))).is_ok());
            }
            _ => {
                let next = &mut self.sequenced.0;
                *next += u32::from(end.send_message(1, now, Blob(content(4, *next, len))).is_ok());
            }
        }
    }

    /// Receives everything. Unless a packet was altered (`meddled`), each message arrives intact, once, and
    /// in order where that is promised.
    pub(super) fn take(&mut self, end: &mut Connection<Blob>, meddled: bool) {
        let mut room = [0; 4096];
        for lane in 0..LANES {
            while let Ok(len) = end.recv(lane, &mut room) {
                let next = &mut self.ordered[lane].1;
                assert!(meddled || room[..len] == content(lane, *next, len.saturating_sub(5)), "lane {lane}");
                *next += 1;
            }
        }
        while let Ok(len) = end.recv_datagram(&mut room) {
            if !meddled {
                let number = number(2, &room[..len]);
                let (word, bit) = (number / 64, 1 << (number % 64));
                assert!(number < self.datagrams, "datagram {number} was not sent");
                let word = &mut self.taken[word as usize];
                assert_eq!(std::mem::replace(word, *word | bit) & bit, 0, "datagram {number} came twice");
            }
        }
        while let Some(received) = end.recv_message(0) {
            let next = &mut self.ordered[LANES].1;
            assert!(meddled || is(&received, 3, *next), "the reliable channel");
            *next += 1;
        }
        while let Some(received) = end.recv_message(1) {
            if let Received::Message(Blob(bytes)) = received
                && !meddled
            {
                let number = number(4, &bytes);
                let last = self.sequenced.1.replace(number);
                assert!(last.is_none_or(|last| last < number), "out of sequence");
            }
        }
    }

    /// Checks that datagrams reported as arrived have arrived.
    pub(super) fn told(&self, sender: &mut Connection<Blob>, meddled: bool) {
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

fn is(received: &Received<Blob>, flow: usize, next: u32) -> bool {
    matches!(received, Received::Message(Blob(bytes)) if *bytes == content(flow, next, bytes.len().saturating_sub(5)))
}
