//! What a channel promises over bad links, in virtual time, and what it costs.

#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

use crate::common;

use common::{at, ms};
use std::ops::Range;
use std::time::Duration;
use whitewater::Time;
use whitewater::message::channel::{ChannelConfig, ChannelPeer, Channels, ChannelsConfig, Received, Resend};
use whitewater::message::{BitsError, ChannelSendError, Message, ReadError, Serialize, Stream, Write};
use whitewater::packet::{PacketConfig, Seq16};
use whitewater_sim::{Link, LinkConfig, Loss, Pair};

/// Numbers, and bytes of some length.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Test {
    Number(u32),
    Bytes(Vec<u8>),
}

impl Serialize for Test {
    fn serialize<S: Stream>(&mut self, stream: &mut S) -> Result<(), BitsError> {
        match self {
            Self::Number(number) => stream.bits(number, 32),
            Self::Bytes(bytes) => stream.byte_vec(bytes, 2000),
        }
    }
}

impl Message for Test {
    const KINDS: u32 = 3;

    fn kind(&self) -> u32 {
        match self {
            Self::Number(_) => 0,
            Self::Bytes(_) => 1,
        }
    }

    /// The third kind is numbered and there is none.
    fn blank(kind: u32) -> Option<Self> {
        match kind {
            0 => Some(Self::Number(0)),
            1 => Some(Self::Bytes(Vec::new())),
            _ => None,
        }
    }
}

type End = ChannelPeer<Test>;

fn config(channels: &[ChannelConfig]) -> ChannelsConfig {
    ChannelsConfig { channels: channels.to_vec(), ..ChannelsConfig::default() }
}

/// Silent when there is nothing to say.
fn pair(channels: &[ChannelConfig], link: &LinkConfig, seed: u64) -> Pair<End, End> {
    let packets = PacketConfig { keepalive: None, ..PacketConfig::default() };
    let end = || End::new(([0; 4], 0).into(), &config(channels), &packets, ms(15)).unwrap();
    let link = |stream| Link::new(link.clone(), seed, stream).unwrap();
    Pair::new(end(), end(), [link(1), link(2)])
}

/// Loses so many, lets others overtake, doubles some.
fn bad(loss: f64) -> LinkConfig {
    let (jitter, loss) = (ms(30), Loss::Random(loss));
    LinkConfig { jitter, in_order: false, loss, duplicate: 0.05, ..LinkConfig::with_rtt(ms(60)) }
}

fn bare(channel: ChannelConfig) -> [Channels<Test>; 2] {
    [(); 2].map(|()| Channels::new(&config(&[channel])).unwrap())
}

fn numbers(end: &mut Channels<Test>) -> Vec<u32> {
    let number =
        |received| if let Received::Message(Test::Number(number)) = received { number } else { u32::MAX };
    std::iter::from_fn(|| end.recv(0)).map(number).collect()
}

fn push_numbers(end: &mut Channels<Test>, numbers: Range<u32>) {
    for number in numbers {
        end.send(0, at(0), Test::Number(number)).unwrap();
    }
}

/// Alice sends `count` numbers, one each 10 ms; returns what bob got, when nothing happens any more.
fn send_numbers(pair: &mut Pair<End, End>, count: u32) -> Vec<u32> {
    let mut received = Vec::new();
    for number in 0..count {
        let now = pair.now();
        pair.alice.channels_mut().send(0, now, Test::Number(number)).unwrap();
        pair.run_for(ms(10));
        received.extend(numbers(pair.bob.channels_mut()));
    }
    pair.run_for(Duration::from_secs(60));
    received.extend(numbers(pair.bob.channels_mut()));
    received
}

#[test]
fn every_message_arrives_once_and_in_order_whatever_is_lost() {
    for (loss, most) in [(0.0, 1.3), (0.1, 1.5), (0.3, 2.0), (0.6, 4.0)] {
        for seed in 1..=4 {
            let mut pair = pair(&[ChannelConfig::reliable_ordered()], &bad(loss), seed);
            let received = send_numbers(&mut pair, 2000);
            assert!(received.iter().copied().eq(0..2000), "loss {loss}, seed {seed}");
            let stats = pair.alice.channels().stats(0);
            let copies = (stats.sent + stats.resends) as f64 / stats.sent as f64;
            assert!(copies < most, "loss {loss}, seed {seed}: each sent {copies} times");
            assert_eq!(pair.alice.channels().check(pair.now(), ms(0)), None);
        }
    }
}

