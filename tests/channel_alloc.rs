//! Channels allocate nothing for a message once their buffers have grown.

use allocation_counter::measure;
use rand::RngExt;
use std::time::Duration;
use whitewater::channel::{Carrier, Channels, ChannelsConfig};
use whitewater::message::{BitReader, BitWriter, BitsError, shape};
use whitewater::packet::Seq16;
use whitewater::{Channel, ChannelConfig, Message, Time};
use whitewater_sim::SimRng;

/// A message without memory of its own.
struct Input {
    tick: u32,
    keys: u8,
}

impl Message for Input {
    const SHAPE: u64 = shape("Input", &[]);

    fn pack(&self, to: &mut BitWriter) -> Result<(), BitsError> {
        self.tick.pack(to)?;
        to.int(self.keys, 0..=15)
    }

    fn unpack(from: &mut BitReader<'_>) -> Result<Self, BitsError> {
        Ok(Self { tick: u32::unpack(from)?, keys: from.int(0..=15)? })
    }
}

const CHANNELS: [Channel<Input>; 4] =
    [Channel::ordered(0), Channel::unordered(1), Channel::unreliable(2), Channel::sequenced(3)];

#[test]
fn a_message_allocates_nothing_in_a_steady_state() {
    let mut channels = CHANNELS.map(Channel::config);
    let expire_after = Some(Duration::from_millis(300));
    channels[0] = ChannelConfig { carrier: Carrier::Packets, expire_after, ..channels[0] };
    let config = ChannelsConfig { channels: channels.to_vec(), ..ChannelsConfig::default() };
    let [mut alice, mut bob] = [(); 2].map(|()| Channels::new(&config).unwrap());
    let (mut rng, mut received) = (SimRng::new(7, 1), [0; 4]);
    // The last five packets are acknowledged when the next one leaves; each fifth gets lost, all of them at times.
    let mut arrived = [false; 5];
    let mut frame = |tick: u32| {
        let (now, rtt) = (Time::from_millis(16 * u64::from(tick)), Duration::from_millis(80));
        let [low, high, ..] = tick.to_le_bytes();
        let sequence = Seq16(u16::from_le_bytes([low, high]));
        for channel in CHANNELS {
            alice.send(now, channel, &Input { tick, keys: 7 }).unwrap();
        }
        let payload = alice.write(now, rtt).unwrap();
        let is_lost = rng.random::<f64>() < 0.2 || tick % 1000 < 40;
        if !is_lost {
            bob.read(payload).unwrap();
        }
        alice.on_sent(now, sequence);
        arrived.rotate_left(1);
        if std::mem::replace(&mut arrived[4], !is_lost) {
            alice.on_acked(sequence.sub(5));
        } else {
            alice.on_lost(sequence.sub(5));
        }
        for (channel, count) in CHANNELS.into_iter().zip(&mut received) {
            while bob.recv(channel).is_some() {
                *count += 1;
            }
        }
        while alice.pop_expired(CHANNELS[0]).is_some() {}
    };
    // Until as much has waited at a time as ever does.
    (0..20_000).for_each(&mut frame);
    let steady = measure(|| (20_000..40_000).for_each(&mut frame));
    println!("{received:?} received of 40,000 each");
    assert_eq!(steady.count_total, 0, "{steady:?}");
    assert!(
        received[1] > 39_800 && received[0] > 37_000 && received.iter().all(|count| *count > 29_000),
        "{received:?}"
    );
}

/// What there is no room for costs nothing but the look at it, however often it comes.
#[test]
fn a_packet_that_is_refused_allocates_nothing() {
    const BYTES: Channel = Channel::unordered(0);
    let one = ChannelConfig { receive_buffer: 4, ..BYTES.config() };
    let shorter = ChannelConfig { max_message: 99, ..one };
    let [mut alice, mut bob, mut carol] = [one, one, shorter].map(|channel| {
        Channels::new(&ChannelsConfig { channels: vec![channel], ..ChannelsConfig::default() }).unwrap()
    });
    let now = Time::ZERO;
    let mut packet = |sequence| {
        for _ in 0..4 {
            alice.send(now, BYTES, &[7; 100]).unwrap();
        }
        let payload = alice.write(now, Duration::ZERO).unwrap().to_vec();
        alice.on_sent(now, Seq16(sequence));
        alice.on_acked(Seq16(sequence));
        payload
    };
    let [first, second] = [0, 1].map(&mut packet);
    bob.read(&first).unwrap();
    for (name, refuses, payload) in [("no room", &mut bob, &second), ("too long", &mut carol, &first)] {
        assert!(refuses.read(payload).is_err(), "{name}");
        let again = measure(|| (0..100).for_each(|_| assert!(refuses.read(payload).is_err())));
        assert_eq!(again.count_total, 0, "{name}: {again:?}");
    }
}
