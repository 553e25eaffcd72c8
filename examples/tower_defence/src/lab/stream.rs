//! The same game over one reliable stream of packets, each of which waits for those before it. Sessions tell by
//! receipts whether a snapshot has arrived; here every snapshot arrives, so each is a delta to the one before.

use super::{ClientEnd, ServerEnd};
use crate::client::{Client, Path};
use crate::server::{PeerId, Server};
use crate::wire::{self, Hello};
use std::collections::BTreeMap;
use std::time::Duration;
use whitewater::Time;

/// One end of a stream of packets.
pub(super) trait Pipe {
    fn new(guest: usize) -> Self;
    /// Takes bytes from the path.
    fn input(&mut self, now: Time, bytes: &[u8]);
    /// Queues a packet. `false`: there is no room.
    fn send(&mut self, packet: &[u8]) -> bool;
    /// Whether so little waits that a packet of state would not be outdated before it is sent.
    fn has_room(&self) -> bool;
    /// Replaces the content of `packet` by the next packet. `false`: there is none.
    fn recv(&mut self, packet: &mut Vec<u8>) -> bool;
    /// Takes bytes for the path.
    fn pop(&mut self, bytes: &mut Vec<u8>) -> bool;
    fn update(&mut self, now: Time);
    fn flush(&mut self, now: Time);
    fn wake(&self, now: Time) -> Option<Time>;
    /// Round trip and its deviation; zero: unknown.
    fn rtt(&self) -> (Duration, Duration);
    fn is_over(&self) -> bool;
    /// Sets the round trip of a path that is not simulated.
    fn set_rtt(&mut self, _: Duration) {}
}

pub(super) struct ServerOf<P> {
    game: Server,
    guests: BTreeMap<usize, (End<P>, PeerId)>,
    packet: Vec<u8>,
}

impl<P: Pipe> ServerOf<P> {
    pub(super) const fn new(game: Server) -> Self {
        Self { game, guests: BTreeMap::new(), packet: Vec::new() }
    }
}

impl<P: Pipe> ServerEnd for ServerOf<P> {
    fn game(&self) -> &Server {
        &self.game
    }

    fn game_mut(&mut self) -> &mut Server {
        &mut self.game
    }

    fn expect(&mut self, guest: usize, hello: &Hello) {
        let hello = hello.encode().unwrap_or_default();
        if let Ok(peer) = self.game.connect(&hello) {
            self.guests.insert(guest, (End::new(P::new(guest)), peer));
        }
    }

    fn input(&mut self, now: Time, guest: usize, datagram: &[u8]) {
        let Some((end, peer)) = self.guests.get_mut(&guest) else { return };
        end.pipe.input(now, datagram);
        while let Some(packet) = end.recv() {
            match packet {
                Packet::State(bytes) => self.game.receive(*peer, &bytes),
                Packet::Message(message) => self.game.take(*peer, message),
            }
        }
    }

    fn poll(&mut self, now: Time) {
        self.guests.values_mut().for_each(|(end, _)| end.pipe.update(now));
    }

    fn tick(&mut self, now: Time) {
        self.game.tick();
        let tick = u64::from(self.game.world().tick);
        for (end, peer) in self.guests.values_mut() {
            // Behind a full queue a snapshot would only get older. A game on a stream must do this.
            if end.pipe.has_room()
                && self.game.snapshot(*peer, &mut self.packet)
                && end.send_state(&self.packet)
            {
                self.game.sent(*peer, tick);
                self.game.delivered(*peer, tick);
            }
            while let Some(message) = self.game.pop_message(*peer) {
                end.send_message(&message);
            }
            end.pipe.flush(now);
        }
    }

    fn pop(&mut self, _: Time, datagram: &mut Vec<u8>) -> Option<usize> {
        self.guests.iter_mut().find_map(|(guest, (end, _))| end.pipe.pop(datagram).then_some(*guest))
    }

