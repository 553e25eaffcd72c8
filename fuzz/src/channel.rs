//! Two ends of channels over a link that loses, doubles, reorders and damages what the script says. What arrives was sent, once and
//! in order; when the link turns good everything does, or was given up for its age.

use super::script::{Script, payload};
use bytes::Bytes;
use std::collections::{HashSet, VecDeque};
use std::time::Duration;
use whitewater::channel::{Carrier, ChannelKind, Channels, ChannelsConfig, Resend};
use whitewater::machine::DatagramQueue;
use whitewater::message::{BitReader, BitWriter, BitsError, shape};
use whitewater::packet::{Endpoint, PacketConfig, Seq16};
use whitewater::{Channel, ChannelConfig, Message, Time};

/// The operations of a script. The high bit names the end that does it.
pub mod op {
    /// Which channel u8, bytes u8, lifetime u8 in units of 8 ms; 0: none.
    pub const SEND: u8 = 0;
    /// Which channel of bytes u8, how many u16; more than a packet has room for are refused.
    pub const BYTES: u8 = 1;
    /// A packet leaves. No argument.
    pub const PACKET: u8 = 2;
    /// A datagram under way to this end arrives: which of them u8.
    pub const ARRIVE: u8 = 3;
    /// The same, and its copy stays under way.
    pub const COPY: u8 = 4;
    /// The same, and it is lost instead.
    pub const LOSE: u8 = 5;
    /// The same, damaged, where [`LIES`](super::LIES) are told: where u8, how u8.
    pub const DAMAGE: u8 = 6;
    /// What has come is read, where it is not anyway. No argument.
    pub const READ: u8 = 7;
    /// Units of 8 ms u8.
    pub const WAIT: u8 = 8;
    /// Operations there are.
    pub const COUNT: u8 = 9;
    /// The other end does it.
    pub const OTHER: u8 = 0x80;
}

/// Flag in the first byte of a script: datagrams may be damaged.
pub const LIES: u8 = 1;
/// Flag: what comes is read only when the script says.
pub const LAZY: u8 = 2;
/// Flag: small buffers and packets.
pub const TIGHT: u8 = 4;

/// A number and some bytes that follow from it.
#[derive(Debug)]
struct Test {
    number: u32,
    bytes: Vec<u8>,
}

impl Message for Test {
    const SHAPE: u64 = shape("Test", &[]);

    fn pack(&self, to: &mut BitWriter) -> Result<(), BitsError> {
        to.raw(self.number.into(), 31)?;
        to.byte_vec(&self.bytes, 255)
    }

    fn unpack(from: &mut BitReader<'_>) -> Result<Self, BitsError> {
        let number = u32::try_from(from.raw(31)?).map_err(|_| BitsError::Bounds)?;
        Ok(Self { number, bytes: from.byte_vec(255)? })
    }
}

/// Channels of messages, and of bytes.
const MESSAGES: [Channel<Test>; 4] =
    [Channel::ordered(0), Channel::unordered(1), Channel::unreliable(2), Channel::sequenced(3)];
const BYTES: [Channel; 2] = [Channel::ordered(4), Channel::unordered(5)];

struct Pair {
    ends: [End; 2],
    now: Time,
    flags: u8,
    config: ChannelsConfig,
}

struct End {
    channels: Channels,
    endpoint: Endpoint<DatagramQueue>,
    /// Datagrams under way to this end.
    air: Vec<Vec<u8>>,
    /// For each channel what the other end sent and has not been read here.
    expected: Vec<VecDeque<Sent>>,
    /// For each channel the ids that were given up here.
    expired: Vec<HashSet<Seq16>>,
    /// The packets of this end that have arrived, or were lost.
    told: HashSet<Seq16>,
    numbers: u32,
}

/// What was sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Sent {
    Message { number: u32, id: Seq16, expires: bool },
    Bytes { len: usize, start: u8 },
}

/// What was received.
enum Received {
    Message(Test),
    Bytes(Bytes),
}

