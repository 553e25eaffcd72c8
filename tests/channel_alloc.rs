//! Channels allocate nothing for a message once their buffers have grown.

use allocation_counter::measure;
use rand::RngExt;
use std::time::Duration;
use whitewater::Time;
use whitewater::message::channel::{ChannelConfig, Channels, ChannelsConfig};
use whitewater::message::{BitsError, Message, Serialize, Stream};
use whitewater::packet::Seq16;
use whitewater_sim::SimRng;

/// A message without memory of its own.
struct Input {
    tick: u32,
    keys: u8,
}

impl Serialize for Input {
    fn serialize<S: Stream>(&mut self, stream: &mut S) -> Result<(), BitsError> {
        stream.bits(&mut self.tick, 32)?;
        stream.int(&mut self.keys, 0..=15)
    }
}

impl Message for Input {
    const KINDS: u32 = 1;

    fn kind(&self) -> u32 {
        0
    }

    fn blank(_: u32) -> Option<Self> {
        Some(Self { tick: 0, keys: 0 })
    }
}

#[test]
fn a_message_allocates_nothing_in_a_steady_state() {
    let channels = vec![
        ChannelConfig { expire_after: Some(Duration::from_millis(300)), ..ChannelConfig::reliable_ordered() },
        ChannelConfig::reliable_unordered(),
        ChannelConfig::unreliable(),
        ChannelConfig::unreliable_sequenced(),
    ];
    let config = ChannelsConfig { channels, ..ChannelsConfig::default() };
    let [mut alice, mut bob] = [(); 2].map(|()| Channels::new(&config).unwrap());
    let (mut rng, mut received) = (SimRng::new(7, 1), [0; 4]);
    // The last five packets are acknowledged when the next one leaves; each fifth gets lost, all of them at times.
    let mut arrived = [false; 5];
    let mut frame = |tick: u32| {
        let (now, rtt) = (Time::from_millis(16 * u64::from(tick)), Duration::from_millis(80));
        let [low, high, ..] = tick.to_le_bytes();
        let sequence = Seq16(u16::from_le_bytes([low, high]));
        for channel in 0..4 {
            alice.send(channel, now, Input { tick, keys: 7 }).unwrap();
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
        for (channel, count) in (0..).zip(&mut received) {
            while bob.recv(channel).is_some() {
                *count += 1;
            }
        }
        while alice.pop_expired(0).is_some() {}
    };
    (0..5000).for_each(&mut frame);
    let steady = measure(|| (5000..25_000).for_each(&mut frame));
    println!("{received:?} received of 25,000 each");
    assert_eq!(steady.count_total, 0, "{steady:?}");
    assert!(
        received[1] > 24_900 && received[0] > 23_000 && received.iter().all(|count| *count > 18_000),
        "{received:?}"
    );
}
