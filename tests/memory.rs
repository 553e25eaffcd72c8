//! The memory that a peer can fill is bounded by the config, whatever it sends. Heap bytes as counted by the
//! allocator.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that panics has found something")]

use crate::common;
use crate::common::configs;

use bytes::Bytes;
use common::{Raw, kcp};
use whitewater::Time;
use whitewater::kcp::{Config, Kcp};
use whitewater::machine::DatagramQueue;

/// A segment with as much data as allowed.
fn large(sn: u32) -> Raw {
    Raw::push(sn, &[0x5a; 1476])
}

/// A receiver under attack.
struct Victim {
    bob: Kcp<DatagramQueue>,
    shares: bool,
}

impl Victim {
    fn input(&mut self, segment: &Raw) {
        let datagram = segment.bytes();
        if self.shares {
            // In a buffer for the largest datagram, as a driver uses it.
            let mut buffer = vec![0; 1500];
            buffer[..datagram.len()].copy_from_slice(&datagram);
            self.bob.input_bytes(Time::ZERO, &Bytes::from(buffer).slice(..datagram.len())).unwrap();
        } else {
            self.bob.input(Time::ZERO, &datagram).unwrap();
        }
    }

    /// Sends the largest possible datagrams with these numbers.
    fn fill(&mut self, numbers: impl IntoIterator<Item = u32>) {
        numbers.into_iter().for_each(|sn| self.input(&large(sn)));
    }

    fn read(&mut self, count: u32) {
        (0..count).for_each(|_| drop(self.bob.recv().unwrap()));
    }
}

/// Heap bytes that a receiver has after `attack`, and at most during it.
fn filled(rcv_wnd: u16, shares: bool, attack: Attack) -> (u64, u64) {
    let mut kept = None;
    let info = allocation_counter::measure(|| {
        let bob = kcp(&Config { rcv_wnd, ..configs::classic_turbo() });
        let mut victim = Victim { bob, shares };
        attack(&mut victim, rcv_wnd.into());
        kept = Some(victim);
    });
    (u64::try_from(info.bytes_current).unwrap(), info.bytes_max)
}

/// What arrives, and what the victim reads meanwhile, with a window of this size.
type Attack = fn(&mut Victim, u32);

const ATTACKS: [(&str, Attack); 8] = [
    ("in order, past the window", |victim, wnd| victim.fill(0..3 * wnd)),
    ("backwards, then again ahead of what closes the gap", |victim, wnd| {
        victim.fill((0..wnd).rev());
        victim.fill((wnd..2 * wnd).rev());
    }),
    ("the newest first, then all before it but one", |victim, wnd| {
        victim.fill([wnd - 1]);
        victim.fill((0..wnd - 2).rev());
        victim.fill(wnd..2 * wnd);
    }),
    ("the newest first, all before it are read, two windows after it are not", |victim, wnd| {
        victim.fill([wnd - 1]);
        victim.fill(0..wnd - 1);
        victim.read(wnd - 1);
        victim.fill(wnd..4 * wnd);
    }),
    ("the same over and over", |victim, wnd| {
        for _ in 0..8 {
            let start = victim.bob.stats().rcv_nxt.0;
            victim.fill([start + wnd - 1]);
            victim.fill(start..start + wnd - 1);
            victim.read(wnd - 1);
            victim.fill((start + wnd..start + 4 * wnd).rev());
            while victim.bob.recv().is_some() {}
        }
    }),
    ("each second one", |victim, wnd| {
        for first in [1, 0] {
            victim.fill((first..3 * wnd).step_by(2));
        }
    }),
    ("just as much of a datagram as is shared", |victim, wnd| {
        (0..2 * wnd).for_each(|sn| victim.input(&Raw::push(sn, &[0x5a; 376])));
    }),
    ("nothing in them", |victim, wnd| (1..2 * wnd).for_each(|sn| victim.input(&Raw::push(sn, b"")))),
];

#[test]
fn a_receiver_holds_no_more_than_three_windows_of_datagrams() {
    let mut over = Vec::new();
    for (rcv_wnd, shares) in [(128, false), (128, true), (1024, false), (1024, true)] {
        for (name, attack) in ATTACKS {
            let (left, most) = filled(rcv_wnd, shares, attack);
            println!("{rcv_wnd}, shares {shares}, {name}: {left} bytes, at most {most}");
            // The bound documented at Config::rcv_mtu, plus the sixteenth by which a buffer may be too large.
            // While a buffer grows, it exists twice.
            let limit = 3 * u64::from(rcv_wnd) * 1500 * 17 / 16;
            over.extend(
                (left > limit || most > 2 * limit).then_some((name, rcv_wnd, shares, left, most, limit)),
            );
        }
    }
    assert!(over.is_empty(), "name, window, shares; bytes left, at most on the way, allowed: {over:#?}");
}

#[test]
fn a_flood_of_duplicates_and_forged_numbers_fills_only_a_few_kilobytes() {
    let attacks: [(&str, Attack); 3] = [
        ("far past", |victim, _| {
            (0..100_000u32).for_each(|sn| victim.input(&Raw::push(u32::MAX - 600 - sn, &[1; 100])));
        }),
        ("duplicates", |victim, _| {
            (0..100_000).for_each(|copy| victim.input(&Raw::push(copy % 2, &[1; 100])));
        }),
        ("far ahead", |victim, wnd| {
            (0..100_000).for_each(|sn| victim.input(&Raw::push(wnd + 1 + sn, &[1; 100])));
        }),
    ];
    for (name, attack) in attacks {
        let (left, most) = filled(128, false, attack);
        // Two windows of ACKs of 8 bytes each, in a list that doubles.
        assert!(
            left <= 2 * 128 * 8 * 2 + 2000 && most <= left + 4000,
            "{name}: {left} bytes, at most {most}"
        );
    }
}

