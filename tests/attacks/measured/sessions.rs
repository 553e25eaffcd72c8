//! Datagrams of sessions: every frame, as many of it as fit, and what is refused.

use super::{count, count_after};
use crate::common::Raw;
use crate::common::machine::Whole as _;
use crate::common::rogue::{Rogue, open_server};
use crate::common::sessions::{World, client_address, default_kcp, in_packets, ordered};
use std::time::Duration;
use whitewater::inside::code::Encoder;
use whitewater::inside::message::BitWriter;
use whitewater::inside::session::wire::{
    AckFrame, EcnFrame, FEATURE_ECN, FEATURE_REPAIRS, FRAMES_MAX, Frame, FrameWriter, KcpPart, LossFrame,
};
use whitewater::kcp::{Config, Sn};
use whitewater::pace::MaxRate;
use whitewater::packet::Seq16;
use whitewater::{Channel, ChannelConfig, Repairs, ServerConfig, SessionConfig};

/// A server and a client of it that sends whatever it likes.
struct Room {
    world: World,
    rogue: Rogue,
}

impl Room {
    fn new(session: SessionConfig) -> Self {
        let mut world = open_server(ServerConfig { memory: 1 << 34, ..ServerConfig::insecure(session) });
        let (address, features) = (client_address(1, 666), FEATURE_ECN | FEATURE_REPAIRS);
        let rogue = Rogue::join_with(&mut world, address, 1, features).unwrap();
        Self { world, rogue }
    }

