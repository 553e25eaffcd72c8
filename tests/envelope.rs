//! An envelope from any crate decides what is around KCP.

#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

use crate::common::configs;
use crate::common::machine::Whole as _;
use std::net::SocketAddr;
use std::sync::Arc;
use whitewater::kcp::{self, Conv, Envelope, EnvelopeConfig, Kcp, Opened, Peers, PeersConfig, Strangers};
use whitewater::machine::{DatagramQueue, Machine as _, Output as _};
use whitewater::rand_core::CryptoRng;
use whitewater::{ConfigError, Time};
use whitewater_sim::SimRng;

/// Puts a mark before each datagram, and sends each again as a shard that rebuilds it.
#[derive(Debug)]
struct Twice;

#[derive(Debug, Default)]
struct Doubler {
    rebuilt: Vec<Vec<u8>>,
    popped: Vec<u8>,
    shards: Vec<Option<u64>>,
    refused: usize,
    forgotten: Vec<u64>,
}

const DATA: u8 = 0xd0;
const SHARD: u8 = 0x5d;

impl EnvelopeConfig for Twice {
    fn inside(&self, config: &kcp::Config) -> Result<kcp::Config, ConfigError> {
        config.check()?;
        kcp::in_range("mtu", config.mtu, 51..=1000)?;
        Ok(kcp::Config { mtu: config.mtu - 1, ..*config })
    }

    fn envelope(&self, _: &mut dyn CryptoRng) -> Box<dyn Envelope> {
        Box::new(Doubler::default())
    }
}

impl Envelope for Doubler {
    fn overhead(&self) -> u16 {
        1
    }

    fn flushes_sends(&self) -> bool {
        true
    }

    fn wrap(&mut self, _: Time, _: u64, is_proven: bool, datagram: &[u8], out: &mut DatagramQueue) {
        out.output(&[&[DATA], datagram].concat());
        if is_proven {
            out.output(&[&[SHARD], datagram].concat());
        }
    }

    fn open<'a>(&mut self, datagram: &'a mut [u8]) -> Option<Opened<'a>> {
        match datagram.split_first()? {
            (&DATA, kcp) => Some(Opened { kcp: Some(kcp), shard: None }),
            (&SHARD, shard) => Some(Opened { kcp: None, shard: Some(shard) }),
            _ => None,
        }
    }

    fn handle_shard(&mut self, _: SocketAddr, peer: Option<u64>, shard: &[u8]) -> Option<u64> {
        self.shards.push(peer);
        self.rebuilt.push(shard.to_vec());
        Some(peer.unwrap_or_default())
    }

    fn poll_rebuilt(&mut self, _: u64) -> Option<&[u8]> {
        self.popped = self.rebuilt.pop()?;
        Some(&self.popped)
    }

    fn count_refused(&mut self) {
        self.refused += 1;
    }

    fn forget(&mut self, peer: u64) {
        self.forgotten.push(peer);
    }
}

fn doubler(envelope: Option<&dyn Envelope>) -> &Doubler {
    let envelope: &dyn std::any::Any = envelope.unwrap();
    envelope.downcast_ref().unwrap()
}

fn kcp() -> kcp::Config {
    kcp::Config { mtu: 500, ..configs::turbo() }
}

fn client() -> SocketAddr {
    "10.0.0.1:1000".parse().unwrap()
}

fn server() -> SocketAddr {
    "10.0.0.9:4000".parse().unwrap()
}

/// A peer that has sent a message of 900 bytes, and its datagrams.
fn sent(now: Time) -> (kcp::Link, Vec<Vec<u8>>) {
    let mut peer =
        kcp::Link::with_envelope(server(), Conv(7), &kcp(), &Twice, &mut SimRng::new(1, 1)).unwrap();
    peer.send(&[7; 900]).unwrap();
    peer.handle_timeout(now); // it requests a flush by itself
    let datagrams = std::iter::from_fn(|| Some(peer.emit(now)?.0)).collect();
    (peer, datagrams)
}

fn peers(strangers: Strangers) -> Peers {
    let config =
        PeersConfig { kcp: kcp(), envelope: Some(Arc::new(Twice)), strangers, ..PeersConfig::default() };
    Peers::new(&config, &mut SimRng::new(2, 1)).unwrap()
}

