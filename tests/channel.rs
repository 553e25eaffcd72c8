//! What a channel promises over bad links, in virtual time, and what it costs.

#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

use crate::common;

use common::{at, ms};
use std::ops::Range;
use std::time::Duration;
use whitewater::channel::{
    Carrier, ChannelError, ChannelPeer, Channels, ChannelsConfig, ReadError, Resend, SendError,
};
use whitewater::kcp::Config;
use whitewater::message::{BitReader, BitWriter, BitsError, shape};
use whitewater::packet::{PacketConfig, Seq16};
use whitewater::{Channel, ChannelConfig, Message, Time};
use whitewater_sim::{Link, LinkConfig, Loss, Pair};

/// Numbers, and bytes of some length.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Test {
    Number(u32),
    Bytes(Vec<u8>),
}

/// The third kind is numbered and there is none.
impl Message for Test {
    const SHAPE: u64 = shape("Test", &[]);

    fn pack(&self, to: &mut BitWriter) -> Result<(), BitsError> {
        match self {
            Self::Number(number) => {
                to.kind(0, 3)?;
                number.pack(to)
            }
            Self::Bytes(bytes) => {
                to.kind(1, 3)?;
                to.byte_vec(bytes, 2000)
            }
        }
    }

    fn unpack(from: &mut BitReader<'_>) -> Result<Self, BitsError> {
        match from.kind(3)? {
            0 => u32::unpack(from).map(Self::Number),
            1 => from.byte_vec(2000).map(Self::Bytes),
            kind => Err(BitsError::Kind { kind }),
        }
    }
}

/// The first channel of each kind that packets carry.
const ORDERED: Channel<Test> = Channel::ordered(0);
const UNORDERED: Channel<Test> = Channel::unordered(0);
const SEQUENCED: Channel<Test> = Channel::sequenced(0);
const UNRELIABLE: Channel<Test> = Channel::unreliable(0);

fn packed(channel: Channel<Test>) -> ChannelConfig {
    ChannelConfig { carrier: Carrier::Packets, ..channel.config() }
}

type End = ChannelPeer;

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

fn bare(channel: ChannelConfig) -> [Channels; 2] {
    [(); 2].map(|()| Channels::new(&config(&[channel])).unwrap())
}

fn numbers(end: &mut Channels, channel: Channel<Test>) -> Vec<u32> {
    let number = |message| if let Test::Number(number) = message { number } else { u32::MAX };
    std::iter::from_fn(|| end.recv(channel)).map(number).collect()
}

fn push_numbers(end: &mut Channels, channel: Channel<Test>, numbers: Range<u32>) {
    for number in numbers {
        end.send(at(0), channel, &Test::Number(number)).unwrap();
    }
}

/// Alice sends `count` numbers, one each 10 ms; returns what bob got, when nothing happens any more.
fn send_numbers(pair: &mut Pair<End, End>, channel: Channel<Test>, count: u32) -> Vec<u32> {
    let mut received = Vec::new();
    for number in 0..count {
        let now = pair.now();
        pair.alice.channels_mut().send(now, channel, &Test::Number(number)).unwrap();
        pair.run_for(ms(10));
        received.extend(numbers(pair.bob.channels_mut(), channel));
    }
    pair.run_for(Duration::from_secs(60));
    received.extend(numbers(pair.bob.channels_mut(), channel));
    received
}