#[test]
fn a_flood_of_acks_fills_only_a_few_kilobytes() {
    let mut alice = kcp(&configs::classic_turbo());
    for _ in 0..32 {
        alice.send(b"x").unwrap();
    }
    alice.flush(Time::ZERO);
    let info = allocation_counter::measure(|| {
        for copy in 0..100_000 {
            alice.input(Time::ZERO, &Raw::ack(31 - copy % 4, 0).bytes()).unwrap();
        }
    });
    // 256 datagrams are noted before they are counted, 8 bytes each.
    assert!((0..=4096).contains(&info.bytes_current), "{info:?}");
}

#[test]
fn rejected_datagrams_allocate_nothing() {
    let config = Config { snd_queue: 2, ..configs::classic_turbo() };
    let (mut alice, bad) = (
        kcp(&config),
        [
            Raw { una: 1, ..Raw::push(0, &[1; 1000]) }.bytes(),
            Raw::datagram(&[Raw::push(0, &[1; 1000]), Raw::ack(0, 0)]),
            Raw { frg: 128, ..Raw::push(0, &[1; 1000]) }.bytes(),
            vec![0; 1501],
            vec![0; 24],
            Vec::new(),
        ],
    );
    alice.send(b"x").unwrap();
    alice.send(b"y").unwrap();
    let mut errors = 0;
    let info = allocation_counter::measure(|| {
        for bad in &bad {
            errors += usize::from(alice.input(Time::ZERO, bad).is_err());
        }
        errors += usize::from(alice.send(&[0; 1000]).is_err());
        errors += usize::from(alice.send(&[0; 1 << 18]).is_err());
        errors += usize::from(alice.recv_into(&mut [0; 10]).is_err());
    });
    assert_eq!((errors, info.count_total), (bad.len() + 3, 0));
}

#[test]
fn a_sender_holds_at_most_a_sixteenth_more_than_its_limits() {
    for (snd_queue, len) in [(4096, 1024), (1 << 16, 64)] {
        let config = Config { snd_queue, ..configs::classic_turbo() };
        let mut kept = None;
        let info = allocation_counter::measure(|| {
            let mut alice = kcp(&config);
            while alice.send(&vec![1; len]).is_ok() {}
            kept = Some(alice);
        });
        let limit = i64::from(config.snd_queue_bytes) * 17 / 16 + i64::from(snd_queue) * 24 + 1000;
        assert!(info.bytes_current <= limit, "{info:?}, {limit}");
        assert_eq!(kept.map(|alice| alice.wait_snd()), Some(snd_queue as usize));
    }
}

#[test]
fn occasional_shared_payloads_cost_no_more_than_others() {
    let message = vec![1; 1000];
    let mut kept = None;
    let info = allocation_counter::measure(|| {
        let (mut alice, mut bob) = (kcp(&configs::classic_turbo()), kcp(&configs::classic_turbo()));
        for sn in 0..100_000 {
            let shares = sn % 20_000 == 0;
            let len = if shares { 1000 } else { 10 };
            let datagram = Raw::push(sn, &message[..len]).bytes();
            bob.input_bytes(Time::ZERO, &datagram.into()).unwrap();
            assert_eq!(bob.recv().map(|message| message.len()), Some(len));
            alice.send_bytes(Bytes::copy_from_slice(&message[..len])).unwrap();
            alice.flush(Time::ZERO);
            common::drain(&mut alice);
            alice.input(Time::ZERO, &Raw { una: sn + 1, ..Raw::ack(sn, 0) }.bytes()).unwrap();
            bob.flush(Time::ZERO);
            common::drain(&mut bob);
        }
        kept = Some((alice, bob));
    });
    assert!(info.bytes_current < 20_000, "{info:?}");
}

/// Heap bytes after traffic, while the owner only updates.
#[test]
fn a_control_block_that_was_busy_frees_its_memory_after_5_idle_seconds() {
    for config in [Config::default(), configs::classic_turbo()] {
        let mut pair = [kcp(&config), kcp(&config)];
        let mut held = Vec::new();
        for ms in (0..12_000).step_by(10) {
            let now = Time::from_millis(ms);
            if ms < 1000 {
                pair[0].send(&[0x5a; 1000]).unwrap();
            }
            for (from, to) in [(0, 1), (1, 0)] {
                pair[from].update(now);
                while let Some(datagram) = pair[from].output_mut().pop().map(<[u8]>::to_vec) {
                    pair[to].input(now, &datagram).unwrap();
                }
            }
            while pair[1].recv().is_some() {}
            held.push(pair.each_ref().map(|end| end.memory()));
        }
        assert!(held[90].iter().all(|bytes| *bytes > 600), "{:?} while busy", held[90]);
        assert_eq!(held[550], held[110], "it may be busy again soon");
        assert_eq!(held[1199], [0; 2], "{config:?}");
    }
}
