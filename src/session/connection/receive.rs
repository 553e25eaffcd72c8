//! Takes datagrams: opens each, and passes each frame to its part.

use super::acks::{DELAY_UNIT, low};
use super::handled::{Elicits, Handled};
use super::life::Life;
use super::loss::Told;
use super::path::Came;
use super::{Connection, Peer, Pending};
use crate::channel::{CHANNELS_MAX, ReadError};
use crate::machine::{Arrival, is_beside_udp};
use crate::packet::Acks;
use crate::seq::Seq16;
use crate::session::config::{DATAGRAM_MAX, SessionConfig};
use crate::session::event::{CloseReason, SessionEvent};
use crate::session::replay::Replayed;
use crate::session::seal::OpenError;
use crate::session::wire::{AckFrame, Data, Frame, Frames};
use crate::time::Time;
use std::net::SocketAddr;
use std::time::Duration;

impl Connection {
    /// Takes a DATA datagram with this header, and decrypts it in place. Returns whether it was authentic and new. If
    /// not, only a counter has changed. `scratch`: a buffer whose content does not matter.
    pub(in crate::session) fn handle_data(
        &mut self,
        now: Time,
        from: Arrival,
        (header, datagram): (Data, &mut [u8]),
        scratch: &mut Vec<u8>,
    ) -> bool {
        self.lanes.beyond_shares = None; // the application may have read
        let is_new = self.open_data(now, from, (header, datagram), scratch);
        self.events.writable |= self.lanes.became_writable();
        self.observe(now);
        is_new
    }

    fn open_data(
        &mut self,
        now: Time,
        from: Arrival,
        (header, datagram): (Data, &mut [u8]),
        scratch: &mut Vec<u8>,
    ) -> bool {
        let Arrival { address: from, ecn, underlay, .. } = from;
        self.keepalive.tick(now);
        if self.is_closed() {
            self.stats.rare_mut().rejected.late += 1;
            return false;
        }
        if !self.path.may_be(from) {
            self.stats.rare_mut().rejected.stranger += 1;
            return false;
        }
        let len = datagram.len();
        let header = self.seal.unmask(header, datagram);
        let opened = match self.seal.open_data(now, header, datagram) {
            Ok(opened) => opened,
            Err(error) => {
                if error == OpenError::Replayed(Replayed::Duplicate) {
                    self.on_duplicate(now, from, header, datagram);
                }
                return self.refuse(now, error);
            }
        };
        self.stats.received += 1;
        self.stats.bytes_received += len as u64;
        if let Some(observer) = &mut self.observer {
            observer.log.push(now, SessionEvent::In { pn: opened.pn, bytes: len as u64 });
        }
        if self.stats.received == 1 {
            let left = self.keepalive.heard;
            self.keepalive.on_proof(now.since(left));
            self.measured.rtt.sample(left, now.since(left)); // the packet that created this end has been answered
        }
        if self.keepalive.on_heard(now)
            && let Some(in_use) = &mut self.measured.in_use
        {
            in_use.held = now;
        }
        let came = Came { from, sid: self.sid_back(header), pn: opened.pn, is_newest: opened.newest, len };
        let frames = Frames::parse(opened.body);
        self.note_path(now, &came, frames.as_ref().is_ok_and(Frames::are_copied));
        if came.is_newest && from == self.path.route.address {
            self.carried_by(underlay);
        }
        match frames {
            Ok(frames) => {
                let ack_due = now.after(self.ack_delay());
                if let Some(marks) = &mut self.marks {
                    marks.on_received(ecn, frames.only_tells(), ack_due);
                }
                let elicits = if len > DATAGRAM_MAX.into() { Elicits::Ack } else { Elicits::Nothing };
                let handled = Handled { elicits, ..Handled::new(opened.pn, scratch) };
                self.handle_frames(now, from, handled, frames);
            }
            Err(_) => self.fail(now, CloseReason::Protocol),
        }
        true
    }

    /// Takes a packet that had come before, perhaps from another address.
    fn on_duplicate(&mut self, now: Time, from: SocketAddr, header: Data, datagram: &mut [u8]) {
        let pn = self.seal.expand(header);
        if self.path.heeds_copy(now, from, pn) && self.seal.is_authentic(now, header, datagram) {
            let came = Came { from, sid: self.sid_back(header), pn, is_newest: false, len: datagram.len() };
            self.path.on_copy(now, &came, &self.measured.rtt);
        }
    }