/// Ids of 16 bits do not tell how long an outage was, but messages that are much older than the newest come no more.
#[test]
fn a_sequenced_channel_goes_on_at_once_after_most_outages_and_never_delivers_what_is_a_little_older() {
    const A_TICK: u32 = 64;
    let mut worst = 0;
    for outage in (0..1_040).step_by(10) {
        let [mut alice, mut bob] = bare(packed(SEQUENCED));
        let (mut dropped, mut late) = (0, None);
        for tick in 0..outage + 600 {
            let sent = A_TICK * tick..A_TICK * (tick + 1);
            push_numbers(&mut alice, SEQUENCED, sent.clone());
            let payload = alice.write(at(0), ms(0)).unwrap().to_vec();
            alice.on_sent(at(0), Seq16(0));
            if (10..10 + outage).contains(&tick) {
                continue;
            }
            bob.read(&payload).unwrap();
            match numbers(&mut bob, SEQUENCED) {
                none if none.is_empty() => dropped += A_TICK,
                came => assert!(came.into_iter().eq(sent)),
            }
            if tick == 5 {
                late = Some(payload);
            } else if tick == 9 {
                bob.read(late.as_deref().unwrap()).unwrap();
                assert_eq!(numbers(&mut bob, SEQUENCED), []);
            }
        }
        worst = worst.max(dropped);
    }
    assert!(worst <= 4_096, "{worst} messages after an outage were taken for old ones");
}

#[test]
fn every_message_arrives_once_and_in_order_whatever_is_lost() {
    for (loss, most) in [(0.0, 1.3), (0.1, 1.5), (0.3, 2.0), (0.6, 4.0)] {
        for seed in 1..=4 {
            let mut pair = pair(&[packed(ORDERED)], &bad(loss), seed);
            let received = send_numbers(&mut pair, ORDERED, 2000);
            assert!(received.iter().copied().eq(0..2000), "loss {loss}, seed {seed}");
            let stats = pair.alice.channels().stats(ORDERED);
            let copies = (stats.sent + stats.resends) as f64 / stats.sent as f64;
            assert!(copies < most, "loss {loss}, seed {seed}: each sent {copies} times");
            assert_eq!(pair.alice.channels().check(pair.now(), ms(0)), None);
        }
    }
}

#[test]
fn unordered_messages_arrive_once_each_and_wait_for_no_other() {
    for seed in 1..=4 {
        let mut pair = pair(&[packed(UNORDERED)], &bad(0.3), seed);
        let mut received = send_numbers(&mut pair, UNORDERED, 2000);
        assert!(!received.is_sorted(), "seed {seed}: something overtook");
        received.sort_unstable();
        assert!(received.iter().copied().eq(0..2000), "seed {seed}");
    }
}

#[test]
fn unreliable_messages_are_sent_once_and_a_sequence_never_goes_back() {
    for (channel, is_sequence) in [(UNRELIABLE, false), (SEQUENCED, true)] {
        let mut pair = pair(&[packed(channel)], &bad(0.3), 7);
        let received = send_numbers(&mut pair, channel, 2000);
        assert_eq!(received.is_sorted_by(|one, next| one < next), is_sequence);
        let share = if is_sequence { 800..1400 } else { 1250..1550 };
        assert!(share.contains(&received.len()), "{} arrived", received.len());
        let (alice, bob) = (pair.alice.channels().stats(channel), pair.bob.channels().stats(channel));
        assert_eq!((alice.sent, alice.resends), (2000, 0));
        assert_eq!((bob.old > 0, bob.received), (is_sequence, received.len() as u64));
    }
}

#[test]
fn nothing_is_sent_when_all_is_acknowledged() {
    let mut pair = pair(&[packed(ORDERED)], &bad(0.2), 3);
    send_numbers(&mut pair, ORDERED, 100);
    let sent = pair.links.each_ref().map(|link| link.stats().sent);
    pair.run_for(Duration::from_secs(3600));
    assert_eq!(pair.links.map(|link| link.stats().sent), sent);
    assert_eq!(pair.alice.channels_mut().write(at(9_999_999), ms(0)), Ok(&[][..]));
}

/// The messages that a packet of alice's brings to bob, who acknowledges it.
fn exchange([alice, bob]: [&mut Channels; 2], channel: Channel<Test>, now: Time, sequence: u16) -> Vec<u32> {
    let payload = alice.write(now, ms(0)).unwrap();
    bob.read(payload).unwrap();
    alice.on_sent(now, Seq16(sequence));
    alice.on_acked(Seq16(sequence));
    numbers(bob, channel)
}

