//! Numbered packets that are acknowledged but never resent: for data that would be out of date by the time it
//! could be resent, or for a layer above that decides what to resend.
//!
//! An [`Endpoint`] turns payloads into datagrams and datagrams into payloads, and reports which packets
//! arrived. It has neither a socket nor a clock: add a UDP socket and a call per tick. Payloads larger than a
//! datagram are sent in fragments. Nothing is encrypted or authenticated.
//!
//! ```
//! use whitewater::Time;
//! use whitewater::machine::DatagramQueue;
//! use whitewater::packet::{Endpoint, PacketConfig};
//!
//! let config = PacketConfig { protocol_id: 0x67616d65, ..PacketConfig::default() };
//! let mut alice = Endpoint::new(&config, DatagramQueue::new())?;
//! let mut bob = Endpoint::new(&config, DatagramQueue::new())?;
//!
//! let number = alice.send(Time::from_millis(0), b"position")?;
//! let datagram = alice.output_mut().pop().unwrap();
//! assert_eq!(bob.receive(Time::from_millis(30), datagram)?, Some(&b"position"[..]));
//!
//! bob.send(Time::from_millis(40), b"snapshot")?;
//! let datagram = bob.output_mut().pop().unwrap();
//! assert_eq!(alice.receive(Time::from_millis(70), datagram)?, Some(&b"snapshot"[..]));
//! assert_eq!(alice.pop_acked(), Some(number));
//! assert_eq!(alice.stats().rtt.as_millis(), 70);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Every packet says which of the newest 33 packets of the peer have arrived. An acknowledgement gets lost
//! only if every packet that the other end sends is lost while 33 packets come in. An acknowledged packet has
//! certainly arrived; an unacknowledged one is probably lost. Code on top must work correctly even if
//! acknowledgements get lost.
//!
//! docs/WIRE.md documents the bytes, docs/BEHAVIOUR.md the timers and limits.

mod acks;
mod config;
mod error;
mod fragment;
mod header;
mod stats;

pub use crate::ring::SequenceBuffer;
pub use crate::seq::Seq16;
pub(crate) use acks::{AckTracker, Acks};
pub use config::PacketConfig;
pub use error::{PacketSendError, ReceiveError};
pub use stats::{PacketStats, RejectedPackets};

use crate::config::ConfigError;
use crate::pace::{Conditions, Pace};
use crate::ring::push_newest;
use crate::time::Time;
use crate::wire::Output;
pub(crate) use fragment::Reassembly;
use header::{Fragment, Header};
use stats::{Counts, Rate};
use std::collections::VecDeque;
use std::time::Duration;

/// One end of an exchange of packets.
///
/// Call [`update`](Self::update) when [`check`](Self::check) says, and send what is in the output after each
/// call.
#[derive(Clone, Debug)]
pub struct Endpoint<O> {
    config: PacketConfig,
    output: O,
    next: Seq16,
    acks: AckTracker,
    reassembly: Reassembly,
    /// Acknowledged packets not yet returned by `pop_acked`.
    acked: VecDeque<Seq16>,
    /// Lost packets not yet returned by `pop_lost`.
    lost: VecDeque<Seq16>,
    /// When a packet was last sent or the first one was received; `None` before both.
    spoke: Option<Time>,
    pace: Pace,
    /// The counters.
    counts: Counts,
    /// Rates of bytes sent, received and acknowledged.
    rates: [Rate; 3],
    datagram: Vec<u8>,
}

impl<O: Output> Endpoint<O> {
    /// Creates an endpoint whose first packet has the number 0. It allocates nothing yet.
    ///
    /// # Errors
    ///
    /// If a field of `config` is out of range.
    pub fn new(config: &PacketConfig, output: O) -> Result<Self, ConfigError> {
        Self::starting_at(config, output, Seq16(0))
    }

