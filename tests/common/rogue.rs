//! A client that connects like any other and then misbehaves: it seals whatever frames it is told to.

use super::Raw;
use super::sessions::{World, client_address};
use std::net::SocketAddr;
use std::time::Duration;
use whitewater::ServerConfig;
use whitewater::inside::compact::{Compactor, Known, expand};
use whitewater::inside::session::exchange::{Attempt, Initiator};
use whitewater::inside::session::seal::Seal;
use whitewater::inside::session::wire::{
    Accept, Challenge, Connect, Frame, FrameWriter, Frames, Hello, Msg1, Msg2,
};
use whitewater::kcp::wire::{Header, Segment};
use whitewater::kcp::{Conv, Millis, Sn};
use whitewater::session::Suite;

pub(crate) struct Rogue {
    seal: Seal,
    /// The server's number for the session.
    sid: u32,
    pub(crate) address: SocketAddr,
}

/// What the server has sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    pub(crate) pn: u64,
    /// The stamp of its PING.
    pub(crate) ping: Option<u64>,
}

/// A server that admits anybody, for unencrypted sessions: the frames inside are the same for all suites.
pub(crate) fn open_server(config: ServerConfig) -> World {
    let session = config.session.clone();
    World::new(1, &ServerConfig { suites: vec![Suite::Checked], session, ..config })
}

impl Rogue {
    /// Connects; `None` if the server refuses.
    pub(crate) fn connect(world: &mut World, number: u8) -> Option<Self> {
        Self::join(world, client_address(number, 666), number.into())
    }

    /// Connects from any address. Each attempt needs another `cid`.
    pub(crate) fn join(world: &mut World, address: SocketAddr, cid: u64) -> Option<Self> {
        Self::join_with(world, address, cid, 0)
    }

    /// The same with these features.
    pub(crate) fn join_with(world: &mut World, address: SocketAddr, cid: u64, features: u32) -> Option<Self> {
        Self::join_from_afar(world, address, cid, features, Duration::ZERO)
    }

    /// The same from where each round trip takes that long.
    pub(crate) fn join_from_afar(
        world: &mut World,
        address: SocketAddr,
        cid: u64,
        features: u32,
        rtt: Duration,
    ) -> Option<Self> {
        let mut datagram = Vec::new();
        let hello = Hello { suite: 0, protocol_id: 0, cid, client_stamp: 1, size: 512 };
        hello.encode(&mut datagram).unwrap();
        let challenge = ask(world, address, &datagram)?;
        let Challenge { epoch, cookie, .. } = Challenge::decode(&challenge).ok()?;

        let (mut payload, mut msg1, mut datagram) = (Vec::new(), Vec::new(), Vec::new());
        let said =
            Msg1 { features, max_datagram: 1200, rcv_wnd: 128, keepalive_ms: 500, user: b"", shape: b"" };
        said.encode(&mut payload).unwrap();
        let attempt = Attempt { suite: Suite::Checked, protocol_id: 0, cid, client_sid: 5, token: &[] };
        let mut initiator = Initiator::new(&attempt, None, None, salt(cid), &payload, &mut msg1).unwrap();
        let connect =
            Connect { suite: 0, protocol_id: 0, cid, epoch, cookie, client_sid: 5, token: &[], msg1: &msg1 };
        connect.encode(&mut datagram).unwrap();
        let accept = ask(world, address, &datagram)?;
        let Accept { msg2, .. } = Accept::decode(&accept).ok()?;
        let mut payload = Vec::new();
        let keys = initiator.read_msg2(msg2, &mut payload).unwrap();
        let Msg2 { server_sid, .. } = Msg2::decode(&payload).unwrap();
        let mut rogue = Self { seal: Seal::new(world.now, keys), sid: server_sid, address };
        world.run_to(world.now + rtt, |_| false);
        rogue.send(world, &[Frame::Ping(0)]);
        Some(rogue)
    }