#[test]
fn an_envelope_fits_the_mtu_and_may_add_datagrams() {
    let (mut peer, datagrams) = sent(Time::from_millis(1));
    assert_eq!(
        datagrams.iter().map(|datagram| (datagram[0], datagram.len())).collect::<Vec<_>>(),
        [(DATA, 500), (SHARD, 500), (DATA, 450), (SHARD, 450)]
    );
    assert_eq!(peer.send(b""), Err(kcp::SendError::Empty));
    let small = kcp::Config { mtu: 50, ..kcp() };
    let error =
        kcp::Link::with_envelope(server(), Conv(7), &small, &Twice, &mut SimRng::new(1, 1)).unwrap_err();
    assert_eq!((error.field, error.min, error.max), ("mtu", 51, 1000));
}

#[test]
fn datagrams_an_envelope_refuses_change_nothing_and_rebuilt_ones_count() {
    let now = Time::from_millis(1);
    let (_, datagrams) = sent(now);
    let mut peers = peers(Strangers::Trusted);
    for bad in [&[][..], &[0; 30], &datagrams[0][1..]] {
        peers.give(now, client(), bad);
    }
    assert_eq!((peers.len(), peers.stats().datagrams), (0, 3));
    // Of the second datagram only the shard arrives, plus one that is not KCP.
    for datagram in [&datagrams[0], &vec![SHARD; 40], &datagrams[3]] {
        peers.give(now, client(), datagram);
    }
    let id = peers.ids().next().unwrap();
    assert_eq!(peers.peer(id).unwrap().kcp().peek_size(), Some(900));
    assert_eq!(
        (doubler(peers.envelope()).refused, &doubler(peers.envelope()).shards),
        (1, &vec![None, None])
    );
    assert!(peers.close(now, id));
    assert_eq!(doubler(peers.envelope()).forgotten, [0]);
}

#[test]
fn a_stranger_is_sent_no_added_datagrams_and_no_shard_of_theirs_is_used() {
    let now = Time::from_millis(1);
    let (mut client, datagrams) = sent(now);
    let mut peers = peers(Strangers::Proven);
    for datagram in &datagrams[..3] {
        peers.give(now, self::client(), datagram);
    }
    assert_eq!((peers.len(), peers.stats().asked), (0, 2));
    assert_eq!(doubler(peers.envelope()).shards, [None], "the one that came alone");
    let mut questions = Vec::new();
    while let Some((question, to)) = peers.emit(now) {
        assert_eq!((question[0], question.len(), to), (DATA, 25, self::client()));
        questions.push(question);
    }
    assert_eq!(questions.len(), 2);
    client.give(now, server(), &questions[0]);
    client.handle_timeout(now);
    while let Some((datagram, _)) = client.emit(now) {
        peers.give(now, self::client(), &datagram);
    }
    assert_eq!((peers.len(), peers.stats().accepted), (1, 1));
    let id = peers.ids().next().unwrap();
    peers.peer(id).unwrap().send(b"answer").unwrap();
    let marks: Vec<u8> = std::iter::from_fn(|| Some(peers.emit(now)?.0[0])).collect();
    assert!(marks.contains(&SHARD), "{marks:x?}");
}

#[test]
fn rebuilt_datagrams_change_no_round_trip_and_no_window() {
    for classic in [false, true] {
        let config = if classic { configs::classic_turbo() } else { configs::turbo() };
        let mut ends = [0, 1].map(|_| Kcp::new(Conv(7), &config, DatagramQueue::new()).unwrap());
        ends[0].send(b"question").unwrap();
        ends[0].flush(Time::from_millis(10));
        let question = ends[0].output_mut().pop().unwrap().to_vec();
        ends[1].input(Time::from_millis(20), &question).unwrap();
        ends[1].flush(Time::from_millis(20));
        let answer = ends[1].output_mut().pop().unwrap().to_vec();
        let before = ends[0].stats();
        // The same with a window of 1, long after.
        let mut old = answer.clone();
        old[6..8].copy_from_slice(&1u16.to_le_bytes());
        ends[0].input_rebuilt(Time::from_millis(2000), &old).unwrap();
        let after = ends[0].stats();
        assert_eq!(ends[0].wait_snd(), 0, "it still acknowledges");
        assert_eq!((after.srtt, after.rto, after.rmt_wnd), (before.srtt, before.rto, before.rmt_wnd));
        // A rebuilt datagram of another conversation is refused as usual.
        old[0] ^= 1;
        assert!(ends[0].input_rebuilt(Time::from_millis(2000), &old).is_err());
    }
}