#[test]
fn unordered_messages_arrive_once_each_and_wait_for_no_other() {
    for seed in 1..=4 {
        let mut pair = pair(&[ChannelConfig::reliable_unordered()], &bad(0.3), seed);
        let mut received = send_numbers(&mut pair, 2000);
        assert!(!received.is_sorted(), "seed {seed}: something overtook");
        received.sort_unstable();
        assert!(received.iter().copied().eq(0..2000), "seed {seed}");
    }
}

#[test]
fn unreliable_messages_are_sent_once_and_a_sequence_never_goes_back() {
    for (channel, is_sequence) in
        [(ChannelConfig::unreliable(), false), (ChannelConfig::unreliable_sequenced(), true)]
    {
        let mut pair = pair(&[channel], &bad(0.3), 7);
        let received = send_numbers(&mut pair, 2000);
        assert_eq!(received.is_sorted_by(|one, next| one < next), is_sequence);
        let share = if is_sequence { 800..1400 } else { 1250..1550 };
        assert!(share.contains(&received.len()), "{} arrived", received.len());
        let (alice, bob) = (pair.alice.channels().stats(0), pair.bob.channels().stats(0));
        assert_eq!((alice.sent, alice.resends), (2000, 0));
        assert_eq!((bob.old > 0, bob.received), (is_sequence, received.len() as u64));
    }
}

#[test]
fn nothing_is_sent_when_all_is_acknowledged() {
    let mut pair = pair(&[ChannelConfig::reliable_ordered()], &bad(0.2), 3);
    send_numbers(&mut pair, 100);
    let sent = pair.links.each_ref().map(|link| link.stats().sent);
    pair.run_for(Duration::from_secs(3600));
    assert_eq!(pair.links.map(|link| link.stats().sent), sent);
    assert_eq!(pair.alice.channels_mut().write(at(9_999_999), ms(0)), Ok(&[][..]));
}

/// The messages that a packet of alice's brings to bob, who acknowledges it.
fn exchange(alice: &mut Channels<Test>, bob: &mut Channels<Test>, now: Time, sequence: u16) -> Vec<u32> {
    let payload = alice.write(now, ms(0)).unwrap();
    bob.read(payload).unwrap();
    alice.on_sent(now, Seq16(sequence));
    alice.on_acked(Seq16(sequence));
    numbers(bob)
}

#[test]
fn an_id_beyond_the_buffer_of_the_peer_is_never_sent() {
    let channel = ChannelConfig { receive_buffer: 8, ..ChannelConfig::reliable_ordered() };
    let [mut alice, mut bob] = bare(channel);
    push_numbers(&mut alice, 0..20);
    // The first 3 go in a packet that is lost.
    let few = ChannelConfig { messages_per_packet: 3, ..channel };
    let [mut careful, mut reader] = bare(few);
    push_numbers(&mut careful, 0..20);
    careful.write(at(0), ms(0)).unwrap();
    careful.on_sent(at(0), Seq16(0));
    let mut arrived = Vec::new();
    for sequence in 1..10 {
        arrived.extend(exchange(&mut careful, &mut reader, at(sequence.into()), sequence));
    }
    assert_eq!(arrived, [], "they wait for the first");
    assert_eq!(
        (careful.stats(0).sent, careful.waiting(0)),
        (8, 20),
        "8 of them, and no more until the first arrives"
    );
    assert_eq!(exchange(&mut careful, &mut reader, at(100), 20), (0..8).collect::<Vec<_>>());
    assert_eq!(exchange(&mut alice, &mut bob, at(0), 0), (0..8).collect::<Vec<_>>());
}

#[test]
fn a_full_store_refuses_until_something_is_acknowledged() {
    let channel = ChannelConfig { send_buffer: 4, ..ChannelConfig::reliable_ordered() };
    let [mut alice, mut bob] = bare(channel);
    for number in 0..4 {
        assert!(alice.has_room(0));
        assert_eq!(alice.send(0, at(0), Test::Number(number.into())), Ok(Seq16(number)));
    }
    assert!(!alice.has_room(0));
    assert_eq!(alice.send(0, at(0), Test::Number(4)), Err(ChannelSendError::Full { waiting: 4, max: 4 }));
    assert_eq!(exchange(&mut alice, &mut bob, at(0), 0), [0, 1, 2, 3]);
    assert_eq!(alice.send(0, at(0), Test::Number(4)), Ok(Seq16(4)));
}