#[test]
fn an_id_beyond_the_buffer_of_the_peer_is_never_sent() {
    let channel = ChannelConfig { receive_buffer: 8, ..packed(ORDERED) };
    let [mut alice, mut bob] = bare(channel);
    push_numbers(&mut alice, ORDERED, 0..20);
    // The first 3 go in a packet that is lost.
    let few = ChannelConfig { messages_per_packet: 3, ..channel };
    let [mut careful, mut reader] = bare(few);
    push_numbers(&mut careful, ORDERED, 0..20);
    careful.write(at(0), ms(0)).unwrap();
    careful.on_sent(at(0), Seq16(0));
    let mut arrived = Vec::new();
    for sequence in 1..10 {
        arrived.extend(exchange([&mut careful, &mut reader], ORDERED, at(sequence.into()), sequence));
    }
    assert!(arrived.is_empty(), "they wait for the first: {arrived:?}");
    assert_eq!(
        (careful.stats(ORDERED).sent, careful.waiting(ORDERED)),
        (8, 20),
        "8 of them, and no more until the first arrives"
    );
    assert_eq!(exchange([&mut careful, &mut reader], ORDERED, at(100), 20), (0..8).collect::<Vec<_>>());
    assert_eq!(exchange([&mut alice, &mut bob], ORDERED, at(0), 0), (0..8).collect::<Vec<_>>());
}

#[test]
fn a_full_store_refuses_until_something_is_acknowledged() {
    let channel = ChannelConfig { send_buffer: 4, ..packed(ORDERED) };
    let [mut alice, mut bob] = bare(channel);
    for number in 0..4 {
        assert!(alice.has_room(ORDERED));
        assert_eq!(alice.send(at(0), ORDERED, &Test::Number(number.into())), Ok(Seq16(number)));
    }
    assert!(!alice.has_room(ORDERED));
    assert_eq!(alice.send(at(0), ORDERED, &Test::Number(4)), Err(SendError::Full { channel: 0 }));
    assert_eq!(exchange([&mut alice, &mut bob], ORDERED, at(0), 0), [0, 1, 2, 3]);
    assert_eq!(alice.send(at(0), ORDERED, &Test::Number(4)), Ok(Seq16(4)));
}

#[test]
fn a_receiver_that_does_not_read_holds_the_sender_back_and_loses_nothing() {
    let channel = ChannelConfig { receive_buffer: 16, ..packed(ORDERED) };
    let mut pair = pair(&[channel], &bad(0.1), 5);
    for number in 0..100 {
        let now = pair.now();
        pair.alice.channels_mut().send(now, ORDERED, &Test::Number(number)).unwrap();
    }
    pair.run_for(Duration::from_secs(5));
    assert!(pair.bob.channels().rejected().no_room > 0 && pair.alice.channels().waiting(ORDERED) >= 84);
    let mut received = Vec::new();
    for _ in 0..100 {
        received.extend(numbers(pair.bob.channels_mut(), ORDERED));
        pair.run_for(ms(200));
    }
    assert!(received.iter().copied().eq(0..100), "{received:?}");
}

#[test]
fn what_expires_is_reported_and_those_after_it_are_delivered() {
    for seed in 1..=4 {
        let channel = ChannelConfig { expire_after: Some(ms(250)), ..packed(ORDERED) };
        let outage = LinkConfig { outages: vec![at(1000)..at(2000)], ..bad(0.2) };
        let mut pair = pair(&[channel], &outage, seed);
        let received = send_numbers(&mut pair, ORDERED, 300);
        assert!(received.is_sorted_by(|one, next| one < next), "seed {seed}: {received:?}");
        let alice = pair.alice.channels_mut();
        let expired: Vec<u32> =
            std::iter::from_fn(|| alice.pop_expired(ORDERED)).map(|id| id.0.into()).collect();
        assert!(
            (0..300).all(|number| received.contains(&number) || expired.contains(&number)),
            "seed {seed}"
        );
        assert!((60..130).contains(&expired.len()), "seed {seed}: {} expired", expired.len());
        assert_eq!((alice.waiting(ORDERED), alice.stats(ORDERED).expired), (0, expired.len() as u64));
        assert_eq!(received.last(), Some(&299), "seed {seed}");
        let skipped = pair.bob.channels().stats(ORDERED).skipped;
        assert_eq!(received.len() as u64 + skipped, 300, "seed {seed}: every id is one or the other");
    }
}

