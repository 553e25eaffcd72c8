//! Packets that have arrived and wait to be read.

use crate::lane::Lane;
use bytes::Bytes;
use std::collections::VecDeque;

/// A packet, and how it came.
#[derive(Debug)]
pub(crate) struct Packet {
    /// Godot's number of its sender.
    pub(crate) peer: i32,
    pub(crate) lane: Lane,
    pub(crate) bytes: Bytes,
}

/// In the order of arrival on each lane.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    packets: VecDeque<Packet>,
    bytes: usize,
}

impl Inbox {
    /// Whether there is room for another one, of any length. What finds none stays in its session, whose peer then has to wait.
    pub(crate) const fn has_room(&self) -> bool {
        self.bytes < BYTES_MAX
    }

    pub(crate) fn push(&mut self, packet: Packet) {
        self.bytes += packet.bytes.len() + size_of::<Packet>();
        self.packets.push_back(packet);
    }

    pub(crate) fn pop(&mut self) -> Option<Packet> {
        let packet = self.packets.pop_front()?;
        self.bytes -= packet.bytes.len() + size_of::<Packet>();
        Some(packet)
    }

    /// The one that is read next.
    pub(crate) fn next(&self) -> Option<&Packet> {
        self.packets.front()
    }

    pub(crate) fn len(&self) -> usize {
        self.packets.len()
    }

    pub(crate) fn has_from(&self, peer: i32) -> bool {
        self.packets.iter().any(|packet| packet.peer == peer)
    }

    /// Forgets what came from a peer.
    pub(crate) fn forget(&mut self, peer: i32) {
        self.packets.retain(|packet| packet.peer != peer);
        self.bytes = self.packets.iter().map(|packet| packet.bytes.len() + size_of::<Packet>()).sum();
    }
}

/// A frame's worth for any game, and a bound for whoever polls without reading.
const BYTES_MAX: usize = 16 << 20;