    fn wake(&self, now: Time) -> Option<Time> {
        self.guests.values().filter_map(|(end, _)| end.pipe.wake(now)).min()
    }
}

pub(super) struct ClientOf<P> {
    end: End<P>,
    game: Client,
    packet: Vec<u8>,
    sent: u64,
    received: u64,
}

impl<P: Pipe> ClientOf<P> {
    pub(super) fn new(number: usize) -> Self {
        Self { end: End::new(P::new(number)), game: Client::new(), packet: Vec::new(), sent: 0, received: 0 }
    }

    fn measure(&mut self, now: Time) {
        let (rtt, rttvar) = self.end.pipe.rtt();
        let path = Path { rtt, rttvar, loss: None, bytes_sent: self.sent, bytes_received: self.received };
        self.game.set_path(now, path);
    }
}

impl<P: Pipe> ClientEnd for ClientOf<P> {
    fn game(&self) -> &Client {
        &self.game
    }

    fn game_mut(&mut self) -> &mut Client {
        &mut self.game
    }

    fn input(&mut self, now: Time, datagram: &[u8]) {
        self.received += datagram.len() as u64;
        self.end.pipe.input(now, datagram);
        self.measure(now);
        while let Some(packet) = self.end.recv() {
            match packet {
                Packet::State(bytes) => drop(self.game.receive(now, &bytes)),
                Packet::Message(message) => self.game.take(message),
            }
        }
    }

    fn poll(&mut self, now: Time) {
        self.end.pipe.update(now);
    }

    fn advance(&mut self, now: Time) {
        self.measure(now);
        self.game.advance(now);
        if self.end.pipe.has_room() && self.game.packet(&mut self.packet) && self.end.send_state(&self.packet)
        {
            let tick = u64::from(self.game.predicted().map_or(0, |world| world.tick));
            self.game.sent(tick);
            self.game.delivered(tick); // it will certainly arrive, if late
        }
        while let Some(message) = self.game.pop_message() {
            self.end.send_message(&message);
        }
        self.end.pipe.flush(now);
    }

    fn pop(&mut self, _: Time, datagram: &mut Vec<u8>) -> bool {
        let is_there = self.end.pipe.pop(datagram);
        self.sent += if is_there { datagram.len() as u64 } else { 0 };
        is_there
    }

    fn wake(&self, now: Time) -> Option<Time> {
        self.end.pipe.wake(now)
    }

    fn is_over(&self) -> bool {
        self.end.pipe.is_over()
    }

    fn set_rtt(&mut self, rtt: Duration) {
        self.end.pipe.set_rtt(rtt);
    }
}

/// The kind of a message in the stream, after a byte that tells it.
enum Packet {
    State(Vec<u8>),
    Message(wire::Message),
}

/// A pipe and its buffers.
struct End<P> {
    pipe: P,
    buf: Vec<u8>,
}

impl<P: Pipe> End<P> {
    const fn new(pipe: P) -> Self {
        Self { pipe, buf: Vec::new() }
    }

    fn send_state(&mut self, packet: &[u8]) -> bool {
        self.buf.clear();
        self.buf.push(STATE);
        self.buf.extend_from_slice(packet);
        self.pipe.send(&self.buf)
    }

    fn send_message(&mut self, message: &wire::Message) {
        let mut bytes = Vec::new();
        if wire::pack(message, &mut bytes).is_ok() {
            self.buf.clear();
            self.buf.push(MESSAGE);
            self.buf.extend_from_slice(&bytes);
            self.pipe.send(&self.buf); // what does not fit is dropped
        }
    }

    fn recv(&mut self) -> Option<Packet> {
        if !self.pipe.recv(&mut self.buf) {
            return None;
        }
        let (kind, bytes) = self.buf.split_first()?;
        if *kind == STATE {
            return Some(Packet::State(bytes.to_vec()));
        }
        wire::unpack(bytes).ok().map(Packet::Message)
    }
}

const STATE: u8 = 0;
const MESSAGE: u8 = 1;