#[test]
fn a_receiver_that_does_not_read_holds_the_sender_back_and_loses_nothing() {
    let channel = ChannelConfig { receive_buffer: 16, ..ChannelConfig::reliable_ordered() };
    let mut pair = pair(&[channel], &bad(0.1), 5);
    for number in 0..100 {
        let now = pair.now();
        pair.alice.channels_mut().send(0, now, Test::Number(number)).unwrap();
    }
    pair.run_for(Duration::from_secs(5));
    assert!(pair.bob.channels().rejected().no_room > 0 && pair.alice.channels().waiting(0) >= 84);
    let mut received = Vec::new();
    for _ in 0..100 {
        received.extend(numbers(pair.bob.channels_mut()));
        pair.run_for(ms(200));
    }
    assert!(received.iter().copied().eq(0..100), "{received:?}");
}

#[test]
fn what_expires_is_reported_and_those_after_it_are_delivered() {
    for seed in 1..=4 {
        let channel = ChannelConfig { expire_after: Some(ms(250)), ..ChannelConfig::reliable_ordered() };
        let outage = LinkConfig { outages: vec![at(1000)..at(2000)], ..bad(0.2) };
        let mut pair = pair(&[channel], &outage, seed);
        let received = send_numbers(&mut pair, 300);
        assert!(received.is_sorted_by(|one, next| one < next), "seed {seed}: {received:?}");
        let alice = pair.alice.channels_mut();
        let expired: Vec<u32> = std::iter::from_fn(|| alice.pop_expired(0)).map(|id| id.0.into()).collect();
        assert!(
            (0..300).all(|number| received.contains(&number) || expired.contains(&number)),
            "seed {seed}"
        );
        assert!((60..130).contains(&expired.len()), "seed {seed}: {} expired", expired.len());
        assert_eq!((alice.waiting(0), alice.stats(0).expired), (0, expired.len() as u64));
        assert_eq!(received.last(), Some(&299), "seed {seed}");
        let skipped = pair.bob.channels().stats(0).skipped;
        assert_eq!(received.len() as u64 + skipped, 300, "seed {seed}: every id is one or the other");
    }
}

#[test]
fn a_message_that_expired_behind_its_arrival_is_delivered_once() {
    let [mut alice, mut bob] = bare(ChannelConfig::reliable_ordered());
    alice.send_expiring(0, at(0), Test::Number(7), Some(ms(100))).unwrap();
    let late = alice.write(at(0), ms(0)).unwrap().to_vec();
    alice.on_sent(at(0), Seq16(0));
    bob.read(&late).unwrap(); // and its acknowledgement is lost
    assert_eq!(alice.check(at(50), ms(0)), Some(at(100)));
    let notice = alice.write(at(100), ms(0)).unwrap().to_vec();
    assert_eq!((notice.len(), alice.pop_expired(0), alice.pop_expired(0)), (3, Some(Seq16(0)), None));
    alice.on_sent(at(100), Seq16(1));
    bob.read(&notice).unwrap();
    assert_eq!(numbers(&mut bob), [7]);
    assert_eq!((bob.stats(0).skipped, bob.stats(0).duplicates), (0, 1));
    // The other way round: the notice overtakes.
    let [_, mut other] = bare(ChannelConfig::reliable_ordered());
    other.read(&notice).unwrap();
    other.read(&late).unwrap();
    assert_eq!((numbers(&mut other), other.stats(0).skipped), (vec![], 1));
}

