//! What a session costs in memory: nothing per message, little per segment, nothing when it is quiet. Counts
//! bytes and calls of the allocator.

#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

use crate::common;
use crate::common::configs;

use allocation_counter::{AllocationInfo, measure};
use common::{Raw, kcp, lossy, numbered};
use std::time::Duration;
use whitewater::Time;
use whitewater::kcp::{Config, Conv, Kcp, Sn};
use whitewater::machine::DatagramQueue;
use whitewater::packet::{Endpoint, PacketConfig};
use whitewater_sim::{Link, LinkConfig};

/// A sender that always has more to send, a receiver, and what their calls allocated. Only allocations inside
/// of the control blocks count.
struct Flow {
    alice: Kcp<DatagramQueue>,
    bob: Kcp<DatagramQueue>,
    there: Link,
    back: Link,
    now: Time,
    message: Vec<u8>,
    buf: Vec<u8>,
    received: u32,
    allocations: u64,
}

impl Flow {
    fn new(window: u16, len: usize, loss: f64) -> Self {
        let config =
            Config { snd_wnd: window, rcv_wnd: window, snd_queue: window.into(), ..configs::classic_turbo() };
        let link = lossy(loss);
        let bob = grown(&config, len);
        let snd = bob.stats().rcv_nxt;
        Self {
            alice: Kcp::starting_at(bob.conv(), &config, DatagramQueue::new(), snd, Sn(0)).unwrap(),
            bob,
            there: Link::new(link.clone(), 1, 1).unwrap(),
            back: Link::new(link, 1, 2).unwrap(),
            now: Time::ZERO,
            message: numbered(1, len),
            buf: vec![0; 1400],
            received: 0,
            allocations: 0,
        }
    }

    fn step(&mut self) {
        self.now = self.now + Duration::from_millis(1);
        let Self { alice, bob, there, back, now, message, buf, received, allocations } = self;
        let mut count = |call: &mut dyn FnMut()| *allocations += measure(call).count_total;
        while let Some(datagram) = there.arrive(*now) {
            count(&mut || bob.input(*now, datagram).unwrap());
        }
        while let Some(datagram) = back.arrive(*now) {
            count(&mut || alice.input(*now, datagram).unwrap());
        }
        count(&mut || {
            while bob.recv_into(buf).is_ok() {
                *received += 1;
            }
            while alice.send(message).is_ok() {}
            alice.update(*now);
            bob.update(*now);
        });
        while let Some(datagram) = alice.output_mut().pop() {
            there.send(*now, datagram);
        }
        while let Some(datagram) = bob.output_mut().pop() {
            back.send(*now, datagram);
        }
    }

    /// Runs for `time` with such a link to bob.
    fn run(&mut self, time: Duration, link: LinkConfig) {
        self.there.set(link).unwrap();
        for _ in 0..time.as_millis() {
            self.step();
        }
    }
}

/// A receiver that has already held as much as it can. Otherwise a buffer would have to grow at each worst
/// streak of losses so far, rarely but forever. tests/memory.rs tests how much it can hold.
fn grown(config: &Config, len: usize) -> Kcp<DatagramQueue> {
    let (mut bob, wnd) = (kcp(config), u32::from(config.rcv_wnd));
    let fill = |bob: &mut Kcp<DatagramQueue>, sn| {
        bob.input(Time::ZERO, &Raw::push(sn, &vec![0; len]).bytes()).unwrap();
    };
    fill(&mut bob, wnd - 1);
    (0..wnd - 1).for_each(|sn| fill(&mut bob, sn));
    (0..wnd - 1).for_each(|_| drop(bob.recv().unwrap()));
    (wnd..3 * wnd).for_each(|sn| fill(&mut bob, sn));
    while bob.recv().is_some() {}
    bob.flush(Time::ZERO);
    common::drain(&mut bob);
    bob
}