    /// Sends these frames in one datagram.
    pub(crate) fn send(&mut self, world: &mut World, frames: &[Frame<'_>]) {
        let datagram = self.sealed(world, frames);
        world.inject(self.address, &datagram);
    }

    /// Seals these frames in one datagram.
    pub(crate) fn sealed(&mut self, world: &World, frames: &[Frame<'_>]) -> Vec<u8> {
        let mut datagram = Vec::new();
        Seal::begin(&mut datagram);
        let mut writer = FrameWriter::new(&mut datagram, 1400);
        frames.iter().for_each(|frame| writer.push(frame).unwrap());
        self.seal.seal(world.now, self.sid, &mut datagram, 0).unwrap();
        datagram
    }

    /// The number of the next packet.
    pub(crate) fn next(&self) -> u64 {
        self.seal.next()
    }

    /// Sends a datagram that was begun with `Seal::begin`, whatever its content.
    pub(crate) fn seal_raw(&mut self, world: &mut World, mut datagram: Vec<u8>) {
        self.seal.seal(world.now, self.sid, &mut datagram, 0).unwrap();
        world.inject(self.address, &datagram);
    }

    /// Sends segments on the first channel.
    pub(crate) fn segments(&mut self, world: &mut World, segments: &[Raw]) {
        let bytes = self.channel(0, segments);
        self.send(world, &[Frame::Kcp(&bytes)]);
    }

    /// The bytes of segments of a channel.
    pub(crate) fn channel(&self, channel: u32, segments: &[Raw]) -> Vec<u8> {
        let mut bytes: Vec<u8> =
            segments.iter().flat_map(|segment| segment.of(self.sid.wrapping_add(channel))).collect();
        let len = Compactor::default().compact(channel.try_into().unwrap(), &mut bytes);
        bytes.truncate(len);
        bytes
    }

    /// The packets that the server has sent since the last call, and their total size in bytes.
    pub(crate) fn packets(&mut self, world: &mut World) -> (Vec<Packet>, usize) {
        self.opened(world, |pn, mut frames, found| {
            let ping =
                frames.find_map(|frame| if let Frame::Ping(stamp) = frame { Some(stamp) } else { None });
            found.push(Packet { pn, ping });
        })
    }

    /// What the server has sent since the last call: the segments of its first channel, and the total size in
    /// bytes.
    pub(crate) fn received(&mut self, world: &mut World) -> (Vec<Raw>, usize) {
        self.opened(world, |_, frames, found| {
            let bytes = frames.flat_map(|frame| {
                let mut bytes = Vec::new();
                if let Frame::Kcp(compact) = frame {
                    expand(compact, &KNOWN, |_, ts| Millis(ts.unwrap_or(0).into()), usize::MAX, &mut bytes)
                        .unwrap();
                }
                bytes
            });
            let bytes: Vec<u8> = bytes.collect();
            for segment in whitewater::kcp::wire::segments(&bytes) {
                let Segment { header: Header { cmd, frg, wnd, ts, sn, una, .. }, data } = segment.unwrap();
                found.push(Raw { cmd, frg, wnd, ts: ts.0, sn: sn.0, una: una.0, data: data.to_vec() });
            }
        })
    }

    /// What `each` finds by the number and the frames of each packet that the server has sent since the last call, and the
    /// total size in bytes.
    fn opened<T>(
        &mut self,
        world: &mut World,
        mut each: impl FnMut(u64, Frames<'_>, &mut Vec<T>),
    ) -> (Vec<T>, usize) {
        let (mut found, mut count) = (Vec::new(), 0);
        let sent = std::mem::take(&mut world.strangers);
        for (_, mut datagram) in sent.into_iter().filter(|(to, _)| *to == self.address) {
            count += datagram.len();
            if let Ok(opened) = self.seal.open(world.now, &mut datagram) {
                each(opened.pn, Frames::parse(opened.body).unwrap(), &mut found);
            }
        }
        (found, count)
    }
}

/// What it knows of a channel on which it has received nothing.
const KNOWN: Known = Known { conv: Conv(0), una: Sn(0), wnd: 0, next: Sn(0), is_rebuilt: false };

fn salt(cid: u64) -> [u8; 32] {
    let mut salt = [1; 32];
    salt[..8].copy_from_slice(&cid.to_le_bytes());
    salt
}

/// The server's answer to a datagram from `from`.
fn ask(world: &mut World, from: SocketAddr, datagram: &[u8]) -> Option<Vec<u8>> {
    world.strangers.clear();
    world.inject(from, datagram);
    let (to, answer) = world.strangers.pop()?;
    (to == from).then_some(answer)
}