#[test]
fn a_message_that_expired_behind_its_arrival_is_delivered_once() {
    let [mut alice, mut bob] = bare(packed(ORDERED));
    alice.send_expiring(at(0), ORDERED, &Test::Number(7), Some(ms(100))).unwrap();
    let late = alice.write(at(0), ms(0)).unwrap().to_vec();
    alice.on_sent(at(0), Seq16(0));
    bob.read(&late).unwrap(); // and its acknowledgement is lost
    assert_eq!(alice.check(at(50), ms(0)), Some(at(100)));
    let notice = alice.write(at(100), ms(0)).unwrap().to_vec();
    assert_eq!(
        (notice.len(), alice.pop_expired(ORDERED), alice.pop_expired(ORDERED)),
        (4, Some(Seq16(0)), None)
    );
    alice.on_sent(at(100), Seq16(1));
    bob.read(&notice).unwrap();
    assert_eq!(numbers(&mut bob, ORDERED), [7]);
    assert_eq!((bob.stats(ORDERED).skipped, bob.stats(ORDERED).duplicates), (0, 1));
    // The other way round: the notice overtakes.
    let [_, mut other] = bare(packed(ORDERED));
    other.read(&notice).unwrap();
    other.read(&late).unwrap();
    assert_eq!((numbers(&mut other, ORDERED), other.stats(ORDERED).skipped), (vec![], 1));
}

#[test]
fn unreliable_messages_that_nobody_reads_fill_no_more_than_the_config_allows() {
    let few = ChannelConfig { receive_buffer: 8, ..packed(UNRELIABLE) };
    let [mut alice, mut bob] = bare(few);
    push_numbers(&mut alice, UNRELIABLE, 0..20);
    assert_eq!(exchange_unread(&mut alice, &mut bob, UNRELIABLE), 8);
    assert_eq!((numbers(&mut bob, UNRELIABLE).len(), bob.stats(UNRELIABLE).overflowed), (8, 12));
}

/// Brings bob a packet, which he does not read; returns how many messages he keeps.
fn exchange_unread(alice: &mut Channels, bob: &mut Channels, channel: Channel<Test>) -> u64 {
    bob.read(alice.write(at(0), ms(0)).unwrap()).unwrap();
    alice.on_sent(at(0), Seq16(0));
    bob.stats(channel).received
}

#[test]
fn messages_that_no_packet_has_room_for_and_handles_of_no_channel_are_refused() {
    const CUT: &str = "send it as several messages";
    const BYTES: Channel = Channel::unreliable(1);
    let mut alice = Channels::new(&config(&[packed(ORDERED), BYTES.config()])).unwrap();
    let too_long = |channel, len| Err(SendError::TooLong { channel, len, max: 1187, cure: CUT });
    // 2 + 1 + 6 + 16 + 1 + 2 + 11 bits before the last one.
    assert_eq!(alice.send(at(0), ORDERED, &Test::Bytes(vec![0; 1183])), too_long(0, 1185));
    assert_eq!(alice.send(at(0), ORDERED, &Test::Bytes(vec![0; 1182])), Ok(Seq16(0)));
    assert_eq!(alice.send(at(0), BYTES, &[0; 1185]), too_long(1, 1185));
    assert_eq!(alice.send(at(0), BYTES, &[0; 1184]), Ok(Seq16(0)));
    let missing = ChannelError::Missing { number: 2, count: 2 };
    assert_eq!(alice.send(at(0), Channel::<[u8]>::unreliable(2), &[0]), Err(missing.into()));
    for wrong in
        [alice.send(at(0), UNORDERED, &Test::Number(0)), alice.send(at(0), Channel::<[u8]>::ordered(0), &[0])]
    {
        assert!(matches!(wrong, Err(SendError::Channel(ChannelError::Wrong { .. }))), "{wrong:?}");
    }
    assert_eq!((alice.waiting(ORDERED), alice.waiting(BYTES)), (1, 1));
    assert_eq!(alice.recv(UNORDERED), None);
    // The number of bytes before them goes no further, however large the packets.
    let config =
        ChannelsConfig { payload_max: u16::MAX, ..config(&[Channel::<[u8]>::unreliable(0).config()]) };
    let mut alice = Channels::new(&config).unwrap();
    let sent = [2048, 2047].map(|len| alice.send(at(0), Channel::<[u8]>::unreliable(0), &vec![0; len]));
    assert_eq!(sent, [Err(SendError::TooLong { channel: 0, len: 2048, max: 2047, cure: CUT }), Ok(Seq16(0))]);
}