/// The next of the channel with this number.
fn recv(channels: &mut Channels, number: usize) -> Option<Received> {
    match MESSAGES.get(number) {
        Some(channel) => channels.recv(*channel).map(Received::Message),
        None => channels.recv(BYTES[number - MESSAGES.len()]).map(Received::Bytes),
    }
}

/// Runs a script: flags, then operations.
///
/// # Panics
///
/// When a message is lost, doubled, damaged or out of order without a lie, when an end keeps more than it may, or when there is
/// still something to do a while after the link has turned good.
pub fn channel_pair(script: &[u8]) {
    let mut script = Script::new(script);
    let flags = script.u8();
    let mut pair = Pair::new(flags);
    while !script.is_done() {
        pair.step(&mut script);
    }
    if flags & LIES == 0 {
        pair.drain();
    }
}

fn config(flags: u8) -> ChannelsConfig {
    let [ordered, unordered, unreliable, sequenced] = MESSAGES.map(Channel::config);
    let bytes = BYTES.map(Channel::config);
    let unordered = ChannelConfig { resend: Resend::Rtt(150), resend_lost: false, ..unordered };
    let mut channels = vec![ordered, unordered, unreliable, sequenced];
    channels.extend(bytes);
    let mut payload_max = 1187;
    for channel in &mut channels {
        channel.carrier = Carrier::Packets;
        if flags & TIGHT != 0 {
            (channel.send_buffer, channel.receive_buffer, channel.messages_per_packet) = (20, 8, 3);
        }
    }
    if flags & TIGHT != 0 {
        payload_max = 280;
    }
    ChannelsConfig { channels, payload_max, packets: 64 }
}

impl Pair {
    fn new(flags: u8) -> Self {
        let config = config(flags);
        let packets = PacketConfig { forget_after: Duration::from_secs(60), ..PacketConfig::default() };
        let end = || End {
            channels: Channels::new(&config).expect("the config is in range"),
            endpoint: Endpoint::starting_at(&packets, DatagramQueue::new(), Seq16(u16::MAX - 9))
                .expect("the config is in range"),
            air: Vec::new(),
            expected: vec![VecDeque::new(); config.channels.len()],
            expired: vec![HashSet::new(); config.channels.len()],
            told: HashSet::new(),
            numbers: 0,
        };
        Self { ends: [end(), end()], now: Time::ZERO, flags, config }
    }

    fn step(&mut self, script: &mut Script<'_>) {
        let operation = script.u8();
        let end = usize::from(operation / op::OTHER);
        match operation % op::OTHER % op::COUNT {
            op::SEND => {
                let (channel, len, lifetime) = (script.u8() % 4, script.u8(), script.u8());
                self.send(end, channel.into(), len.into(), lifetime);
            }
            op::BYTES => {
                let (channel, len) = (script.u8() % 2, script.u16());
                self.send_bytes(end, channel.into(), len.into());
            }
            op::PACKET => self.packet(end),
            op::READ => self.read(end),
            op::WAIT => self.wait(Duration::from_millis(8 * u64::from(script.u8()))),
            operation => {
                let which = usize::from(script.u8());
                let air = &mut self.ends[end].air;
                if air.is_empty() {
                    return;
                }
                let mut datagram = air.remove(which % air.len());
                match operation {
                    op::LOSE => return,
                    op::COPY => air.push(datagram.clone()),
                    op::DAMAGE if self.flags & LIES != 0 => {
                        let at = usize::from(script.u8()) % datagram.len();
                        datagram[at] ^= script.u8();
                    }
                    _ => {}
                }
                self.arrive(end, &datagram);
            }
        }
    }

    fn send(&mut self, end: usize, channel: usize, len: usize, lifetime: u8) {
        let now = self.now;
        let [sender, receiver] = self.both(end);
        let number = sender.numbers;
        let message = Test { number, bytes: payload(len, number.to_le_bytes()[0]) };
        let lifetime = (lifetime > 0).then(|| Duration::from_millis(8 * u64::from(lifetime)));
        if let Ok(id) = sender.channels.send_expiring(now, MESSAGES[channel], &message, lifetime) {
            sender.numbers += 1;
            receiver.expected[channel].push_back(Sent::Message { number, id, expires: lifetime.is_some() });
        }
    }