    /// The number for answers to a packet.
    #[inline]
    fn sid_back(&self, Data { sid, .. }: Data) -> u32 {
        let Peer { is_server, sid: first, .. } = self.peer;
        match sid {
            _ if is_server => self.path.route.sid,
            sid if sid == self.lanes.conv => first,
            sid => self.seal.sid_for(sid),
        }
    }

    fn refuse(&mut self, now: Time, error: OpenError) -> bool {
        let rejected = &mut self.stats.rare_mut().rejected;
        *match error {
            OpenError::Replayed(Replayed::Duplicate) => &mut rejected.duplicate,
            OpenError::Replayed(Replayed::Stale) | OpenError::Phase => &mut rejected.stale,
            OpenError::Packet(_) => &mut rejected.malformed,
            _ => &mut rejected.forged,
        } += 1;
        if error == OpenError::KeySpent {
            self.fail(now, CloseReason::Exhausted);
        }
        false
    }

    fn handle_frames(
        &mut self,
        now: Time,
        from: SocketAddr,
        mut handled: Handled<'_>,
        mut frames: Frames<'_>,
    ) {
        if let Life::Closing(closing) = &mut self.life {
            closing.on_packet();
            let (reason, undelivered) = (closing.reason, closing.undelivered);
            for frame in frames {
                match frame {
                    Frame::Close(..) => self.end(reason, undelivered),
                    Frame::PathResponse(response) => self.on_response(now, response),
                    _ => {}
                }
            }
            return;
        }
        if frames.take_copy() && !self.on_copied(now, &mut handled) {
            return;
        }
        if self.repairs.is_some() {
            if self.on_protected(now, from, &mut handled, frames) {
                handled.elicits = Elicits::Ack;
            }
            if !self.is_open() {
                return; // what was rebuilt has ended the session
            }
        }
        let has_more_than_signs = frames.has_more_than_signs();
        for frame in &mut frames {
            if frame.has_data() {
                self.be_busy(now);
                self.note_bare(handled.pn, &frame);
            }
            if let Err(reason) = self.handle_frame(now, from, &frame, &mut handled) {
                return self.fail(now, reason);
            }
            if self.is_closed() {
                return;
            }
        }
        if let Some(told) = handled.told {
            self.on_told(now, told, None);
        }
        if !handled.refused {
            let due = match handled.elicits {
                Elicits::Nothing => None,
                Elicits::Receipt => Some(now.after((RECEIPT * self.ack_delay()).min(RECEIPT_MAX))),
                Elicits::Ack => Some(now.after(self.ack_delay())),
            };
            self.received.add(now, handled.pn, due);
        }
        if let Some(stamp) = handled.ping {
            // A session that rests has nothing for the answer to ride with.
            self.on_ping(handled.pn, stamp, has_more_than_signs && !self.seal.is_resting());
        }
    }

