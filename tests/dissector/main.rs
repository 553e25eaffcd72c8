//! Runs the dissectors of tools/wireshark in tshark over captures of real traffic. They must show what is
//! there, flag what our own decoders reject, and leave other protocols alone. No bytes may cause a Lua error:
//! [`tshark::show`] checks that in each run.
//!
//! Without tshark these tests print a note and pass, unless `WHITEWATER_NO_SKIP` is set.

#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

#[cfg(test)]
#[path = "../common/mod.rs"]
mod common;
#[cfg(test)]
mod damage;
#[cfg(test)]
mod frames;
#[cfg(test)]
mod kcp;
#[cfg(test)]
mod packets;
#[cfg(test)]
#[path = "../common/pcap.rs"]
mod pcap;
#[cfg(test)]
mod sessions;
#[cfg(test)]
#[path = "../common/tshark.rs"]
mod tshark;

use std::sync::mpsc::{Receiver, Sender, channel};
use whitewater::Time;
use whitewater_sim::Peer;

/// A peer whose datagrams are recorded when they leave.
struct Tapped<P> {
    peer: P,
    tap: Sender<Vec<u8>>,
}

impl<P: Peer> Tapped<P> {
    fn new(peer: P) -> (Self, Receiver<Vec<u8>>) {
        let (tap, noted) = channel();
        (Self { peer, tap }, noted)
    }
}

impl<P: Peer> Peer for Tapped<P> {
    fn input(&mut self, now: Time, datagram: &[u8]) {
        self.peer.input(now, datagram);
    }

    fn poll(&mut self, now: Time) {
        self.peer.poll(now);
    }

    fn next_wake(&self, now: Time) -> Option<Time> {
        self.peer.next_wake(now)
    }

    fn pop_datagram(&mut self, datagram: &mut Vec<u8>) -> bool {
        let is_there = self.peer.pop_datagram(datagram);
        if is_there {
            self.tap.send(datagram.clone()).unwrap();
        }
        is_there
    }
}

/// Two addresses whose ports no other dissector uses.
fn addresses() -> [std::net::SocketAddr; 2] {
    [([10, 0, 0, 1], 50_001).into(), ([10, 0, 0, 2], 50_002).into()]
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The values of a field, from all bytes that are not empty.
fn hexes<'a>(all: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
    all.into_iter().filter(|bytes| !bytes.is_empty()).map(hex).collect()
}

fn texts<T: ToString>(values: impl IntoIterator<Item = T>) -> Vec<String> {
    values.into_iter().map(|value| value.to_string()).collect()
}