#[test]
fn a_block_arrives_whole_in_its_turn_beside_another_channel() {
    let (len, chat) = (200_000, ChannelConfig::reliable_ordered());
    for seed in 1..=3 {
        let mut pair = pair(&[chat, ChannelConfig::blocks()], &bad(0.2), seed);
        let block: Vec<u8> = (0..len).map(|index: u32| (index * 7 + index / 251).to_le_bytes()[0]).collect();
        let alice = pair.alice.channels_mut();
        alice.send(1, at(0), Test::Number(1)).unwrap();
        alice.send_block(1, &block).unwrap();
        alice.send(1, at(0), Test::Number(2)).unwrap();
        assert_eq!(alice.send_block(1, &block), Err(ChannelSendError::BlockUnderWay));
        alice.send(0, at(0), Test::Number(3)).unwrap();
        assert!(
            pair.run_until(ms(1000), |pair| pair.bob.channels_mut().recv(0).is_some()),
            "seed {seed}: chat waits"
        );
        let (mut received, start) = (Vec::new(), pair.now());
        let done = pair.run_until(Duration::from_secs(20), |pair| {
            received.extend(std::iter::from_fn(|| pair.bob.channels_mut().recv(1)));
            received.len() == 3
        });
        assert!(done, "seed {seed}: {} of 3", received.len());
        let message = |number| Received::Message(Test::Number(number));
        assert!(received == [message(1), Received::Block(block.clone()), message(2)], "seed {seed}");
        let took = pair.now().since(start);
        assert!(took < ms(6000), "seed {seed}: {took:?} for 391 slices, two each 15 ms");
        pair.run_for(Duration::from_secs(5));
        pair.alice.channels_mut().send_block(1, &block).unwrap();
    }
}

#[test]
fn a_second_block_is_refused_while_the_first_is_unread() {
    let [mut alice, mut bob] = bare(ChannelConfig::blocks());
    alice.send_block(0, &[1; 100]).unwrap();
    bob.read(alice.write(at(0), ms(0)).unwrap()).unwrap();
    alice.on_sent(at(0), Seq16(0));
    alice.on_acked(Seq16(0));
    alice.send_block(0, &[2; 100]).unwrap();
    let second = alice.write(at(0), ms(0)).unwrap();
    assert_eq!(bob.read(second), Err(ReadError::NoRoom { id: Seq16(1) }));
    assert_eq!(bob.recv(0), Some(Received::Block(vec![1; 100])));
    assert_eq!(bob.read(second), Ok(()));
    assert_eq!(bob.recv(0), Some(Received::Block(vec![2; 100])));
}

#[test]
fn a_peer_fills_no_more_than_the_config_allows() {
    // Unreliable messages that nobody reads, and a block longer than any may be.
    let few = ChannelConfig { receive_buffer: 8, ..ChannelConfig::unreliable() };
    let [mut alice, mut bob] = bare(few);
    push_numbers(&mut alice, 0..20);
    assert_eq!(exchange_unread(&mut alice, &mut bob), 8);
    assert_eq!((numbers(&mut bob).len(), bob.stats(0).overflowed), (8, 12));
    let [mut liar, _] = bare(ChannelConfig::blocks());
    let [_, mut bob] = bare(ChannelConfig { block_max: 2000, ..ChannelConfig::blocks() });
    liar.send_block(0, &[7; 3000]).unwrap();
    for sequence in 0..4 {
        bob.read(liar.write(at(0), ms(0)).unwrap()).unwrap();
        liar.on_sent(at(0), Seq16(sequence));
    }
    assert_eq!((bob.recv(0), bob.stats(0).overflowed), (None, 1));
}

/// Brings bob a packet, which he does not read; returns how many messages he keeps.
fn exchange_unread(alice: &mut Channels<Test>, bob: &mut Channels<Test>) -> u64 {
    bob.read(alice.write(at(0), ms(0)).unwrap()).unwrap();
    alice.on_sent(at(0), Seq16(0));
    bob.stats(0).received
}

#[test]
fn blocks_and_messages_of_the_wrong_size_are_refused() {
    let [mut alice, _] = bare(ChannelConfig::blocks());
    let max = 256 << 10;
    assert_eq!(alice.send_block(0, &[]), Err(ChannelSendError::BlockLength { len: 0, max }));
    assert_eq!(
        alice.send_block(0, &vec![0; 262_145]),
        Err(ChannelSendError::BlockLength { len: 262_145, max })
    );
    assert_eq!(alice.send_block(1, &[1]), Err(ChannelSendError::NoChannel { index: 1, count: 1 }));
    let large = alice.send(0, at(0), Test::Bytes(vec![0; 1200]));
    assert_eq!(large, Err(ChannelSendError::TooLarge { bits: 9636, max: 9495 }));
    let bits = alice.send(0, at(0), Test::Bytes(vec![0; 2001]));
    assert_eq!(bits, Err(ChannelSendError::Bits(BitsError::OutOfRange { offset: 2001, span: 2000 })));
    alice.send_block(0, &vec![0; 262_144]).unwrap();
    assert_eq!(alice.waiting(0), 512);
    let [mut chat, _] = bare(ChannelConfig::reliable_ordered());
    assert_eq!(chat.send_block(0, &[1]), Err(ChannelSendError::BlockLength { len: 1, max: 0 }));
}