    pub(super) fn handle_frame(
        &mut self,
        now: Time,
        from: SocketAddr,
        frame: &Frame<'_>,
        handled: &mut Handled<'_>,
    ) -> Result<(), CloseReason> {
        match *frame {
            Frame::Kcp(segments) if handled.segments < KCP_MAX => {
                handled.segments += 1;
                let most = usize::from(self.segments_max()).saturating_sub(handled.expanded);
                handled.expanded +=
                    self.on_segments(now, (segments, handled.is_rebuilt), most, handled.scratch)?;
            }
            Frame::KcpPart(part, bytes) if handled.parts < PARTS_MAX => {
                self.on_part(now, (part, bytes), handled)?;
            }
            Frame::Dgram(datagram) => {
                let held = self.datagrams.memory();
                let has_room = self.budget.has_room(datagram.len())
                    && self.datagrams.receive(&self.lanes.config, datagram);
                let grown = self.datagrams.memory().saturating_sub(held);
                self.budget.spend(grown.max(datagram.len()));
                let is_lossy = self.repairs.as_ref().is_some_and(|repairs| repairs.sees_loss());
                let elicits = if is_lossy { Elicits::Ack } else { Elicits::Receipt };
                handled.elicits = handled.elicits.max(elicits);
                handled.refused |= !has_room;
                self.events.readable |= has_room;
                if !has_room {
                    self.stats.rare_mut().datagrams_refused += 1;
                }
            }
            Frame::Packed(_) if handled.is_packed => return Err(CloseReason::Protocol), // what fits shares one
            Frame::Packed(payload) => {
                (handled.elicits, handled.is_packed) = (Elicits::Ack, true);
                let channels = self.packed.as_mut().ok_or(CloseReason::Protocol)?;
                let has_come = |channel| self.lanes.has_message(channel);
                match channels.read_in(payload, self.budget.left, has_come) {
                    Ok(bytes) => {
                        self.budget.spend(bytes.max(payload.len()));
                        self.events.readable = true;
                    }
                    Err(error) => {
                        handled.refused = true;
                        self.stats.rare_mut().messages_refused += 1;
                        if !matches!(error, ReadError::NoRoom { .. }) {
                            return Err(CloseReason::Protocol); // the peer would send it again and again
                        }
                    }
                }
            }
            // Whoever reports more often in a packet repeats itself, and each report takes dozens of look-ups.
            Frame::Ack(_) if handled.acks == ACKS_MAX => {}
            Frame::Ack(ack) => {
                handled.acks += 1;
                handled.delay = Duration::from_micros(u64::from(ack.delay) * DELAY_UNIT);
                handled.told = self.on_acks(now, handled.pn, ack, handled.delay)?;
            }
            Frame::Ecn(counts) => {
                if let Some(told) = handled.told.take() {
                    self.on_told(now, told, Some(counts.packets()));
                }
                if self.marks.as_mut().is_some_and(|marks| marks.on_counts(handled.pn, counts) > 0) {
                    self.lanes.blocks().for_each(|(_, kcp)| kcp.congestion_marked(now));
                }
            }
            Frame::Loss(loss) if handled.losses < ACKS_MAX => {
                handled.losses += 1;
                self.on_loss(now, handled.pn, loss)?;
            }
            Frame::Ping(stamp) => handled.ping = Some(stamp),
            Frame::Pong(stamp) => self.on_pong(now, stamp, handled.delay),
            Frame::PathChallenge(challenge) => self.path.on_challenge(from, challenge),
            Frame::PathResponse(response) => self.on_response(now, response),
            Frame::Close(code, text) => self.on_close(code, text),
            Frame::Redirect(token) => {
                handled.elicits = Elicits::Ack;
                self.on_redirect(handled.pn, token)?;
            }
            Frame::Rekey(half) => self.on_half(now, &half),
            Frame::NewId(id) => {
                if self.seal.is_resting() {
                    self.received.rides(); // with the next ping or its answer
                } else {
                    handled.elicits = Elicits::Ack;
                }
                self.on_new_id(handled.pn, id)?;
            }
            Frame::KcpPart(..) => self.stats.rare_mut().parts_refused += 1,
            Frame::Kcp(_) | Frame::Loss(_) | Frame::Pad(_) | Frame::Repair(..) | Frame::Copy() => {}
        }
        Ok(())
    }

    /// Takes a report on sent packets: an ACK, and perhaps the number that have arrived in total.
    fn on_told(&mut self, now: Time, told: Told, packets: Option<u32>) {
        if self.measured.in_use.is_none() && self.seal.is_resting() {
            return; // it has sent only signs of life
        }
        let loss = &mut self.measured.in_use().loss;
        loss.probes_missing(self.mtu.probes_missing());
        loss.on_told(now, told, packets);
    }

    /// Takes the answer of an address. If it is right, the peer may be there now.
    fn on_response(&mut self, now: Time, response: [u8; 8]) {
        let key = self.key;
        let answers = |question: u32| key.challenge(question) == response;
        if let Some(old) = self.path.on_response(now, answers) {
            self.on_moved(now, old);
        }
    }

    /// The peer has moved from this address.
    #[cold]
    pub(super) fn on_moved(&mut self, now: Time, old: SocketAddr) {
        let from = self.path.route.address;
        self.on_stale_token(now);
        self.note_move(old);
        if old.ip().to_canonical() != from.ip().to_canonical() || is_beside_udp(old) != is_beside_udp(from) {
            self.forget_path(now);
        }
    }

    pub(super) fn note_move(&mut self, old: SocketAddr) {
        self.stats.rare_mut().moves += 1;
        let (from, Pending { moved, .. }) = (self.path.route.address, &mut self.events);
        let first = moved.as_ref().map_or(old, |moved| moved.0);
        *moved = (first != from).then(|| Box::new((first, from)));
    }

    /// Most bytes of segments in a packet, with whole headers: the work for compact ones is no more than for whole ones.
    pub(super) fn segments_max(&self) -> u16 {
        SessionConfig::frame_max(self.lanes.config.datagram_taken())
    }

