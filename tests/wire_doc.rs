//! The hex dumps in docs/WIRE.md equal what the code sends, mean what the document says, and are accepted or
//! rejected as it says.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that panics has found something")]

use crate::common::configs;
use crate::common::rogue::{Rogue, open_server};
use std::time::Duration;
use whitewater::channel::{Carrier, Channels, ChannelsConfig};
use whitewater::inside::code::Encoder;
use whitewater::inside::compact::{Compactor, Known, expand};
use whitewater::inside::session::wire::{Frame, Frames};
use whitewater::kcp::wire::{Command, Header, Segment, segments};
use whitewater::kcp::{Config, Conv, Kcp, Millis, Sn};
use whitewater::machine::DatagramQueue;
use whitewater::message::{BitReader, BitWriter, BitsError, shape};
use whitewater::packet::{Endpoint, PacketConfig, Seq16};
use whitewater::{Channel, ChannelConfig, Message, ServerConfig, SessionConfig, Time};

const DOCUMENT: &str = include_str!("../docs/WIRE.md");
const CONV: Conv = Conv(0x1122_3344);

#[test]
fn an_exchange_of_three_messages() {
    let (mut alice, mut bob) = (kcp(configs::classic_fast()), kcp(configs::classic_fast()));
    let documented = datagrams("exchange");
    let [there, back, last] = &documented[..] else { panic!("three datagrams") };
    alice.send(b"hi").unwrap();
    alice.send(b"kcp").unwrap();
    assert_eq!(flush_one(&mut alice, 5), *there);
    bob.input(Time::from_millis(40), there).unwrap();
    bob.send(b"ok").unwrap();
    assert_eq!(flush_one(&mut bob, 40), *back);
    alice.input(Time::from_millis(75), back).unwrap();
    assert_eq!(flush_one(&mut alice, 80), *last);
    bob.input(Time::from_millis(115), last).unwrap();
    assert!(alice.is_idle() && bob.is_idle());
}

#[test]
fn a_repair_of_two_segments_is_as_documented() {
    let mut encoder = Encoder::new();
    encoder.begin(1);
    for (sn, data) in [(5, b"hi".as_slice()), (7, b"kcp")] {
        assert!(encoder.add(Sn(sn), 0, u16::try_from(data.len()).unwrap(), |to| to.copy_from_slice(data)));
    }
    let mut payload = vec![0; encoder.payload_len()];
    encoder.finish(&mut payload).unwrap();
    assert_eq!([payload], datagrams("repair")[..]);
}

#[test]
fn a_message_in_fragments() {
    let mut alice = kcp(Config { mtu: 50, ..configs::classic_fast() });
    alice.send(b"a message longer than one segment").unwrap();
    assert_eq!(flush(&mut alice, 5), datagrams("fragments"));
}

#[test]
fn a_stream_fills_segments() {
    let mut alice = kcp(Config { stream: true, ..configs::classic_fast() });
    alice.send(b"hello ").unwrap();
    alice.send(b"world").unwrap();
    assert_eq!(flush(&mut alice, 5), datagrams("stream"));
}

#[test]
fn a_closed_window_is_probed_and_announced() {
    let (mut alice, mut bob) = (kcp(configs::classic_fast()), kcp(configs::classic_fast()));
    let documented = datagrams("probe");
    let [ask, closed, open] = &documented[..] else { panic!("three datagrams") };
    let window = alice.config().snd_wnd;
    for _ in 0..bob.config().rcv_wnd / window {
        for _ in 0..window {
            alice.send(b"unread").unwrap();
        }
        for datagram in flush(&mut alice, 0) {
            bob.input(Time::ZERO, &datagram).unwrap();
        }
        for datagram in flush(&mut bob, 0) {
            alice.input(Time::ZERO, &datagram).unwrap();
        }
    }
    assert_eq!(alice.stats().rmt_wnd, 0);
    assert!(flush(&mut alice, 20).is_empty());
    assert!(flush(&mut alice, 5000).is_empty());
    assert_eq!(flush_one(&mut alice, 5020), *ask);
    bob.input(Time::from_millis(5050), ask).unwrap();
    assert_eq!(flush_one(&mut bob, 5060), *closed);
    bob.recv_into(&mut [0; 6]).unwrap();
    assert_eq!(flush_one(&mut bob, 6000), *open);
}