    fn send_bytes(&mut self, end: usize, channel: usize, len: usize) {
        let now = self.now;
        let most = self.config.payload_max.into();
        let [sender, receiver] = self.both(end);
        let start = sender.numbers.to_le_bytes()[0];
        if sender.channels.send(now, BYTES[channel], &payload(len, start)).is_ok() {
            assert!(len < most, "{len} bytes in a packet");
            sender.numbers += 1;
            receiver.expected[MESSAGES.len() + channel].push_back(Sent::Bytes { len, start });
        }
    }

    fn packet(&mut self, end: usize) {
        let now = self.now;
        let [sender, receiver] = self.both(end);
        let rtt = sender.endpoint.stats().rtt;
        let payload = sender.channels.write(now, rtt).expect("messages write what they measure");
        let sequence = sender.endpoint.send(now, payload).expect("it is no longer than a packet");
        sender.channels.on_sent(now, sequence);
        for (channel, expired) in MESSAGES.into_iter().zip(&mut sender.expired) {
            expired.extend(std::iter::from_fn(|| sender.channels.pop_expired(channel)));
        }
        while let Some(datagram) = sender.endpoint.output_mut().pop() {
            if receiver.air.len() < AIR_MAX {
                receiver.air.push(datagram.to_vec());
            }
        }
    }

    fn arrive(&mut self, end: usize, datagram: &[u8]) {
        let now = self.now;
        let End { channels, endpoint, told, .. } = &mut self.ends[end];
        let _ = endpoint.receive_if(now, datagram, |payload| channels.read(payload).is_ok());
        while let Some(sequence) = endpoint.pop_lost() {
            assert!(told.insert(sequence), "it has arrived, or was lost before");
            channels.on_lost(sequence);
        }
        while let Some(sequence) = endpoint.pop_acked() {
            told.insert(sequence);
            channels.on_acked(sequence);
        }
        for channel in &self.config.channels {
            assert!(channels.waiting(channel.channel) <= channel.send_buffer);
        }
        if self.flags & LAZY == 0 {
            self.read(end);
        }
    }

    /// Reads everything, and looks whether it is what was sent.
    fn read(&mut self, end: usize) {
        let lies = self.flags & LIES != 0;
        let End { channels, expected, .. } = &mut self.ends[end];
        for (index, expected) in expected.iter_mut().enumerate() {
            let config = self.config.channels[index];
            let most = 2 * usize::from(config.receive_buffer) + usize::from(config.messages_per_packet);
            let received: Vec<_> = std::iter::from_fn(|| recv(channels, index)).collect();
            assert!(received.len() <= most, "{} messages are kept", received.len());
            for received in received.into_iter().filter(|_| !lies) {
                match config.channel.kind() {
                    ChannelKind::Ordered => take_next(expected, &received),
                    ChannelKind::Unordered | ChannelKind::Unreliable => {
                        let at = expected.iter().position(|sent| is_same(*sent, &received));
                        expected.remove(at.expect("it was sent, and has not come before"));
                    }
                    _ => {
                        let at = expected.iter().position(|sent| is_same(*sent, &received));
                        expected.drain(..=at.expect("it was sent, and nothing newer has come"));
                    }
                }
            }
        }
        let rejected = channels.rejected();
        assert!(lies || (rejected.bits, rejected.empty) == (0, 0), "{rejected:?}");
        assert!(
            self.flags & (LIES | LAZY) != 0 || rejected.no_room == 0,
            "more was sent than there is room for"
        );
    }

    fn wait(&mut self, duration: Duration) {
        self.now = (self.now + duration).min(SCRIPT_MAX);
        for end in &mut self.ends {
            end.endpoint.update(self.now);
            while end.endpoint.output_mut().pop().is_some() {} // keepalives, which are lost
        }
    }

    /// The link turns good: everything is to arrive, and then both ends have nothing left to do.
    fn drain(&mut self) {
        assert!((0..ROUNDS_MAX).any(|_| self.round()), "still not done");
        self.check_done();
    }