#[test]
fn a_packet_takes_so_many_messages_and_bits_and_the_oldest_first() {
    let channel = ChannelConfig { messages_per_packet: 10, bits_per_packet: 500, ..packed(UNORDERED) };
    let [mut alice, mut bob] = bare(channel);
    push_numbers(&mut alice, UNORDERED, 0..40);
    // 1 + 4 + 16 bits, and 1 + 2 + 32 and an id of 1 each: ten of them.
    let payload = alice.write(at(0), ms(0)).unwrap();
    assert_eq!(payload.len(), 48, "21 + 35 + 9 * 36 bits");
    assert_eq!(exchange([&mut alice, &mut bob], UNORDERED, at(0), 0), (0..10).collect::<Vec<_>>());
    let [mut alice, mut bob] = bare(ChannelConfig { bits_per_packet: 100, ..channel });
    push_numbers(&mut alice, UNORDERED, 0..4);
    assert_eq!(exchange([&mut alice, &mut bob], UNORDERED, at(0), 0), [0, 1]);
}

#[test]
fn an_unreliable_message_that_does_not_fit_is_not_overtaken() {
    let [mut alice, _] = bare(packed(SEQUENCED));
    for len in [600, 700] {
        alice.send(at(0), SEQUENCED, &Test::Bytes(vec![1; len])).unwrap();
    }
    alice.send(at(0), SEQUENCED, &Test::Number(1)).unwrap();
    let lens = [0, 1, 2].map(|sequence| {
        let len = alice.write(at(0), ms(0)).unwrap().len();
        alice.on_sent(at(0), Seq16(sequence));
        len
    });
    assert_eq!(lens, [605, 709, 0]);
}

#[test]
fn a_channel_that_fills_the_packet_leaves_room_to_say_that_others_have_nothing() {
    let channels = (0..4).map(|number| packed(Channel::unreliable(number))).collect();
    let config = ChannelsConfig { channels, payload_max: 16, ..ChannelsConfig::default() };
    let mut alice = Channels::new(&config).unwrap();
    // 6 + 4 * 13 + 2 * 34 bits: with 1 for this channel and 3 for the others two more than there are.
    (0..4).for_each(|_| assert!(alice.send(at(0), UNRELIABLE, &Test::Bytes(vec![])).is_ok()));
    push_numbers(&mut alice, UNRELIABLE, 0..2);
    assert_eq!(alice.write(at(0), ms(0)).map(<[u8]>::len), Ok(12));
}

#[test]
fn a_message_is_sent_again_after_its_time_and_not_before() {
    for (resend, rtt, alone, after) in [
        (Resend::After(ms(100)), 400, 100, 100),
        (Resend::Rtt(150), 0, 100, 100),
        (Resend::Rtt(150), 60, 90, 90),
        (Resend::After(ms(0)), 60, 100, 0),
    ] {
        let [mut alice, _] = bare(ChannelConfig { resend, ..packed(ORDERED) });
        alice.send(at(5), ORDERED, &Test::Number(1)).unwrap();
        assert!(!alice.write(at(5), ms(rtt)).unwrap().is_empty());
        alice.on_sent(at(5), Seq16(0));
        assert_eq!(alice.check(at(5), ms(rtt)), Some(at(5 + alone)), "it makes no packet sooner");
        if after > 0 {
            assert!(alice.write(at(4 + after), ms(rtt)).unwrap().is_empty());
        }
        assert!(!alice.write(at(5 + after), ms(rtt)).unwrap().is_empty());
    }
}