#[test]
fn a_packet_takes_so_many_messages_and_bits_and_the_oldest_first() {
    let channel = ChannelConfig {
        messages_per_packet: 10,
        bits_per_packet: 500,
        ..ChannelConfig::reliable_unordered()
    };
    let [mut alice, mut bob] = bare(channel);
    push_numbers(&mut alice, 0..40);
    // 1 + 4 + 16 bits, and 1 + 2 + 32 and an id of 1 each: ten of them.
    let payload = alice.write(at(0), ms(0)).unwrap();
    assert_eq!(payload.len(), 48, "21 + 35 + 9 * 36 bits");
    assert_eq!(exchange(&mut alice, &mut bob, at(0), 0), (0..10).collect::<Vec<_>>());
    let [mut alice, mut bob] = bare(ChannelConfig { bits_per_packet: 100, ..channel });
    push_numbers(&mut alice, 0..4);
    assert_eq!(exchange(&mut alice, &mut bob, at(0), 0), [0, 1]);
}

#[test]
fn an_unreliable_message_that_does_not_fit_is_not_overtaken() {
    let [mut alice, _] = bare(ChannelConfig::unreliable_sequenced());
    for len in [600, 700] {
        alice.send(0, at(0), Test::Bytes(vec![1; len])).unwrap();
    }
    alice.send(0, at(0), Test::Number(1)).unwrap();
    let lens = [0, 1, 2].map(|sequence| {
        let len = alice.write(at(0), ms(0)).unwrap().len();
        alice.on_sent(at(0), Seq16(sequence));
        len
    });
    assert_eq!(lens, [605, 709, 0]);
}

#[test]
fn a_channel_that_fills_the_packet_leaves_room_to_say_that_others_have_nothing() {
    let channels = vec![ChannelConfig::unreliable(); 4];
    let config = ChannelsConfig { channels, payload_max: 16, ..ChannelsConfig::default() };
    let mut alice = Channels::new(&config).unwrap();
    // 6 + 4 * 13 + 2 * 34 bits: with 1 for this channel and 3 for the others two more than there are.
    (0..4).for_each(|_| assert!(alice.send(0, at(0), Test::Bytes(vec![])).is_ok()));
    push_numbers(&mut alice, 0..2);
    assert_eq!(alice.write(at(0), ms(0)).map(<[u8]>::len), Ok(12));
}

#[test]
fn a_message_is_sent_again_after_its_time_and_not_before() {
    for (resend, rtt, after) in [
        (Resend::After(ms(100)), 400, 100),
        (Resend::Rtt(150), 0, 100),
        (Resend::Rtt(150), 60, 90),
        (Resend::After(ms(0)), 60, 0),
    ] {
        let [mut alice, _] = bare(ChannelConfig { resend, ..ChannelConfig::reliable_ordered() });
        alice.send(0, at(5), Test::Number(1)).unwrap();
        assert!(!alice.write(at(5), ms(rtt)).unwrap().is_empty());
        alice.on_sent(at(5), Seq16(0));
        assert_eq!(alice.check(at(5), ms(rtt)), Some(at(5 + after)));
        if after > 0 {
            assert!(alice.write(at(4 + after), ms(rtt)).unwrap().is_empty());
        }
        assert!(!alice.write(at(5 + after), ms(rtt)).unwrap().is_empty());
    }
}