    fn count(&mut self, what: &str, frames: &[Frame<'_>]) {
        let datagram = self.rogue.sealed(&self.world, frames);
        self.count_raw(what, &datagram);
        assert!(self.world.session().is_connected(), "{what}");
    }

    fn count_raw(&mut self, what: &str, datagram: &[u8]) {
        let mut out = Vec::with_capacity(9000);
        let Self { world, rogue } = &mut *self;
        count(what, || world.server.give(world.now, rogue.address, datagram));
        count_after(what, || while world.server.emit_to(world.now, &mut out).is_some() {});
        world.drain();
        self.pass(10);
    }

    fn pass(&mut self, millis: u64) {
        self.world.run(millis);
        self.world.strangers.clear();
    }

    /// As many of a frame as a datagram may have.
    fn count_many(&mut self, what: &str, frame: impl Fn(u32) -> Frame<'static>) {
        let most = u32::try_from(FRAMES_MAX).unwrap();
        let len =
            self.rogue.sealed(&self.world, &[frame(0)]).len() - self.rogue.sealed(&self.world, &[]).len() + 2;
        let frames: Vec<_> = (0..most.min(1150 / u32::try_from(len).unwrap())).map(frame).collect();
        self.count(what, &frames);
    }
}

pub(super) fn all() {
    signs();
    lanes(1, 8192);
    lanes(32, 2048);
    packets(1 << 14, 1, 1 << 15);
    packets(1 << 14, 96, 256);
    datagrams();
    repairs();
}

/// What ends tell each other beside data.
fn signs() {
    let max_rate = Some(MaxRate::new(1000));
    let channels = ordered([default_kcp(); 32]);
    let mut room = Room::new(SessionConfig {
        ecn: true,
        max_rate,
        repairs: Repairs::Auto,
        channels,
        unacked: 1 << 15,
        ..SessionConfig::default()
    });
    for channel in 0..32 {
        room.world.session().send(Channel::<[u8]>::ordered(channel), &[1; 100]).unwrap();
    }
    room.pass(100);
    room.count("session: PINGs", &[]);
    room.count_many("session: PINGs", |n| Frame::Ping(n.into()));
    room.count_many("session: PONGs", |n| Frame::Pong((1_000_000 + n).into()));
    room.count_many("session: PATH_CHALLENGEs", |n| Frame::PathChallenge([n as u8; 8]));
    room.count_many("session: PATH_RESPONSEs", |n| Frame::PathResponse([n as u8; 8]));
    room.count_many("session: ECNs of 32 channels", |n| {
        Frame::Ecn(EcnFrame { unmarked: 0, capable: 0, congested: n })
    });
    room.count_many("session: LOSSes", |n| {
        Frame::Loss(LossFrame { newest: Seq16(n as u16 % 3), rebuilt: u32::MAX, share: 9 })
    });
    room.count("session: PAD", &[Frame::Pad(1100)]);
    let mut twice = room.rogue.sealed(&room.world, &[Frame::Pad(1100)]);
    room.count_raw("session: a copy", &twice.clone());
    room.count_raw("session: a copy", &twice);
    twice[100] ^= 1;
    room.count_raw("session: a forgery", &twice);
    room.count_many("session: KCP_PARTs", |n| {
        Frame::KcpPart(KcpPart { number: Seq16(n as u16), id: 0, last: 254 }, &[1])
    });
    room.count_many("session: KCP_PARTs of a frame", |n| {
        Frame::KcpPart(KcpPart { number: Seq16(99), id: n as u8, last: 254 }, &[1])
    });
}

/// Channels by KCP.
fn lanes(channels: usize, window: u16) {
    let name = format!("session, {channels} channels by KCP with windows of {window}:");
    let kcp = Config { snd_wnd: window, rcv_wnd: window, snd_queue: 1 << 20, ..default_kcp() };
    let config = || SessionConfig {
        channels: ordered(vec![kcp; channels]),
        send_memory: 1 << 30,
        receive_memory: 1 << 30,
        unacked: 1 << 15,
        ..SessionConfig::default()
    };
    let (many, count) = (u32::from(window), channels as u32);
    let mut room = Room::new(config());
    for channel in 0..count {
        let bytes = room.rogue.channel(channel, &[Raw::wins(window)]);
        room.rogue.send(&mut room.world, &[Frame::Kcp(&bytes)]);
        for _ in 0..many {
            let channel = Channel::<[u8]>::ordered(channel as u8);
            room.world.session().send(channel, &[1; 40]).unwrap();
        }
    }
    room.pass(200);
    let frames = |room: &mut Room, what: &str, raw: &dyn Fn(u32) -> Raw| {
        let bytes: Vec<_> =
            (0..40).map(|n| room.rogue.channel(n % count, &[Raw { wnd: window, ..raw(n) }])).collect();
        let frames: Vec<_> = bytes.iter().map(|bytes| Frame::Kcp(bytes)).collect();
        room.count(&format!("{name} frames of {what}"), &frames);
        let segments: Vec<_> = (0..45).map(|n| Raw { wnd: window, ..raw(n) }).collect();
        let bytes = room.rogue.channel(0, &segments);
        room.count(&format!("{name} a frame of {what}"), &[Frame::Kcp(&bytes)]);
    };
    frames(&mut room, "ACKs", &|n| Raw::ack(many / 2 + n, 0));
    frames(&mut room, "WASKs", &|_| Raw::wask());
    frames(&mut room, "WINSs", &|_| Raw::wins(0));
    frames(&mut room, "PUSHs all over the window", &|n| Raw::push(many - 1 - 40 * n, b""));
    frames(&mut room, "the same again", &|n| Raw::push(many - 1 - 40 * n, b""));
    frames(&mut room, "una that moves", &|n| Raw { una: 10 * n, ..Raw::wins(0) });
    frames(&mut room, "una of the rest", &|_| Raw { una: many, ..Raw::wins(0) });
}

/// Channels in packets: all messages under way.
fn packets(buffer: u16, messages_per_packet: u16, unacked: u16) {
    let name = format!("session, 32 channels in packets of {messages_per_packet} messages:");
    let channel = |number: u8| ChannelConfig {
        send_buffer: buffer,
        receive_buffer: buffer,
        messages_per_packet,
        ..if number.is_multiple_of(2) {
            Channel::<[u8]>::unordered(number).config()
        } else {
            in_packets(Channel::ordered(number))
        }
    };
    let config = SessionConfig {
        channels: (0..32).map(channel).collect(),
        send_memory: 1 << 30,
        receive_memory: 1 << 30,
        unacked,
        ..SessionConfig::default()
    };
    let mut room = Room::new(config);
    for number in 0..4 {
        for _ in 0..buffer {
            let session = room.world.session();
            if number % 2 == 0 {
                session.send(Channel::<[u8]>::unordered(number), &[1; 4]).unwrap();
            } else {
                session.send(Channel::<[u8]>::ordered(number), &[1; 4]).unwrap();
            }
        }
    }
    room.world.run(50);
    let sent: Vec<_> = room.rogue.packets(&mut room.world).0.iter().map(|packet| packet.pn).collect();
    println!("sent {}", sent.len());
    // The newest that was sent before the last 33 * n, and those before it that were sent.
    let ack = |n: u32| {
        let newest = sent[(sent.len() - 1).saturating_sub(33 * n as usize)];
        let bits = (0..32).filter(|bit| newest > *bit && sent.contains(&(newest - 1 - bit)));
        let bits = bits.fold(0, |bits, bit| bits | 1_u32 << bit);
        Frame::Ack(AckFrame { ack: Seq16(newest as u16), bits, delay: 0 })
    };
    room.count(&format!("{name} an ACK"), &[ack(0)]);
    room.count_many(&format!("{name} ACKs of the same"), |_| ack(0));
    room.count_many(&format!("{name} ACKs, each of 33 others"), ack);
    room.count_many(&format!("{name} the same again"), ack);
    let payload = |id: u16| {
        let mut to = BitWriter::new(Vec::new());
        for _ in 0..32 {
            to.bool(true).unwrap();
            to.int(1_u16, 1..=messages_per_packet).unwrap();
            to.int(id, 0..=u16::MAX).unwrap();
            to.bool(true).unwrap();
            to.int(1_u16, 0..=2047).unwrap();
            to.append(&[0], 8).unwrap();
        }
        to.finish()
    };
    let first = payload(1);
    room.count(&format!("{name} a message on each"), &[Frame::Packed(&first)]);
    let far = payload(buffer - 1);
    room.count(&format!("{name} the farthest message on each"), &[Frame::Packed(&far)]);
    room.count(&format!("{name} the same again"), &[Frame::Packed(&far)]);
    // One channel, as many messages as fit.
    let one = |from: u16| {
        let mut to = BitWriter::new(Vec::new());
        for number in 0..32 {
            to.bool(number == 1).unwrap();
            if number == 1 {
                let count = messages_per_packet;
                to.int(count, 1..=messages_per_packet).unwrap();
                for n in 0..count {
                    if n == 0 {
                        to.int(from, 0..=u16::MAX).unwrap()
                    } else {
                        to.relative(from + n, from + n - 1).unwrap()
                    }
                    to.bool(true).unwrap();
                    to.int(1_u16, 0..=2047).unwrap();
                    to.append(&[0], 8).unwrap();
                }
            }
        }
        to.finish()
    };
    let most = usize::from(messages_per_packet);
    for first in (20..4000_u16).step_by(most) {
        let payload = one(first);
        let frames = [Frame::Packed(&payload)];
        if first == 20 {
            room.count(&format!("{name} messages of a channel"), &frames);
            room.count(&format!("{name} the same again"), &frames);
        } else {
            room.rogue.send(&mut room.world, &frames)
        }
    }
    let gap: Vec<_> = (7..20).map(one).collect();
    for payload in &gap {
        room.rogue.send(&mut room.world, &[Frame::Packed(payload)]);
    }
    let gap = one(0);
    room.count(&format!("{name} the message that 4000 waited for"), &[Frame::Packed(&gap)]);
    // Nothing is acknowledged any more: a tick of the owner.
    room.world.now = room.world.now + Duration::from_secs(1);
    let (world, mut out) = (&mut room.world, Vec::with_capacity(9000));
    count_after(&format!("{name} resends"), || _ = world.server.emit_to(world.now, &mut out));
}

fn datagrams() {
    let most = 1 << 24;
    let mut room = Room::new(SessionConfig {
        datagrams_in: most,
        datagrams_out: most,
        unacked: 1 << 15,
        ..SessionConfig::default()
    });
    room.count_many("session: DGRAMs", |_| Frame::Dgram(b"1"));
    room.count("session: DGRAM", &[Frame::Dgram(&[1; 1100])]);
}

/// Packets of which two of three are missing, and repairs of them: the last one rebuilds as many as can be.
fn repairs() {
    let name = "session with repairs:";
    let mut room = Room::new(SessionConfig {
        repairs: Repairs::Auto,
        datagrams_in: 1 << 24,
        ..SessionConfig::default()
    });
    let data = [7; 1000];
    let mut body = Vec::new();
    FrameWriter::new(&mut body, 1400).push(&Frame::Dgram(&data)).unwrap();
    for _ in 0..4 {
        let first = room.rogue.next() as u32;
        for number in 0..54 {
            let datagram = room.rogue.sealed(&room.world, &[Frame::Dgram(&data)]);
            if number % 3 == 0 {
                room.count_raw(&format!("{name} a packet"), &datagram);
            }
        }
        let mut encoder = Encoder::new();
        for index in 0..60 {
            encoder.begin(index);
            for number in 0..54 {
                let len = body.len() as u16;
                assert!(encoder.add(Sn(first + number), 0, len, |to| to.copy_from_slice(&body)));
            }
            let mut payload = vec![0; encoder.payload_len()];
            encoder.finish(&mut payload).unwrap();
            let before = room.world.session().stats().repairs.rebuilt;
            room.count(&format!("{name} a REPAIR"), &[Frame::Repair(first, &payload)]);
            let rebuilt = room.world.session().stats().repairs.rebuilt - before;
            if rebuilt > 0 {
                println!("rebuilt {rebuilt}");
            }
        }
    }
}