#[test]
fn what_a_lost_packet_had_is_sent_at_once_unless_it_has_been_sent_since_or_nobody_wants_it() {
    for resend_lost in [true, false] {
        let [mut alice, mut bob] = bare(ChannelConfig { resend_lost, ..packed(ORDERED) });
        push_numbers(&mut alice, ORDERED, 0..2);
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
        assert_eq!((alice.check(at(30), ms(0)), alice.stats(ORDERED).resends), (None, 2));
        assert_eq!((numbers(&mut bob, ORDERED), bob.stats(ORDERED).duplicates), (vec![0, 1], 2));
    }
}

#[test]
fn nearly_every_loss_is_found_by_a_later_packet_and_few_that_are_late_are_taken_for_one() {
    let path = LinkConfig { loss: Loss::Random(0.05), ..LinkConfig::with_rtt(ms(60)) };
    // Packets leave 15 ms apart, so some overtake each other.
    let reordered = LinkConfig { jitter: ms(25), in_order: false, ..path.clone() };
    let lossless = LinkConfig { loss: Loss::None, ..reordered.clone() };
    for (link, late) in [(path, 0..=0), (reordered, 1..=20), (lossless, 1..=1)] {
        let channel = ChannelConfig { resend: Resend::After(ms(400)), ..packed(ORDERED) };
        let mut pair = pair(&[channel], &link, 5);
        assert!(send_numbers(&mut pair, ORDERED, 2000).into_iter().eq(0..2000));
        let (channel, packets) = (pair.alice.channels().stats(ORDERED), pair.alice.endpoint().stats());
        // Two messages a packet, but for the last ones nothing waits for its time.
        assert!(
            (packets.lost..=2 * packets.overtaken + 4).contains(&channel.resends),
            "{channel:?}, {packets:?}"
        );
        assert!(late.contains(&(packets.overtaken - packets.lost)), "{link:?}: {packets:?}");
    }
}

#[test]
fn what_cannot_be_packed_is_not_stored() {
    let [mut alice, _] = bare(packed(ORDERED));
    let refused = alice.send(at(0), ORDERED, &Test::Bytes(vec![0; 2001]));
    assert_eq!(refused, Err(SendError::Bits(BitsError::OutOfRange { offset: 2001, span: 2000 })));
    assert_eq!((alice.waiting(ORDERED), alice.check(at(0), ms(0))), (0, None));
    assert_eq!(alice.send(at(0), ORDERED, &Test::Number(1)), Ok(Seq16(0)), "nothing of it is in the way");
}

#[test]
fn a_bad_payload_changes_nothing_but_a_counter() {
    const OTHER: Channel<Test> = Channel::unreliable(1);
    let two = [packed(ORDERED), packed(OTHER)];
    let [mut alice, mut bob] = [(); 2].map(|()| Channels::new(&config(&two)).unwrap());
    alice.send(at(0), ORDERED, &Test::Number(1)).unwrap();
    alice.send(at(0), OTHER, &Test::Number(2)).unwrap();
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
    assert_eq!((bob.recv(ORDERED), bob.recv(OTHER)), (None, None));
    let rejected = bob.rejected();
    assert_eq!((rejected.bits, rejected.empty), (good.len() as u64, 1));
    bob.read(&good).unwrap();
    assert_eq!(bob.recv(ORDERED), Some(Test::Number(1)));
    assert_eq!(bob.recv(OTHER), Some(Test::Number(2)));
}

