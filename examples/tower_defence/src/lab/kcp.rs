//! The same game over KCP alone: every packet is reliable and waits for those before it. What the receipts of sessions say, that a
//! snapshot has arrived, is certain here: each goes by the one before.

use super::{ClientEnd, ServerEnd};
use crate::client::{Client, Path};
use crate::server::{PeerId, Server};
use crate::wire::{self, Hello};
use std::collections::BTreeMap;
use whitewater::message::Message as _;
use whitewater::message::{Read, Serialize, Stream};
use whitewater::{Config, Conv, DatagramQueue, Kcp, Time};

pub(super) struct ServerOf {
    game: Server,
    guests: BTreeMap<usize, (End, PeerId)>,
    packet: Vec<u8>,
}

impl ServerOf {
    pub(super) const fn new(game: Server) -> Self {
        Self { game, guests: BTreeMap::new(), packet: Vec::new() }
    }
}

impl ServerEnd for ServerOf {
    fn game(&self) -> &Server {
        &self.game
    }

    fn game_mut(&mut self) -> &mut Server {
        &mut self.game
    }

    fn expect(&mut self, guest: usize, hello: &Hello) {
        let hello = hello.encode().unwrap_or_default();
        if let Ok(peer) = self.game.connect(&hello) {
            self.guests.insert(guest, (End::new(guest), peer));
        }
    }

    fn input(&mut self, now: Time, guest: usize, datagram: &[u8]) {
        let Some((end, peer)) = self.guests.get_mut(&guest) else { return };
        let _ = end.kcp.input(now, datagram); // a bad one is counted there
        while let Some(packet) = end.recv() {
            match packet {
                Packet::State(bytes) => self.game.receive(*peer, &bytes),
                Packet::Message(message) => self.game.take(*peer, message),
            }
        }
    }

    fn poll(&mut self, now: Time) {
        self.guests.values_mut().for_each(|(end, _)| end.kcp.update(now));
    }

    fn tick(&mut self, now: Time) {
        self.game.tick();
        let tick = u64::from(self.game.world().tick);
        for (end, peer) in self.guests.values_mut() {
            // Behind a full queue a snapshot would only be older: as a game on a stream has to do.
            if end.has_room() && self.game.snapshot(*peer, &mut self.packet) && end.send_state(&self.packet) {
                self.game.sent(*peer, tick);
                self.game.delivered(*peer, tick);
            }
            while let Some(mut message) = self.game.pop_message(*peer) {
                end.send_message(&mut message);
            }
            end.kcp.flush(now);
        }
    }

    fn pop(&mut self, _: Time, datagram: &mut Vec<u8>) -> Option<usize> {
        self.guests.iter_mut().find_map(|(guest, (end, _))| end.pop(datagram).then_some(*guest))
    }

    fn wake(&self, now: Time) -> Option<Time> {
        self.guests.values().filter_map(|(end, _)| end.kcp.check(now)).min()
    }
}

pub(super) struct ClientOf {
    end: End,
    game: Client,
    packet: Vec<u8>,
    sent: u64,
    received: u64,
}

impl ClientOf {
    pub(super) fn new(number: usize) -> Self {
        Self { end: End::new(number), game: Client::new(), packet: Vec::new(), sent: 0, received: 0 }
    }

    fn measure(&mut self, now: Time) {
        let stats = self.end.kcp.stats();
        let path = Path {
            rtt: stats.srtt,
            rttvar: stats.rttvar,
            loss: 0.0,
            bytes_sent: self.sent,
            bytes_received: self.received,
        };
        self.game.set_path(now, path);
    }
}

impl ClientEnd for ClientOf {
    fn game(&self) -> &Client {
        &self.game
    }

    fn game_mut(&mut self) -> &mut Client {
        &mut self.game
    }

    fn input(&mut self, now: Time, datagram: &[u8]) {
        self.received += datagram.len() as u64;
        let _ = self.end.kcp.input(now, datagram); // a bad one is counted there
        self.measure(now);
        while let Some(packet) = self.end.recv() {
            match packet {
                Packet::State(bytes) => drop(self.game.receive(now, &bytes)),
                Packet::Message(message) => self.game.take(message),
            }
        }
    }