#[test]
fn a_message_allocates_nothing_in_a_steady_state() {
    for (window, len) in [(128, 64), (128, 1376), (1024, 64), (1024, 1376)] {
        for loss in [0.0, 0.1] {
            let mut flow = Flow::new(window, len, loss);
            // With outages after which the whole window is resent.
            let link = lossy(loss);
            for _ in 0..5 {
                flow.run(Duration::from_millis(300), lossy((10.0 * loss).min(1.0)));
                flow.run(Duration::from_millis(700), link.clone());
            }
            let (before, received) = (flow.allocations, flow.received);
            flow.run(Duration::from_secs(4), link);
            let messages = flow.received - received;
            println!(
                "window {window}, {len} B, loss {loss}: {before} allocations to warm up, {messages} messages"
            );
            assert!(messages > u32::from(window) * 10, "{messages}");
            let allocations = flow.allocations - before;
            // Under loss a list may double once more, however many messages there are.
            let most = if loss > 0.0 { 2 } else { 0 };
            assert!(
                allocations <= most,
                "window {window}, {len} B, loss {loss}: {allocations} for {messages} messages"
            );
        }
    }
}

/// Two packet endpoints that send to each other every 16 ms; one datagram in 256 gets lost.
struct Packets {
    ends: [Endpoint<DatagramQueue>; 2],
    now: Time,
    datagram: Vec<u8>,
    payload: Vec<u8>,
    received: u32,
    acked: u32,
}

impl Packets {
    fn new(len: usize) -> Self {
        let end = || Endpoint::new(&PacketConfig::default(), DatagramQueue::new()).unwrap();
        let (datagram, payload) = (Vec::with_capacity(1500), vec![7; len]);
        Self { ends: [end(), end()], now: Time::ZERO, datagram, payload, received: 0, acked: 0 }
    }

    fn step(&mut self) {
        self.now = self.now + Duration::from_millis(16);
        for _ in 0..2 {
            let [from, to] = &mut self.ends;
            from.send(self.now, &self.payload).unwrap();
            while let Some(datagram) = from.output_mut().pop() {
                self.datagram.clear();
                self.datagram.extend_from_slice(datagram);
                let mix = |at| self.datagram.get(at).copied().unwrap_or(0);
                if mix(5) ^ mix(6) ^ mix(7) != 77 {
                    self.received += u32::from(to.receive(self.now, &self.datagram).unwrap().is_some());
                }
            }
            from.update(self.now);
            self.acked += u32::from(from.pop_acked().is_some());
            while from.pop_lost().is_some() {}
            self.ends.swap(0, 1);
        }
    }
}

#[test]
fn a_packet_allocates_nothing_in_a_steady_state() {
    for len in [0, 100, 1185, 1186, 16 << 10] {
        let mut packets = Packets::new(len);
        (0..2000).for_each(|_| packets.step());
        (packets.received, packets.acked) = (0, 0);
        let info = measure(|| (0..5000).for_each(|_| packets.step()));
        println!("{len} B: {} received, {} acknowledged", packets.received, packets.acked);
        assert!(packets.acked > 8500, "{}", packets.acked);
        assert_eq!(info.count_total, 0, "{len} B");
    }
}

#[test]
fn an_unused_endpoint_allocates_nothing() {
    let (fresh, _endpoint) = heap(|| {
        let mut endpoint = Endpoint::new(&PacketConfig::default(), DatagramQueue::new()).unwrap();
        (0..1000).for_each(|ms| endpoint.update(Time::from_millis(ms)));
        endpoint
    });
    assert_eq!(fresh, 0);
    let size = size_of::<Endpoint<DatagramQueue>>();
    println!("{size} bytes");
    assert!(size <= 1024, "{size} bytes");
}

/// The result of `build`, and the heap bytes that it owns.
fn heap<T>(build: impl FnOnce() -> T) -> (i64, T) {
    let mut built = None;
    let AllocationInfo { bytes_current, .. } = measure(|| built = Some(build()));
    (bytes_current, built.unwrap())
}

type Plain = Kcp<fn(&[u8])>;

fn plain(config: &Config) -> Plain {
    Kcp::new(Conv(common::CONV), config, (|_: &[u8]| ()) as fn(&[u8])).unwrap()
}