#[test]
fn ignored_bytes_change_nothing() {
    let documented = datagrams("ignored");
    assert!(documented.len() >= 8);
    for pair in documented.chunks(2) {
        let [decorated, plain] = pair else { panic!("pairs") };
        assert_ne!(decorated, plain);
        let after = [decorated, plain].map(|datagram| {
            let mut alice = with_two_in_flight();
            alice.input(Time::from_millis(40), datagram).unwrap();
            let mut message = [0; 8];
            let received = alice.recv_into(&mut message);
            let out = flush(&mut alice, 45);
            let stats = alice.stats();
            (received, message, out, stats.snd_una, stats.in_flight, stats.rcv_nxt, stats.srtt, stats.rmt_wnd)
        });
        assert_eq!(after[0], after[1]);
    }
}

#[test]
fn rejected_datagrams_change_nothing_but_a_counter() {
    let lines = block("refused").filter(|line| !line.starts_with(';'));
    let mut count = 0;
    for line in lines {
        let (hex, comment) = line.split_once(';').unwrap();
        let (name, _) = comment.trim().split_once(':').unwrap();
        let mut alice = with_two_in_flight();
        let before = alice.stats();
        let error = alice.input(Time::from_millis(40), &unhex(hex)).unwrap_err();
        let found = format!("{error:?}");
        assert_eq!(found.split(' ').next(), Some(name), "{line}");
        let mut after = alice.stats();
        assert_eq!(after.rejected.total(), 1);
        after.rejected = before.rejected;
        assert_eq!(before, after, "{line}");
        count += 1;
    }
    assert_eq!(count, 7, "every kind but TooLong");
}

#[test]
fn the_comments_say_what_the_bytes_mean() {
    let mut count = 0;
    for name in ["exchange", "fragments", "stream", "probe"] {
        for line in block(name).filter(|line| !line.is_empty() && !line.starts_with(';')) {
            let (hex, comment) = line.split_once(';').unwrap();
            let bytes = unhex(hex);
            let (segment, rest) = Segment::decode(&bytes).unwrap();
            assert!(rest.is_empty(), "a segment a line");
            assert_eq!(describe(&segment), comment.trim());
            count += 1;
        }
    }
    assert_eq!(count, 12);
}

#[test]
fn packets_are_the_documented_bytes() {
    let documented: Vec<_> = block("packets").filter(|line| !line.is_empty()).map(hex_of).collect();
    let [hi, ok, first, second, keepalive] = &documented[..] else { panic!("five datagrams") };
    let (mut alice, mut bob) = (endpoint(0), endpoint(u16::MAX));
    alice.send(Time::ZERO, b"hi").unwrap();
    assert_eq!(sent(&mut alice).concat(), *hi);
    assert_eq!(bob.receive(Time::ZERO, hi), Ok(Some(&b"hi"[..])));
    bob.send(Time::ZERO, b"ok").unwrap();
    assert_eq!(sent(&mut bob).concat(), *ok);
    assert_eq!(alice.receive(Time::ZERO, ok), Ok(Some(&b"ok"[..])));
    alice.send(Time::ZERO, b"0123456789ab").unwrap();
    assert_eq!(sent(&mut alice), [first.clone(), second.clone()]);
    assert_eq!(bob.receive(Time::ZERO, second), Ok(None));
    assert_eq!(bob.receive(Time::ZERO, first), Ok(Some(&b"0123456789ab"[..])));
    bob.update(bob.check(Time::ZERO).unwrap());
    assert_eq!(sent(&mut bob).concat(), *keepalive);
    assert_eq!(alice.receive(Time::ZERO, keepalive), Ok(None));
    assert_eq!([(); 3].map(|()| alice.pop_acked()), [Some(Seq16(0)), Some(Seq16(1)), None]);
}