    /// Creates an endpoint whose first packet has the number `first`.
    ///
    /// # Errors
    ///
    /// If a field of `config` is out of range.
    pub fn starting_at(config: &PacketConfig, output: O, first: Seq16) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            config: *config,
            output,
            next: first,
            acks: AckTracker::new(config),
            reassembly: Reassembly::new(config.reassemblies, config.payload_max),
            acked: VecDeque::new(),
            lost: VecDeque::new(),
            spoke: None,
            pace: Pace::new(&config.max_rate)?,
            counts: Counts::default(),
            rates: <[Rate; 3]>::default(),
            datagram: Vec::new(),
        })
    }

    /// Sends a packet at once, in one datagram or in fragments, and returns its number. It is not resent;
    /// [`pop_acked`](Self::pop_acked) reports whether it has arrived.
    ///
    /// An empty payload only carries acknowledgements, as a keepalive does.
    ///
    /// # Errors
    ///
    /// If the payload is too long. Nothing is sent then.
    pub fn send(&mut self, now: Time, payload: &[u8]) -> Result<Seq16, PacketSendError> {
        let max = self.config.payload_max;
        if !u32::try_from(payload.len()).is_ok_and(|len| len <= max) {
            return Err(PacketSendError::TooLong { len: payload.len(), max });
        }
        self.tick(now);
        Ok(self.send_packet(now, payload))
    }

    /// Takes a datagram. Returns the payload if that completes a non-empty packet.
    ///
    /// # Errors
    ///
    /// If the datagram is not valid, comes too late, or is a duplicate. Nothing has changed but a counter and
    /// what changes as time passes.
    pub fn receive<'a>(
        &'a mut self,
        now: Time,
        datagram: &'a [u8],
    ) -> Result<Option<&'a [u8]>, ReceiveError> {
        let Some((sequence, data)) = self.open(now, datagram)? else { return Ok(None) };
        self.acks.on_received(now, sequence);
        self.counts.received += 1;
        let payload = data.unwrap_or_else(|| &self.reassembly.complete);
        Ok(Some(payload).filter(|payload| !payload.is_empty()))
    }

    /// Takes a datagram and passes the payload to `take` if that completes a non-empty packet. If `take`
    /// returns `false`, the packet is not acknowledged, as if it had been lost.
    ///
    /// # Errors
    ///
    /// As [`receive`](Self::receive), and if `take` refuses.
    pub fn receive_if(
        &mut self,
        now: Time,
        datagram: &[u8],
        take: impl FnOnce(&[u8]) -> bool,
    ) -> Result<(), ReceiveError> {
        let Some((sequence, data)) = self.open(now, datagram)? else { return Ok(()) };
        let payload = data.unwrap_or_else(|| &self.reassembly.complete);
        if !payload.is_empty() && !take(payload) {
            let error = ReceiveError::Refused { sequence };
            self.counts.rejected.count(&error);
            return Err(error);
        }
        self.acks.on_received(now, sequence);
        self.counts.received += 1;
        Ok(())
    }

    /// Returns the number of a packet that has arrived at the peer, in the order in which that became known.
    /// Each packet that arrived is returned exactly once.
    ///
    /// If you do not call this, the newest [`sent`](PacketConfig::sent) numbers are kept.
    pub fn pop_acked(&mut self) -> Option<Seq16> {
        self.acked.pop_front()
    }

    /// Returns the number of a packet that is presumed lost: a packet sent later has arrived at the peer, and
    /// this one has not. Each is returned once, as soon as that is known, which is mostly one round trip plus
    /// the time to the next packet after it was sent. The endpoint learns how far packets overtake each
    /// other, so few are reported wrongly; those are also returned by [`pop_acked`](Self::pop_acked). Some
    /// losses are never detected this way: see docs/BEHAVIOUR.md.
    ///
    /// If you do not call this, the newest [`sent`](PacketConfig::sent) numbers are kept.
    pub fn pop_lost(&mut self) -> Option<Seq16> {
        self.lost.pop_front()
    }

    /// Counts losses and sends a keepalive if one is due. Call it when [`check`](Self::check) says, or on
    /// every tick.
    pub fn update(&mut self, now: Time) {
        self.tick(now);
        if self.keepalive_at().is_some_and(|at| at <= now) {
            self.send_packet(now, &[]);
            self.counts.keepalives += 1;
        }
        self.choose_mode(now);
    }

    /// When to call [`update`](Self::update) next, at `now` or later; `None`: not until something is sent or
    /// received.
    #[must_use]
    pub fn check(&self, now: Time) -> Option<Time> {
        let due = [self.keepalive_at(), self.acks.check_loss()].into_iter().flatten().min()?;
        Some(due.max(now))
    }

    /// Packets that you should send per second, by the [mode](PacketStats::pace).
    #[must_use]
    pub const fn rate(&self) -> u16 {
        self.pace.rate()
    }

    /// The settings that it was made from.
    #[must_use]
    pub const fn config(&self) -> &PacketConfig {
        &self.config
    }

    /// The output for datagrams.
    #[must_use]
    pub const fn output(&self) -> &O {
        &self.output
    }

    /// The output for datagrams, mutable, to take them out.
    pub const fn output_mut(&mut self) -> &mut O {
        &mut self.output
    }

    /// Counters and measurements as of the last call.
    #[must_use]
    pub fn stats(&self) -> PacketStats {
        let (rtt, loss) = (&self.acks.rtt, &self.acks.loss);
        let [sent_bandwidth, received_bandwidth, acked_bandwidth] = self.rates.map(|rate| rate.per_second());
        let mut stats = PacketStats {
            rtt: rtt.smoothed(),
            rtt_min: rtt.min(),
            rtt_max: rtt.max(),
            jitter: rtt.jitter(),
            loss: loss.share,
            sent_bandwidth,
            received_bandwidth,
            acked_bandwidth,
            lost: loss.lost,
            abandoned: self.reassembly.abandoned,
            heard: self.acks.heard,
            pace: self.pace.state,
            ..PacketStats::default()
        };
        self.counts.show(&mut stats);
        stats
    }

    /// Checks a datagram and applies its acknowledgements. Returns the number of the packet if it is
    /// complete, and its payload unless it came in fragments.
    #[expect(clippy::type_complexity, reason = "a packet number, and its payload unless fragmented")]
    fn open<'a>(
        &mut self,
        now: Time,
        datagram: &'a [u8],
    ) -> Result<Option<(Seq16, Option<&'a [u8]>)>, ReceiveError> {
        self.tick(now);
        let (Header { sequence, fragment, acks }, data) = match self.check_datagram(datagram) {
            Ok(checked) => checked,
            Err(error) => {
                self.counts.rejected.count(&error);
                return Err(error);
            }
        };
        self.spoke.get_or_insert(now);
        let [_, received, _] = &mut self.rates;
        received.add(now, datagram.len() as u64);
        self.acks.heard = Some(now);
        if let Some(acks) = acks {
            self.apply_acks(now, acks);
        }
        self.choose_mode(now);
        Ok(match fragment {
            None => {
                self.reassembly.advance(sequence);
                Some((sequence, Some(data)))
            }
            Some(fragment) => self.reassembly.add(sequence, fragment, data).then_some((sequence, None)),
        })
    }

    /// Does what is due as time passes. Every call begins with it.
    fn tick(&mut self, now: Time) {
        self.acks.update(now);
        if self.acks.heard.is_none() {
            self.reassembly.clear();
        }
        self.rates.iter_mut().for_each(|rate| rate.update(now));
    }

    fn choose_mode(&mut self, now: Time) {
        self.pace.update(now, &Conditions::of(&self.acks.rtt, &self.acks.loss));
    }

    /// Checks all of a datagram before any of it is applied.
    fn check_datagram<'a>(&self, datagram: &'a [u8]) -> Result<(Header, &'a [u8]), ReceiveError> {
        let (header, data) = Header::decode(self.config.protocol_id, datagram)?;
        let Header { sequence, fragment, acks } = header;
        self.acks.check(sequence)?;
        if let Some(Acks { ack, .. }) = acks.filter(|acks| !self.acks.is_possible(*acks)) {
            return Err(ReceiveError::AckUnsent { ack });
        }
        match fragment {
            Some(fragment) => self.reassembly.check(sequence, fragment, data)?,
            None => self.reassembly.check_len(data.len())?,
        }
        Ok((header, data))
    }

    fn apply_acks(&mut self, now: Time, acks: Acks) {
        let acked = self.acks.on_acks(now, acks, Duration::ZERO, Duration::ZERO);
        let most = usize::from(self.config.sent);
        let [_, _, acknowledged] = &mut self.rates;
        acknowledged.add(now, acked.bytes);
        for sequence in acked.lost() {
            self.counts.overtaken += 1;
            push_newest(&mut self.lost, sequence, most);
        }
        for sequence in acked {
            self.counts.acked += 1;
            self.counts.acked_unread += u64::from(push_newest(&mut self.acked, sequence, most));
        }
    }

    fn send_packet(&mut self, now: Time, payload: &[u8]) -> Seq16 {
        let sequence = self.next;
        self.next = sequence.add(1);
        let header = Header { sequence, fragment: None, acks: self.acks.acks() };
        let bytes = if payload.len() <= self.config.fragment_above.into() {
            self.send_datagram(header, payload)
        } else {
            self.send_fragments(header, payload)
        };
        self.acks.on_sent(now, sequence, bytes);
        self.counts.sent += 1;
        let [rate, ..] = &mut self.rates;
        rate.add(now, bytes.into());
        self.spoke = Some(now);
        sequence
    }

    /// Sends a packet in fragments, the first of which carries the acks, and returns their total size, bytes.
    fn send_fragments(&mut self, header: Header, payload: &[u8]) -> u32 {
        let one = usize::from(self.config.fragment_above);
        let last = u8::try_from((payload.len() - 1) / one).unwrap_or(u8::MAX);
        let mut bytes = 0;
        for (id, data) in (0..=last).zip(payload.chunks(one)) {
            let fragment = Some(Fragment { id, last });
            let acks = header.acks.filter(|_| id == 0);
            bytes += self.send_datagram(Header { fragment, acks, ..header }, data);
        }
        bytes
    }

    fn send_datagram(&mut self, header: Header, data: &[u8]) -> u32 {
        self.datagram.clear();
        header.encode(self.config.protocol_id, &mut self.datagram);
        self.datagram.extend_from_slice(data);
        self.output.output(&self.datagram);
        self.counts.datagrams_sent += 1;
        u32::try_from(self.datagram.len()).unwrap_or(u32::MAX)
    }

    fn keepalive_at(&self) -> Option<Time> {
        Some(self.spoke? + self.config.keepalive?)
    }
}
