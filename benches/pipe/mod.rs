//! Two control blocks joined in memory: a virtual clock, a path that delays and loses, and a sender that
//! always has more to send. Every implementation of [`Peer`] is treated the same.

mod adapter;
mod link;

#[allow(unused_imports, reason = "each binary that shares this module uses its part")]
pub(crate) use adapter::{ByTime, Whitewater};
pub(crate) use link::{Link, Port};

/// One end of a conversation, as [`Pipe`] drives it: `nodelay(1, 10, 2, 1)`, mtu 1400. Times are in ms. If an
/// implementation refuses something, the benchmark is at fault, so it panics.
pub(crate) trait Peer {
    /// The name in the tables.
    const NAME: &'static str;

    /// Creates an end of conversation [`CONV`] with this send and receive window.
    fn new(window: u16, port: Port) -> Self;
    fn send(&mut self, message: &[u8]);
    fn recv(&mut self, buf: &mut [u8]) -> Option<usize>;
    fn input(&mut self, now: u32, datagram: &[u8]);

    /// Like [`input`](Self::input), for a datagram that is not needed afterwards.
    fn input_mut(&mut self, now: u32, datagram: &mut [u8]) {
        self.input(now, datagram);
    }

    fn update(&mut self, now: u32);
    fn wait_snd(&self) -> usize;
}

/// The parameters of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Size of a message, bytes: at least 8 and at most [`MSS`], so that a message is a segment.
    pub(crate) size: usize,
    /// In segments, both directions.
    pub(crate) window: u16,
    /// Loss in percent, both directions.
    pub(crate) loss: u32,
}

/// A sender, a receiver and the path between them.
pub(crate) struct Pipe<P> {
    sender: P,
    receiver: P,
    there: Port,
    back: Port,
    now: u32,
    queued: usize,
    message: Vec<u8>,
    buf: Vec<u8>,
    sent: u64,
    received: u64,
    wanted: u64,
}

impl<P: Peer> Pipe<P> {
    pub(crate) fn new(load: Load) -> Self {
        // More room than any run needs for datagrams in flight, so that the path does not allocate.
        let room = 2 * usize::from(load.window) + 256;
        let there = Link::port(DELAY, load.loss, 1, room);
        let back = Link::port(DELAY, load.loss, 2, room);
        Self {
            sender: P::new(load.window, there.clone()),
            receiver: P::new(load.window, back.clone()),
            there,
            back,
            now: 0,
            queued: 2 * usize::from(load.window),
            message: vec![0x5a; load.size],
            buf: vec![0; MTU],
            sent: 0,
            received: 0,
            wanted: 0,
        }
    }

    /// Runs until `count` more messages have been delivered. A run stops at the end of a tick; messages that
    /// came early count for the next run.
    pub(crate) fn deliver(&mut self, count: u64) {
        self.wanted += count;
        let mut progress = (self.now, self.received);
        while self.received < self.wanted {
            self.tick();
            if self.received > progress.1 {
                progress = (self.now, self.received);
            }
            assert!(self.now - progress.0 < 60_000, "{}: nothing came out for a minute", P::NAME);
        }
    }

    fn tick(&mut self) {
        self.now += TICK;
        self.there.set_clock(self.now);
        self.back.set_clock(self.now);
        self.there.deliver(self.now, |at, datagram| self.receiver.input_mut(at, datagram));
        self.back.deliver(self.now, |at, datagram| self.sender.input_mut(at, datagram));
        while let Some(len) = self.receiver.recv(&mut self.buf) {
            let message = self.buf.get(..len).unwrap_or_default();
            assert!(is_numbered(message, self.received), "{}: message {}", P::NAME, self.received);
            self.received += 1;
        }
        for _ in self.sender.wait_snd()..self.queued {
            if let Some(number) = self.message.first_chunk_mut() {
                *number = self.sent.to_le_bytes();
            }
            self.sender.send(&self.message);
            self.sent += 1;
        }
        self.sender.update(self.now);
        self.receiver.update(self.now);
    }
}

/// For the comparison of implementations only.
#[allow(dead_code, reason = "each binary that shares this module uses its part")]
impl<P: Peer> Pipe<P> {
    /// Messages delivered so far.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    /// The virtual time, ms.
    pub(crate) fn now(&self) -> u32 {
        self.now
    }

    /// Bytes sent over the path so far, both directions.
    pub(crate) fn bytes(&self) -> u64 {
        self.there.bytes() + self.back.bytes()
    }

    /// Sends nothing new and runs until everything is delivered and acknowledged. Returns the two ends, and
    /// the path that they still use.
    pub(crate) fn drain(mut self) -> (P, P, [Port; 2]) {
        self.queued = 0;
        while self.sender.wait_snd() > 0 {
            self.tick();
        }
        (self.sender, self.receiver, [self.there, self.back])
    }
}

/// A sender with a full window of messages of `size` bytes in flight since time 0; nothing arrives.
pub(crate) fn full_window<P: Peer>(size: usize, window: u16, nowhere: &Port) -> P {
    let mut peer: P = queued_window(size, window, nowhere);
    peer.update(0);
    peer
}

/// The same before the flush that sends it.
pub(crate) fn queued_window<P: Peer>(size: usize, window: u16, nowhere: &Port) -> P {
    let mut peer = P::new(window, nowhere.clone());
    // The peer's window is assumed to be 128 until it says otherwise.
    peer.input(0, &header(WINS, window, 0, 0));
    let message = vec![0x5a; size];
    (0..window).for_each(|_| peer.send(&message));
    peer
}

/// A full datagram of ACKs for the newest segments in flight, none of which the peer can have received. An
/// implementation that searches from the oldest segment on has to walk through all of them.
pub(crate) fn forged_acks(window: u16) -> Vec<u8> {
    (window - ACKS_A_DATAGRAM..window).flat_map(|sn| header(ACK, window, sn.into(), 0)).collect()
}

/// The 24-byte header of a segment, written by hand so that every implementation gets the same.
pub(crate) fn header(cmd: u8, wnd: u16, sn: u32, len: usize) -> [u8; HEADER_LEN] {
    let words = [
        u64::from(CONV) | u64::from(cmd) << 32 | u64::from(wnd) << 48,
        u64::from(sn) << 32, // ts 0
        (len as u64) << 32,  // una 0
    ];
    let mut bytes = [0; HEADER_LEN];
    let (chunks, _) = bytes.as_chunks_mut();
    chunks.iter_mut().zip(words).for_each(|(chunk, word)| *chunk = word.to_le_bytes());
    bytes
}

pub(crate) const CONV: u32 = 0x7777;
pub(crate) const MTU: usize = 1400;
pub(crate) const HEADER_LEN: usize = 24;
pub(crate) const MSS: usize = MTU - HEADER_LEN;
pub(crate) const PUSH: u8 = 81;
pub(crate) const ACK: u8 = 82;
pub(crate) const WINS: u8 = 84;
/// How many segments without data fit a datagram.
pub(crate) const ACKS_A_DATAGRAM: u16 = 58;
/// ms between two calls of `update`; also the flush interval.
pub(crate) const TICK: u32 = 10;
/// Delay in each direction, ms: half a round trip of 50 ms.
const DELAY: u32 = 25;

/// Whether the message has this number.
fn is_numbered(message: &[u8], number: u64) -> bool {
    message.first_chunk() == Some(&number.to_le_bytes())
}