#[test]
fn a_packet_among_others_that_all_arrived_has_the_shortest_header() {
    let [mut alice, mut bob] = [0, 0].map(endpoint);
    for _ in 0..40 {
        for _ in 0..2 {
            alice.send(Time::ZERO, b"x").unwrap();
            bob.receive(Time::ZERO, &sent(&mut alice)[0]).unwrap();
            std::mem::swap(&mut alice, &mut bob);
        }
    }
    alice.send(Time::ZERO, b"hi").unwrap();
    assert_eq!(sent(&mut alice), block("steady").map(hex_of).collect::<Vec<_>>());
}

#[test]
fn rejected_packets_change_nothing_but_a_counter() {
    let mut count = 0;
    for line in block("packets refused") {
        let (name, _) = line.split_once(';').unwrap().1.trim().split_once(':').unwrap();
        let mut alice = endpoint(0);
        alice.send(Time::ZERO, b"hi").unwrap();
        alice.send(Time::ZERO, b"0123456789ab").unwrap();
        alice.receive(Time::ZERO, &hex_of(block("packets").nth(1).unwrap())).unwrap();
        let before = alice.stats();
        let error = alice.receive(Time::ZERO, &hex_of(line)).unwrap_err();
        let found = format!("{error:?}");
        assert_eq!(found.split(' ').next(), Some(name), "{line}");
        let mut after = alice.stats();
        assert_eq!(after.rejected.total(), 1);
        after.rejected = before.rejected;
        assert_eq!(before, after, "{line}");
        count += 1;
    }
    assert_eq!(count, 14, "every kind but TooLong");
}

fn endpoint(first: u16) -> Endpoint<DatagramQueue> {
    let config = PacketConfig {
        protocol_id: 0x7061_636b,
        fragment_above: 8,
        payload_max: 64,
        ..PacketConfig::default()
    };
    Endpoint::starting_at(&config, DatagramQueue::new(), Seq16(first)).unwrap()
}

fn sent(endpoint: &mut Endpoint<DatagramQueue>) -> Vec<Vec<u8>> {
    std::iter::from_fn(|| endpoint.output_mut().pop().map(<[u8]>::to_vec)).collect()
}

/// The bytes of a line, without its comment.
fn hex_of(line: &str) -> Vec<u8> {
    unhex(line.split(';').next().unwrap_or_default())
}

#[test]
fn messages_are_packed_as_documented() {
    const FIRST: Channel<Game> = Channel::ordered(0);
    const SECOND: Channel<Game> = Channel::sequenced(1);
    let channels = vec![ChannelConfig { carrier: Carrier::Packets, ..FIRST.config() }, SECOND.into()];
    let config = ChannelsConfig { channels, ..ChannelsConfig::default() };
    let [mut alice, mut bob] = [(); 2].map(|()| Channels::new(&config).unwrap());
    let (at, expiry) = (Time::ZERO, Duration::from_secs(1));
    alice.send_expiring(at, FIRST, &Game::Chat("hi".to_owned()), Some(expiry)).unwrap();
    alice.send(at, SECOND, &Game::Position(5, 1000)).unwrap();
    assert_eq!(alice.write(at, Duration::ZERO).unwrap(), datagrams("messages").concat());
    alice.on_sent(at, Seq16(0));
    assert_eq!(alice.write(at + expiry, Duration::ZERO).unwrap(), datagrams("expired").concat());
    bob.read(&datagrams("messages").concat()).unwrap();
    assert_eq!(bob.recv(FIRST), Some(Game::Chat("hi".to_owned())));
    assert_eq!(bob.recv(SECOND), Some(Game::Position(5, 1000)));
}