    /// What is under way arrives, and a packet of each end leaves. Whether all is done.
    fn round(&mut self) -> bool {
        for end in [0, 1] {
            for datagram in std::mem::take(&mut self.ends[end].air) {
                self.arrive(end, &datagram);
            }
            self.read(end);
            self.packet(end);
        }
        self.now = self.now + Duration::from_millis(20);
        let now = self.now;
        self.ends.iter().all(|end| end.channels.check(now, Duration::ZERO).is_none())
    }

    /// What was reliable has come, or its sender says that it was given up.
    fn check_done(&mut self) {
        for end in [0, 1] {
            self.read(end);
            let config = self.config.clone();
            let [sender, receiver] = self.both(end);
            let reliable = config.channels.iter().map(|config| config.channel);
            for (channel, expected) in reliable.zip(&mut receiver.expected) {
                if channel.kind().is_reliable() {
                    let expired = &sender.expired[usize::from(channel.number())];
                    expected.retain(|sent| !matches!(sent, Sent::Message { id, .. } if expired.contains(id)));
                    assert!(expected.is_empty(), "{expected:?} did not come");
                    assert_eq!(sender.channels.waiting(channel), 0);
                }
            }
        }
    }

    /// An end and the other one.
    fn both(&mut self, end: usize) -> [&mut End; 2] {
        let [one, other] = &mut self.ends;
        if end == 0 { [one, other] } else { [other, one] }
    }
}

/// Takes what comes next in order, past what may have expired.
fn take_next(expected: &mut VecDeque<Sent>, received: &Received) {
    loop {
        let sent = expected.pop_front().expect("no more than was sent");
        if is_same(sent, received) {
            return;
        }
        assert!(matches!(sent, Sent::Message { expires: true, .. }), "{sent:?} should have come");
    }
}

fn is_same(sent: Sent, received: &Received) -> bool {
    match (sent, received) {
        (Sent::Message { number, .. }, Received::Message(message)) => {
            number == message.number && message.bytes == payload(message.bytes.len(), number.to_le_bytes()[0])
        }
        (Sent::Bytes { len, start }, Received::Bytes(bytes)) => *bytes == payload(len, start),
        _ => false,
    }
}

/// Honest and not, read at once and not, with room and without.
#[must_use]
pub fn seeds() -> Vec<(String, Vec<u8>)> {
    let mut seeds = Vec::new();
    for flags in 0..8u8 {
        for loss in [2, 3, 7] {
            let mut bytes = vec![flags];
            for round in 0..60u8 {
                let end = if round % 5 == 4 { op::OTHER } else { 0 };
                bytes.extend_from_slice(&[
                    op::SEND | end,
                    round,
                    round.wrapping_mul(7),
                    if round % 9 == 0 { 5 } else { 0 },
                ]);
                if round % 20 == 10 {
                    bytes.extend_from_slice(&[
                        op::BYTES | end,
                        0,
                        round.wrapping_mul(5),
                        u8::from(flags & TIGHT == 0),
                    ]);
                }
                bytes.extend_from_slice(&[op::PACKET, op::WAIT, 3]);
                let fate = if round % loss == 0 { op::LOSE } else { op::ARRIVE + round % 2 };
                bytes.extend_from_slice(&[fate | op::OTHER, round % 3]);
                if round % 11 == 5 {
                    bytes.extend_from_slice(&[
                        op::PACKET,
                        op::DAMAGE | op::OTHER,
                        0,
                        round,
                        1 << (round % 8),
                    ]);
                }
                bytes.extend_from_slice(&[op::PACKET | op::OTHER, op::ARRIVE, 0]);
                if round % 8 == 0 {
                    bytes.extend_from_slice(&[op::READ | op::OTHER, op::READ]);
                }
            }
            seeds.push((format!("flags-{flags}-loss-{loss}"), bytes));
        }
    }
    seeds
}

/// Most datagrams under way to an end.
const AIR_MAX: usize = 64;
/// Longest virtual time of a script: less than what an endpoint remembers packets for.
const SCRIPT_MAX: Time = Time::from_millis(50_000);
/// Rounds of 20 ms until everything has arrived over a good link.
const ROUNDS_MAX: usize = 3000;
