//! What datagrams of kcp-go cost at most. `tools/work.sh` counts instructions; as a test this only checks that everything is rebuilt.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test that panics has found something")]

#[path = "../../../tests/common/measured.rs"]
mod measured;

use measured::count;
use std::net::SocketAddr;
use whitewater::Time;
use whitewater::kcp::{Envelope, EnvelopeConfig};
use whitewater::machine::DatagramQueue;
use whitewater_kcp_go::{Config, Crypt, Key, Shards};
use whitewater_sim::SimRng;

fn envelope(crypt: Crypt, shards: Option<Shards>) -> Box<dyn Envelope> {
    Config { crypt, shards, ..Config::kcptun(Key::new([7; 32])) }.envelope(&mut SimRng::new(1, 1))
}

/// Datagrams that the queue holds.
fn drain(queue: &mut DatagramQueue) -> Vec<Vec<u8>> {
    std::iter::from_fn(|| queue.pop().map(<[u8]>::to_vec)).collect()
}

/// As many datagrams of a group are lost as its parity replaces, and the last one that arrives rebuilds them.
fn groups(data: u8, parity: u8) {
    let shards = Some(Shards { data, parity });
    let [mut here, mut there] = [(); 2].map(|()| envelope(Crypt::Null, shards));
    let (mut queue, from) = (DatagramQueue::with_limit(1 << 24), SocketAddr::from(([10, 0, 0, 1], 1)));
    let mut rebuilt = 0;
    for round in 0..3_u64 {
        for number in 0..u64::from(data) {
            let now = Time::from_millis(1000 * round + number);
            let mut payload = vec![number.to_le_bytes()[0]; 1400];
            payload[..4].fill(9); // the conversation
            count(&format!("kcp-go: sending with {data} + {parity} shards"), || {
                here.wrap(now, 1, true, &payload, &mut queue)
            });
        }
        for datagram in drain(&mut queue).iter_mut().skip(parity.into()) {
            let what = format!("kcp-go: receiving with {data} + {parity} shards");
            count(&what, || {
                let opened = there.open(datagram).unwrap();
                let peer = opened.kcp.is_some().then_some(1);
                there.handle_shard(from, peer, opened.shard.unwrap());
                while there.poll_rebuilt(1).is_some() {
                    rebuilt += 1;
                }
            });
        }
    }
    println!("rebuilt {rebuilt}");
}

fn cipher(crypt: Crypt) {
    let [mut here, mut there] = [(); 2].map(|()| envelope(crypt, None));
    let mut queue = DatagramQueue::with_limit(1 << 24);
    count(&format!("kcp-go: sending with {}", crypt.name()), || {
        here.wrap(Time::ZERO, 1, true, &[9; 1400], &mut queue)
    });
    let mut datagram = drain(&mut queue).remove(0);
    count(&format!("kcp-go: receiving with {}", crypt.name()), || {
        assert!(there.open(&mut datagram).is_some())
    });
}

#[test]
#[ignore = "tools/work.sh counts its instructions"]
fn every_kind_of_datagram() {
    groups(10, 3);
    groups(128, 127);
    groups(1, 255);
    groups(255, 1);
    Crypt::ALL.into_iter().for_each(cipher);
}