#[test]
fn bytes_are_packed_as_documented_and_what_comes_by_kcp_has_its_place() {
    const FIRST: Channel = Channel::ordered(0);
    const SECOND: Channel = Channel::sequenced(1);
    let channels = vec![ChannelConfig { carrier: Carrier::Packets, ..FIRST.config() }, SECOND.into()];
    let config = ChannelsConfig { channels, ..ChannelsConfig::default() };
    let [mut alice, mut bob, mut carol] = [(); 3].map(|()| Channels::new(&config).unwrap());
    alice.send(Time::ZERO, FIRST, b"hi").unwrap();
    alice.send(Time::ZERO, SECOND, b"hi").unwrap();
    assert_eq!(alice.write(Time::ZERO, Duration::ZERO).unwrap(), datagrams("bytes").concat());
    bob.read(&datagrams("bytes").concat()).unwrap();
    assert_eq!(
        (bob.recv(FIRST).as_deref(), bob.recv(SECOND).as_deref()),
        (Some(&b"hi"[..]), Some(&b"hi"[..]))
    );
    carol.read(&datagrams("beside").concat()).unwrap();
    assert_eq!(carol.recv(FIRST).as_deref(), Some(&b"hi"[..]), "what comes by KCP is not here");
}

/// What a session sends of a message too long for a packet, and of one behind it.
#[test]
fn a_session_sends_what_comes_by_kcp_as_documented() {
    const FIRST: Channel = Channel::ordered(0);
    const SECOND: Channel = Channel::sequenced(1);
    let channels = vec![ChannelConfig { carrier: Carrier::Packets, ..FIRST.config() }, SECOND.into()];
    let session = SessionConfig { channels, ..SessionConfig::default() };
    let mut server = open_server(ServerConfig::insecure(session));
    Rogue::connect(&mut server, 1).unwrap();
    server.strangers.clear();
    server.session().send(FIRST, &[7; 1200]).unwrap();
    server.session().send(FIRST, b"hi").unwrap();
    server.drain();
    let (mut packed, mut data) = (Vec::new(), Vec::new());
    for (_, datagram) in &server.strangers {
        for frame in Frames::parse(&datagram[9..datagram.len() - 4]).unwrap() {
            match frame {
                Frame::Packed(content) => packed.push(content.to_vec()),
                Frame::Kcp(content) => {
                    data.extend(segments(&expanded(content)).map(|segment| segment.unwrap().data.len()));
                }
                _ => {}
            }
        }
    }
    assert_eq!(packed, datagrams("beside"));
    assert_eq!(data.iter().sum::<usize>(), 1200, "{data:?}");
}

#[test]
fn compact_headers_are_as_documented() {
    let una = Sn(5);
    let of = |cmd, ts, sn| Header { conv: CONV, cmd, frg: 0, wnd: 128, ts: Millis(ts), sn: Sn(sn), una };
    let bytes = |all: &[(Header, &[u8])]| {
        let mut bytes = Vec::new();
        all.iter().for_each(|&(header, data)| Segment { header, data }.encode(&mut bytes));
        bytes
    };
    let first = bytes(&[(of(Command::Push, 0x1234, 2), b"hi")]);
    let (push, next) = (of(Command::Push, 0x1235, 3), of(Command::Push, 0x1235, 4));
    let second = bytes(&[(of(Command::Ack, 0x203, 4), b""), (push, b"a"), (next, b"b")]);
    for (channel, whole, documented) in [(0, first, 0), (1, second, 1)] {
        let documented = &datagrams("compact")[documented];
        let mut compactor = Compactor::default();
        (0..9).for_each(|_| _ = compactor.compact(channel, &mut bytes(&[(push, b"")])));
        let mut compact = whole.clone();
        let len = compactor.compact(channel, &mut compact);
        assert_eq!(compact[..len], documented[..]);
        assert_eq!(expanded(documented), whole);
    }
}