#[test]
fn an_idle_session_costs_at_most_392_bytes_in_total() {
    let (fresh, _kcp) = heap(|| plain(&configs::classic_turbo()));
    let size = size_of::<Plain>();
    println!("{size} bytes, {fresh} on the heap");
    assert_eq!(fresh, 0, "a fresh session owns no heap");
    assert!(size <= 392, "{size} bytes");
    // Nor does one that is updated with nothing to do.
    let (idle, _kcp) = heap(|| {
        let mut kcp = plain(&configs::classic_turbo());
        (0..1000).for_each(|ms| kcp.update(Time::from_millis(ms)));
        kcp
    });
    assert_eq!(idle, 0);
}

#[test]
fn a_used_session_owns_no_heap_after_shrink() {
    for len in [1, 64, 1376, 20_000] {
        let (heap, kcp) = heap(|| {
            let mut bob = plain(&configs::classic_turbo());
            for number in 0..50 {
                bob.send(&numbered(number, len)).unwrap();
            }
            bob.send_bytes(vec![1; len].into()).unwrap();
            let mut now = Time::ZERO;
            while bob.wait_snd() > 0 {
                bob.update(now);
                let una = bob.stats().snd_nxt.0;
                bob.input(now, &Raw { una, ..Raw::ack(una - 1, 0) }.bytes()).unwrap();
                now = now + Duration::from_millis(10);
            }
            for sn in [2, 1, 4, 3, 0, 5] {
                let push = Raw { una: bob.stats().snd_nxt.0, ..Raw::push(sn, &vec![1; len.min(1400)]) };
                bob.input_bytes(now, &push.bytes().into()).unwrap();
                bob.input(now, &push.bytes()).unwrap();
                while bob.recv().is_some() {}
            }
            bob.update(now);
            assert!(bob.is_idle());
            bob.shrink();
            bob
        });
        assert_eq!(heap, 0, "messages of {len} bytes");
        drop(kcp);
    }
}

#[test]
fn shrink_keeps_everything_that_is_needed() {
    let mut kcp = plain(&Config { snd_wnd: 2, ..configs::classic_turbo() });
    for number in 0..4 {
        kcp.send(&numbered(number, 100)).unwrap();
    }
    kcp.flush(Time::ZERO);
    for sn in [0, 2] {
        kcp.input(Time::ZERO, &Raw::push(sn, &numbered(9, 300)).bytes()).unwrap();
    }
    let stats = kcp.stats();
    kcp.shrink();
    assert_eq!((kcp.stats(), kcp.wait_snd(), kcp.is_idle()), (stats, 4, false));
    assert_eq!(kcp.recv().unwrap(), numbered(9, 300));
    kcp.shrink();
    kcp.input(Time::ZERO, &Raw::push(1, &numbered(8, 300)).bytes()).unwrap();
    assert_eq!([(); 2].map(|()| kcp.recv().unwrap()), [numbered(8, 300), numbered(9, 300)]);
}

/// Heap bytes of a session with this many segments in flight, a full window.
fn in_flight(segments: u16, len: usize) -> i64 {
    let config = Config {
        snd_wnd: segments,
        rcv_wnd: segments.max(128),
        snd_queue: segments.into(),
        snd_queue_bytes: 1 << 24,
        ..configs::classic_turbo()
    };
    let (bytes, kcp) = heap(|| {
        let mut kcp = plain(&config);
        kcp.input(Time::ZERO, &Raw::wins(segments).bytes()).unwrap();
        for _ in 0..segments {
            kcp.send(&vec![0x5a; len]).unwrap();
        }
        kcp.update(Time::ZERO);
        kcp
    });
    assert_eq!(kcp.stats().in_flight, u32::from(segments));
    bytes
}

/// Subtracts the payload of a window in flight, and what a single segment in flight costs anyway: above all
/// the datagram being packed.
#[test]
fn a_segment_in_flight_costs_at_most_32_bytes_beyond_its_payload() {
    for (window, len) in [(128, 64), (8192, 64), (128, 1376), (8192, 1376)] {
        let payload = i64::from(window - 1) * i64::try_from(len).unwrap();
        let bytes = (in_flight(window, len) - in_flight(1, len) - payload) as f64 / f64::from(window - 1);
        println!("window {window}, {len} B: {bytes:.2} bytes per segment beyond its payload");
        assert!(bytes <= 32.0, "window {window}, {len} B: {bytes}");
    }
}