    /// Takes the segments of a frame, and whether it was rebuilt. Returns how many bytes they have with whole headers, at
    /// most `most`.
    #[inline]
    pub(super) fn on_segments(
        &mut self,
        now: Time,
        (segments, is_rebuilt): (&[u8], bool),
        most: usize,
        scratch: &mut Vec<u8>,
    ) -> Result<usize, CloseReason> {
        let lane = self.lanes.expand(now, (segments, is_rebuilt), most, scratch).map_err(|error| {
            log::trace!("segments are refused: {error}");
            self.stats.rare_mut().segments_refused += 1;
            CloseReason::Protocol
        })?;
        let (grown, joined, readable) = self.lanes.input(now, (lane, scratch), self.left())?;
        if std::mem::take(&mut self.lanes.is_surprised) {
            self.keepalive.ask_now();
        }
        self.budget.spend(grown.max(segments.len()));
        self.budget.on_joined(joined);
        self.events.readable |= readable.is_some_and(|channel| self.is_next(channel));
        Ok(scratch.len())
    }

    /// The full number of a sent packet, of which the packet `pn` of the peer reports the low 16 bits, and which of the
    /// 33 numbers up to it were skipped. `set`: bit n says that the packet with that number - n has arrived. `None`: an
    /// honest report may be that late. Fails if one of the packets was never sent.
    pub(super) fn number_sent(
        &mut self,
        pn: u64,
        told: Seq16,
        set: u64,
    ) -> Result<Option<(u64, u64)>, CloseReason> {
        let key = self.key;
        let last = self.seal.last(key);
        let age = u64::from(low(last).0.wrapping_sub(told.0));
        let mut number = last.checked_sub(age).filter(|_| self.seal.next() > 0);
        if number.is_some() && age >= AGE_MAX {
            let acked = self.measured.in_use.as_ref().map_or(0, |in_use| in_use.acked);
            if self.seal.newest() > Some(pn) || last.saturating_sub(acked) >= AGE_MAX / 2 {
                return Ok(None);
            }
            number = None; // it is ahead of the last
        }
        let number = number.map(|number| (number, self.seal.skipped_among(key, number)));
        let number = number.filter(|(_, skipped)| skipped & set == 0).ok_or_else(|| {
            self.stats.rare_mut().false_acks += 1;
            CloseReason::Protocol
        })?;
        Ok(Some(number))
    }

    fn on_acks(
        &mut self,
        now: Time,
        pn: u64,
        acks: AckFrame,
        delay: Duration,
    ) -> Result<Option<Told>, CloseReason> {
        let AckFrame { ack, bits, .. } = acks;
        let number = self.number_sent(pn, ack, u64::from(bits) << 1 | 1)?;
        let Some((newest, skipped)) = number else { return Ok(None) };
        if let Some(in_use) = &mut self.measured.in_use {
            in_use.acked = in_use.acked.max(newest);
        }
        if let Some(ids) = &mut self.ids {
            ids.on_acked(newest, bits);
        }
        if let Some(repairs) = &mut self.repairs {
            repairs.acked(newest, bits);
        }
        let told = Told::new(newest, bits, self.seal.skipped_up_to(self.key, newest), skipped);
        let Some(sent) = &mut self.sent else { return Ok(Some(told)) };
        let acked = sent.on_acks(now, Acks { ack, bits }, delay, self.keepalive.least());
        if let Some((left, rtt)) = acked.round_trip {
            self.measured.on_round_trip(left, rtt);
            if self.keepalive.is_surprising(now.since(left)) {
                self.keepalive.ask_now();
            }
        }
        for sequence in acked {
            self.mtu.on_arrived(now, sequence, sent.bytes_sent(sequence));
            self.datagrams.on_acked(sequence);
            self.redirects.on_acked(newest.saturating_sub(ack.0.wrapping_sub(sequence.0).into()));
            if let Some(channels) = &mut self.packed {
                channels.on_acked(sequence);
            }
        }
        if let Some(channels) = &mut self.packed {
            acked.lost().for_each(|sequence| channels.on_lost(sequence));
        }
        let settled = sent.forget_settled(Acks { ack, bits });
        self.datagrams.forget_before(settled);
        self.packed.iter_mut().for_each(|channels| channels.forget_before(settled));
        Ok(Some(told))
    }
}

/// How many times `ack_delay` the acknowledgement of unreliable datagrams may wait, so that it rides with the next tick of
/// most games, and for how long at most, µs.
const RECEIPT: u64 = 4;
const RECEIPT_MAX: u64 = 100_000;
/// Most reports on packets that count in a packet, and as many on losses; honest ones have two at most.
const ACKS_MAX: u8 = 4;
/// A report on a packet before so many others cannot be told from one on a packet that was never sent.
const AGE_MAX: u64 = 1 << 15;
/// Most frames of segments that count in a packet: one for each channel.
pub(super) const KCP_MAX: usize = CHANNELS_MAX;
/// Most parts of frames that count in a packet. They are cut to fill it: at most three fit.
const PARTS_MAX: u8 = 16;