    fn poll(&mut self, now: Time) {
        self.end.kcp.update(now);
    }

    fn advance(&mut self, now: Time) {
        self.measure(now);
        self.game.advance(now);
        if self.end.has_room() && self.game.packet(&mut self.packet) && self.end.send_state(&self.packet) {
            let tick = u64::from(self.game.predicted().map_or(0, |world| world.tick));
            self.game.sent(tick);
            self.game.delivered(tick); // for certain, if late
        }
        while let Some(mut message) = self.game.pop_message() {
            self.end.send_message(&mut message);
        }
        self.end.kcp.flush(now);
    }

    fn pop(&mut self, _: Time, datagram: &mut Vec<u8>) -> bool {
        let is_there = self.end.pop(datagram);
        self.sent += if is_there { datagram.len() as u64 } else { 0 };
        is_there
    }

    fn wake(&self, now: Time) -> Option<Time> {
        self.end.kcp.check(now)
    }

    fn is_over(&self) -> bool {
        self.end.kcp.is_dead()
    }
}

/// What a message of the stream is: after a byte that says which.
enum Packet {
    State(Vec<u8>),
    Message(wire::Message),
}

/// A control block, as fast as its users set it.
struct End {
    kcp: Kcp<DatagramQueue>,
    buf: Vec<u8>,
}

impl End {
    #[expect(clippy::expect_used, reason = "the config is a constant")]
    fn new(guest: usize) -> Self {
        let conv = Conv(u32::try_from(guest).unwrap_or(0));
        // 10 ms, fast resend after 2, no congestion window: "turbo mode" of its README, decided as ikcp.c decides.
        let config = Config { snd_wnd: 256, rcv_wnd: 256, ..Config::turbo().classic() };
        let kcp = Kcp::new(conv, &config, DatagramQueue::with_limit(1 << 20)).expect("it is in range");
        Self { kcp, buf: Vec::new() }
    }

    fn has_room(&self) -> bool {
        self.kcp.wait_snd() < 128
    }

    fn send_state(&mut self, packet: &[u8]) -> bool {
        self.buf.clear();
        self.buf.push(STATE);
        self.buf.extend_from_slice(packet);
        self.kcp.send(&self.buf).is_ok()
    }

    fn send_message(&mut self, message: &mut wire::Message) {
        let mut bytes = Vec::new();
        if wire::pack(&mut Tagged(message), &mut bytes).is_ok() {
            self.buf.clear();
            self.buf.push(MESSAGE);
            self.buf.extend_from_slice(&bytes);
            let _ = self.kcp.send(&self.buf); // what finds no room is not said
        }
    }

    fn recv(&mut self) -> Option<Packet> {
        let len = self.kcp.peek_size()?;
        self.buf.resize(len, 0);
        self.kcp.recv(&mut self.buf).ok()?;
        let (kind, bytes) = self.buf.split_first()?;
        if *kind == STATE {
            return Some(Packet::State(bytes.to_vec()));
        }
        let (mut stream, mut number) = (Read::new(bytes), 0);
        stream.bits(&mut number, 8).ok()?;
        let mut message = wire::Message::blank(number)?;
        message.serialize(&mut stream).ok()?;
        Some(Packet::Message(message))
    }

    fn pop(&mut self, datagram: &mut Vec<u8>) -> bool {
        let Some(next) = self.kcp.output_mut().pop() else { return false };
        datagram.clear();
        datagram.extend_from_slice(next);
        true
    }
}

/// A message after its kind.
struct Tagged<'a>(&'a mut wire::Message);

impl Serialize for Tagged<'_> {
    fn serialize<S: Stream>(&mut self, stream: &mut S) -> Result<(), whitewater::message::BitsError> {
        stream.bits(&mut self.0.kind(), 8)?;
        self.0.serialize(stream)
    }
}

const STATE: u8 = 0;
const MESSAGE: u8 = 1;