#[test]
fn what_a_lost_packet_had_is_sent_at_once_unless_it_has_been_sent_since_or_nobody_wants_it() {
    for resend_lost in [true, false] {
        let [mut alice, mut bob] = bare(ChannelConfig { resend_lost, ..ChannelConfig::reliable_ordered() });
        push_numbers(&mut alice, 0..2);
        let late = alice.write(at(0), ms(0)).unwrap().to_vec();
        alice.on_sent(at(0), Seq16(0));
        alice.on_lost(Seq16(0));
        alice.on_lost(Seq16(7)); // there is none
        assert_eq!(alice.check(at(20), ms(0)), Some(at(if resend_lost { 20 } else { 100 })));
        if !resend_lost {
            assert!(alice.write(at(99), ms(0)).unwrap().is_empty());
            continue;
        }
        let copy = alice.write(at(20), ms(0)).unwrap().to_vec();
        assert_eq!(copy, late);
        alice.on_sent(at(20), Seq16(1));
        alice.on_lost(Seq16(0));
        assert_eq!(alice.check(at(30), ms(0)), Some(at(120)), "the copy is under way");
        // It was only late: that counts, and the copy does no harm.
        bob.read(&late).unwrap();
        bob.read(&copy).unwrap();
        alice.on_acked(Seq16(0));
        alice.on_lost(Seq16(1));
        assert_eq!((alice.check(at(30), ms(0)), alice.stats(0).resends), (None, 2));
        assert_eq!((numbers(&mut bob), bob.stats(0).duplicates), (vec![0, 1], 2));
    }
}

#[test]
fn nearly_every_loss_is_found_by_a_later_packet_and_few_that_are_late_are_taken_for_one() {
    let path = LinkConfig { loss: Loss::Random(0.05), ..LinkConfig::with_rtt(ms(60)) };
    // Packets leave 15 ms apart, so some overtake each other.
    let reordered = LinkConfig { jitter: ms(25), in_order: false, ..path.clone() };
    let lossless = LinkConfig { loss: Loss::None, ..reordered.clone() };
    for (link, late) in [(path, 0..=0), (reordered, 1..=20), (lossless, 1..=1)] {
        let channel = ChannelConfig { resend: Resend::After(ms(400)), ..ChannelConfig::reliable_ordered() };
        let mut pair = pair(&[channel], &link, 5);
        assert!(send_numbers(&mut pair, 2000).into_iter().eq(0..2000));
        let (channel, packets) = (pair.alice.channels().stats(0), pair.alice.endpoint().stats());
        // Two messages a packet, but for the last ones nothing waits for its time.
        assert!(
            (packets.lost..=2 * packets.overtaken + 4).contains(&channel.resends),
            "{channel:?}, {packets:?}"
        );
        assert!(late.contains(&(packets.overtaken - packets.lost)), "{link:?}: {packets:?}");
    }
}

/// A message that takes more bits at the second look.
struct Grows(std::cell::Cell<u32>);

impl Serialize for Grows {
    fn serialize<S: Stream>(&mut self, stream: &mut S) -> Result<(), BitsError> {
        let looks = self.0.replace(self.0.get() + 1);
        stream.byte_vec(&mut vec![0; if looks == 1 { 2000 } else { 0 }], 2000)
    }
}

impl Message for Grows {
    const KINDS: u32 = 1;

    fn kind(&self) -> u32 {
        0
    }

    fn blank(_: u32) -> Option<Self> {
        None
    }
}

#[test]
fn what_could_not_be_written_is_not_taken_for_sent() {
    let mut alice = Channels::new(&config(&[ChannelConfig::reliable_ordered(); 2])).unwrap();
    for channel in [0, 1] {
        alice.send(channel, at(0), Grows(0.into())).unwrap();
    }
    assert!(matches!(alice.write(at(0), ms(0)), Err(BitsError::Full { .. })));
    alice.on_sent(at(0), Seq16(0)); // an empty packet, since there is nothing to put into it
    alice.on_acked(Seq16(0));
    assert_eq!([0, 1].map(|channel| alice.waiting(channel)), [1, 1]);
}