/// The segments of a KCP frame as bare KCP has them.
fn expanded(compact: &[u8]) -> Vec<u8> {
    let known = Known { conv: CONV, una: Sn(5), wnd: 128, next: Sn(0), is_rebuilt: false };
    let mut found = Vec::new();
    expand(compact, &known, |_, ts| Millis(ts.unwrap().into()), 9000, &mut found).unwrap();
    found
}

#[derive(Debug, PartialEq)]
enum Game {
    Position(u16, u16),
    Chat(String),
}

impl Message for Game {
    const SHAPE: u64 = shape("Game", &[]);

    fn pack(&self, to: &mut BitWriter) -> Result<(), BitsError> {
        match self {
            Self::Position(x, y) => {
                to.kind(0, 2)?;
                to.int(*x, 0..=1023)?;
                to.int(*y, 0..=1023)
            }
            Self::Chat(text) => {
                to.kind(1, 2)?;
                to.string(text, 200)
            }
        }
    }

    fn unpack(from: &mut BitReader<'_>) -> Result<Self, BitsError> {
        Ok(match from.kind(2)? {
            0 => Self::Position(from.int(0..=1023)?, from.int(0..=1023)?),
            _ => Self::Chat(from.string(200)?),
        })
    }
}

/// A control block that has sent the segments 0 and 1 at 5 ms and received nothing.
fn with_two_in_flight() -> Kcp<DatagramQueue> {
    let mut alice = kcp(configs::classic_fast());
    alice.send(b"hi").unwrap();
    alice.send(b"kcp").unwrap();
    flush(&mut alice, 5);
    alice
}

fn kcp(config: Config) -> Kcp<DatagramQueue> {
    Kcp::new(CONV, &config, DatagramQueue::new()).unwrap()
}

fn flush(kcp: &mut Kcp<DatagramQueue>, ms: u64) -> Vec<Vec<u8>> {
    kcp.flush(Time::from_millis(ms));
    let mut datagrams = Vec::new();
    while let Some(datagram) = kcp.output_mut().pop() {
        assert!(segments(datagram).all(|segment| segment.is_ok()));
        datagrams.push(datagram.to_vec());
    }
    datagrams
}

fn flush_one(kcp: &mut Kcp<DatagramQueue>, ms: u64) -> Vec<u8> {
    let mut datagrams = flush(kcp, ms);
    assert_eq!(datagrams.len(), 1);
    datagrams.remove(0)
}

fn describe(segment: &Segment<'_>) -> String {
    let Segment { header, data } = segment;
    let cmd = format!("{:?}", header.cmd).to_uppercase();
    let numbers = format!("ts {} sn {} una {}", header.ts.0, header.sn, header.una);
    let text = if data.is_empty() { String::new() } else { format!(" {:?}", String::from_utf8_lossy(data)) };
    format!("{cmd} frg {} wnd {} {numbers}{text}", header.frg, header.wnd)
}

/// The datagrams in a block, separated by empty lines or lines with only a comment.
fn datagrams(name: &str) -> Vec<Vec<u8>> {
    let mut datagrams = vec![Vec::new()];
    for line in block(name) {
        let hex = line.split(';').next().unwrap_or_default();
        if hex.is_empty() {
            datagrams.push(Vec::new());
        }
        datagrams.last_mut().unwrap().extend(unhex(hex));
    }
    datagrams.retain(|datagram| !datagram.is_empty());
    datagrams
}

/// The lines of the block that starts with "```hex NAME".
fn block(name: &str) -> impl Iterator<Item = &'static str> {
    let start = format!("```hex {name}\n");
    let (_, rest) = DOCUMENT.split_once(&start).unwrap_or_else(|| panic!("no block {name}"));
    rest.split("```").next().unwrap_or_default().lines()
}

fn unhex(hex: &str) -> Vec<u8> {
    let digits: Vec<_> = hex.chars().filter(|c| !c.is_whitespace()).collect();
    let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}