#[test]
fn ids_go_on_across_the_wrap() {
    let [mut alice, mut bob] = bare(packed(ORDERED));
    for round in 0..70_000u32 {
        alice.send(at(round.into()), ORDERED, &Test::Number(round)).unwrap();
        let sequence = round.to_le_bytes();
        let sequence = u16::from_le_bytes([sequence[0], sequence[1]]);
        assert_eq!(exchange([&mut alice, &mut bob], ORDERED, at(round.into()), sequence), [round]);
    }
}

#[test]
fn a_config_out_of_range_names_its_field() {
    let (good, stream) = (packed(ORDERED), Channel::<[u8]>::stream(0).config());
    for (channel, field) in [
        (ChannelConfig { send_buffer: 0, ..good }, "send_buffer"),
        (ChannelConfig { receive_buffer: 16_385, ..good }, "receive_buffer"),
        (ChannelConfig { messages_per_packet: 97, ..good }, "messages_per_packet"),
        (ChannelConfig { bits_per_packet: 63, ..good }, "bits_per_packet"),
        (ChannelConfig { resend: Resend::After(ms(60_001)), ..good }, "resend"),
        (ChannelConfig { resend: Resend::Rtt(0), ..good }, "resend"),
        (ChannelConfig { expire_after: Some(ms(0)), ..good }, "expire_after"),
        (ChannelConfig { max_message: 0, ..good }, "max_message"),
        (ChannelConfig { max_message: (64 << 20) + 1, ..good }, "max_message"),
        (ChannelConfig { kcp: Config { snd_wnd: 0, ..good.kcp }, ..good }, "snd_wnd"),
        (ChannelConfig { carrier: Carrier::Packets, ..stream }, "carrier"),
        (ChannelConfig { carrier: Carrier::Kcp, ..packed(UNORDERED) }, "carrier"),
        (ChannelConfig { carrier: Carrier::Kcp, ..good }, "channels"),
    ] {
        assert_eq!(config(&[channel]).check().map_err(|error| error.field), Err(field));
    }
    let one = config(&[good]);
    let fields = [
        (ChannelsConfig::default(), "channels"),
        (config(&[good; 33]), "channels"),
        (config(&[good, Channel::<Test>::unordered(1).into(), good]), "channels"),
        (ChannelsConfig { payload_max: 15, ..one.clone() }, "payload_max"),
        (ChannelsConfig { packets: 63, ..one.clone() }, "packets"),
        (ChannelsConfig { packets: 513, ..one }, "packets"),
    ];
    for (config, field) in fields {
        assert_eq!(config.check().map_err(|error| error.field), Err(field));
    }
    let presets = [
        ChannelConfig { max_message: 64 << 20, ..good },
        packed(Channel::unordered(1)),
        packed(Channel::unreliable(2)),
        packed(Channel::sequenced(3)),
    ];
    assert_eq!(config(&presets).check(), Ok(()));
}

/// Only sessions have another way for messages, and say in a packet where one of them belongs.
#[test]
fn a_peer_that_says_that_a_message_comes_elsewhere_holds_up_nothing() {
    const CHAT: Channel = Channel::ordered(0);
    let chat = ChannelConfig { carrier: Carrier::Packets, ..CHAT.config() };
    let config = ChannelsConfig { channels: vec![chat], ..ChannelsConfig::default() };
    let mut bob = Channels::new(&config).unwrap();
    let mut payload = BitWriter::new(Vec::new());
    payload.bool(true).unwrap();
    payload.int(3, 1..=64).unwrap();
    payload.int(0, 0..=u16::MAX).unwrap();
    [false, true].iter().for_each(|bit| payload.bool(*bit).unwrap());
    payload.relative(1, 0).unwrap();
    [false, true].iter().for_each(|bit| payload.bool(*bit).unwrap());
    payload.relative(2, 1).unwrap();
    payload.bool(true).unwrap();
    payload.int(3, 0..=2047).unwrap();
    payload.bytes(b"abc").unwrap();
    bob.read(&payload.finish()).unwrap();
    assert_eq!(bob.recv(CHAT).as_deref(), Some(&b"abc"[..]));
    assert_eq!(bob.recv(CHAT), None);
}