#[test]
fn a_bad_payload_changes_nothing_but_a_counter() {
    let two = [ChannelConfig::reliable_ordered(), ChannelConfig::unreliable()];
    let [mut alice, mut bob] = [(); 2].map(|()| Channels::<Test>::new(&config(&two)).unwrap());
    alice.send(0, at(0), Test::Number(1)).unwrap();
    alice.send(1, at(0), Test::Number(2)).unwrap();
    let good = alice.write(at(0), ms(0)).unwrap().to_vec();
    for len in 1..good.len() {
        assert!(matches!(bob.read(&good[..len]), Err(ReadError::Bits(_))), "cut off after {len}");
    }
    // A kind of the second channel's message that is numbered and that there is not: after 1 + 6 + 16 + 1 + 2 + 32 + 1 + 6 bits.
    let mut bad = good.clone();
    bad[65 / 8] |= 1 << (65 % 8 + 1);
    assert_eq!(bob.read(&bad), Err(ReadError::Bits(BitsError::Kind { kind: 2 })));
    assert_eq!(bob.read(&[0]), Err(ReadError::Empty));
    assert_eq!(bob.read(&[]), Ok(()));
    assert_eq!((bob.recv(0), bob.recv(1)), (None, None));
    let rejected = bob.rejected();
    assert_eq!((rejected.bits, rejected.empty), (good.len() as u64, 1));
    bob.read(&good).unwrap();
    assert_eq!(bob.recv(0), Some(Received::Message(Test::Number(1))));
    assert_eq!(bob.recv(1), Some(Received::Message(Test::Number(2))));
}

#[test]
fn a_block_of_nothing_is_refused() {
    let [_, mut bob] = bare(ChannelConfig::blocks());
    // There are messages, 1 of them, its id; it is a slice, the last one; its length in 10 bits.
    for (len, is_taken) in [(0, false), (1, true)] {
        let (mut bytes, mut bits) =
            ([0; 8], [(1, 1), (0, 6), (0, 16), (0b110, 3), (len, 10), (0, 8 * len + 1)]);
        let mut write = Write::new(&mut bytes);
        bits.iter_mut().for_each(|(value, count)| write.bits(value, *count).unwrap());
        let len = write.finish();
        let read = bob.read(&bytes[..len]);
        assert_eq!(read.is_ok(), is_taken, "{read:?}");
    }
    assert_eq!((bob.recv(0), bob.recv(0)), (Some(Received::Block(vec![0])), None));
}

#[test]
fn ids_go_on_across_the_wrap() {
    let [mut alice, mut bob] = bare(ChannelConfig::reliable_ordered());
    for round in 0..70_000u32 {
        alice.send(0, at(round.into()), Test::Number(round)).unwrap();
        let sequence = round.to_le_bytes();
        let sequence = u16::from_le_bytes([sequence[0], sequence[1]]);
        assert_eq!(exchange(&mut alice, &mut bob, at(round.into()), sequence), [round]);
    }
}

#[test]
fn a_config_out_of_range_names_its_field() {
    let good = ChannelConfig::blocks();
    for (channel, field) in [
        (ChannelConfig { send_buffer: 0, ..good }, "send_buffer"),
        (ChannelConfig { receive_buffer: 16_385, ..good }, "receive_buffer"),
        (ChannelConfig { messages_per_packet: 257, ..good }, "messages_per_packet"),
        (ChannelConfig { bits_per_packet: 63, ..good }, "bits_per_packet"),
        (ChannelConfig { resend: Resend::After(ms(60_001)), ..good }, "resend"),
        (ChannelConfig { resend: Resend::Rtt(0), ..good }, "resend"),
        (ChannelConfig { expire_after: Some(ms(0)), ..good }, "expire_after"),
        (ChannelConfig { slice: 0, ..good }, "slice"),
        (ChannelConfig { slice: 1180, ..good }, "slice"),
        (ChannelConfig { block_max: 262_145, ..good }, "block_max"),
        (ChannelConfig { receive_buffer: 100, ..good }, "block_max"),
        (ChannelConfig { block_max: 1, ..ChannelConfig::unreliable() }, "block_max"),
    ] {
        assert_eq!(config(&[channel]).check().map_err(|error| error.field), Err(field));
    }
    let fields = [
        (ChannelsConfig { channels: vec![], ..ChannelsConfig::default() }, "channels"),
        (ChannelsConfig { payload_max: 15, ..ChannelsConfig::default() }, "payload_max"),
        (ChannelsConfig { packets: 63, ..ChannelsConfig::default() }, "packets"),
        (ChannelsConfig { packets: 513, ..ChannelsConfig::default() }, "packets"),
    ];
    for (config, field) in fields {
        assert_eq!(config.check().map_err(|error| error.field), Err(field));
    }
    let presets = [
        good,
        ChannelConfig::reliable_ordered(),
        ChannelConfig::reliable_unordered(),
        ChannelConfig::unreliable(),
        ChannelConfig::unreliable_sequenced(),
    ];
    assert_eq!(config(&presets).check(), Ok(()));
}
