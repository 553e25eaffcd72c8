//! The checks after each operation.

use super::{Flying, RECENT, Rig, index_of, without_rejected};
use std::time::Duration;
use whitewater::Time;
use whitewater::kcp::wire::{Command, DecodeError, HEADER_LEN, Header, Segment, conv_of, segments};
use whitewater::kcp::{InputError, Millis, Recovery, Stats};

impl Rig {
    /// Takes and checks what was sent. Returns the number of datagrams.
    pub(super) fn drain(&mut self, before: &Stats) -> usize {
        let (mut count, mut acks) = (0, 0);
        while let Some(datagram) = self.subject.output_mut().pop().map(<[u8]>::to_vec) {
            assert_eq!(self.twin.output_mut().pop(), Some(&datagram[..]), "the twin sends something else");
            acks += self.check_datagram(&datagram);
            self.recent.push_front(datagram);
            self.recent.truncate(RECENT);
            count += 1;
        }
        assert_eq!(self.twin.output_mut().pop(), None, "the twin sends more");
        assert!(acks <= 2 * u32::from(self.most.rcv_wnd), "{acks} ACKs at once");
        self.measured(|kcp| kcp.output_mut().shrink());
        let stats = self.subject.stats();
        let gone = index_of(stats.snd_una, before.snd_una).expect("snd_una goes forward");
        self.flying.drain(..gone);
        self.first = stats.snd_una;
        count
    }

    /// Whether a datagram should be accepted: segment by segment, in the order of ikcp.c.
    pub(super) fn judge(&self, datagram: &[u8]) -> Result<(), InputError> {
        let (stats, config) = (self.subject.stats(), self.subject.config());
        let (have, max) = (datagram.len(), usize::from(config.rcv_mtu));
        if have < HEADER_LEN {
            return Err(InputError::TooShort { have });
        }
        if have > max {
            return Err(InputError::TooLong { have, max });
        }
        let (mut rest, snd_nxt, rcv_wnd) = (datagram, stats.snd_nxt, config.rcv_wnd);
        while let Some(found) = conv_of(rest) {
            if found != self.conv {
                return Err(InputError::Conv { expected: self.conv, found });
            }
            let (Segment { header, .. }, after) = Segment::decode(rest).map_err(|error| match error {
                DecodeError::HeaderTruncated { have } => InputError::TooShort { have },
                DecodeError::DataTruncated { have, need } => InputError::Length { have, need },
                DecodeError::Command { found } => InputError::Command { found },
                _ => unreachable!("no other"),
            })?;
            let Header { cmd, frg, sn, una, .. } = header;
            match cmd {
                _ if snd_nxt.distance(una) < 0 => return Err(InputError::Una { una, snd_nxt }),
                Command::Ack if !sn.is_before(snd_nxt) => {
                    return Err(InputError::AckUnsent { sn, snd_nxt });
                }
                Command::Push if u16::from(frg) >= rcv_wnd => {
                    return Err(InputError::Fragment { frg, rcv_wnd });
                }
                _ => rest = after,
            }
        }
        Ok(())
    }

    /// Checks a datagram. Returns the number of ACKs in it.
    fn check_datagram(&mut self, datagram: &[u8]) -> u32 {
        let rcv_nxt = self.subject.stats().rcv_nxt;
        assert!(!datagram.is_empty() && datagram.len() <= self.most.mtu.into(), "{} bytes", datagram.len());
        let window = self.window();
        let mut acks = 0;
        let mut all = segments(datagram);
        for segment in all.by_ref() {
            let Segment { header, data } = segment.expect("what is sent decodes");
            assert_eq!((header.conv, header.una, header.wnd), (self.conv, rcv_nxt, window));
            match header.cmd {
                Command::Push => self.check_push(&header, data),
                Command::Ack => {
                    acks += 1;
                    assert!(data.is_empty() && header.frg == 0);
                    assert!(
                        self.taken.contains(&(header.sn.0, header.ts.0)),
                        "an ACK of nothing: {header:?}"
                    );
                }
                Command::Wask | Command::Wins => assert!(data.is_empty() && header.frg == 0),
            }
            self.segments += 1;
        }
        assert!(all.trailing().is_empty());
        acks
    }

    /// New data is sent in order, and a resend has the original bytes.
    fn check_push(&mut self, header: &Header, data: &[u8]) {
        self.check_time(header.ts);
        let index = index_of(header.sn, self.first).expect("what is acknowledged is not sent");
        if let Some(flying) = self.flying.get_mut(index) {
            assert!(!flying.acked, "sn {} is resent after its ACK", header.sn);
            assert!(flying.data == data && flying.frg == header.frg, "sn {} has changed", header.sn);
            flying.ts = header.ts;
            return;
        }
        assert_eq!(index, self.flying.len(), "sn {} follows on", header.sn);
        assert!(self.waiting.make_contiguous().starts_with(data), "sn {}: not what was sent", header.sn);
        self.waiting.drain(..data.len());
        self.flying.push_back(Flying { frg: header.frg, data: data.to_vec(), ts: header.ts, acked: false });
    }

    /// The time in what is sent is the current time, or a token for it: µs, one more for each flush.
    fn check_time(&self, ts: Millis) {
        if self.subject.config().recovery == Recovery::Classic {
            assert_eq!(ts, self.now.wire());
        } else {
            let micros = Millis((self.now.as_micros() % (1 << 32)).try_into().unwrap_or_default());
            assert!((0..=1_100_000).contains(&ts.since(micros)), "{ts:?} at {}", self.now); // later, if the clock was set back
        }
    }

    pub(super) fn check_stats(&self, before: &Stats) {
        let (stats, twin, config) = (self.subject.stats(), self.twin.stats(), self.subject.config());
        assert_eq!(without_rejected(stats), without_rejected(twin));
        assert_eq!(self.subject.peek_size(), self.twin.peek_size());
        assert_eq!(self.subject.is_dead(), self.twin.is_dead());

        let span = index_of(stats.snd_nxt, stats.snd_una).expect("snd_una is at most snd_nxt");
        assert_eq!(span, self.flying.len());
        let unacked = self.flying.iter().filter(|flying| !flying.acked).count();
        assert_eq!(stats.in_flight as usize, unacked);
        assert_eq!(self.subject.wait_snd(), (stats.in_flight + stats.snd_queue) as usize);
        assert_eq!((stats.rcv_nxt, stats.rcv_queue as usize, stats.rcv_buf as usize), self.inbox.state());
        if stats.snd_nxt != before.snd_nxt {
            assert!(span <= config.snd_wnd.min(stats.rmt_wnd).into(), "{span} in flight");
        }
        if stats.snd_queue > before.snd_queue {
            assert!(
                stats.snd_queue <= config.snd_queue && self.waiting.len() <= config.snd_queue_bytes as usize
            );
        }
        assert!(stats.rcv_queue <= self.most.rcv_wnd.into() && stats.rcv_buf <= self.most.rcv_wnd.into());
        assert!(stats.rto <= Duration::from_secs(60) && stats.srtt <= Duration::from_secs(120));
    }

    /// The memory held is bounded by the settings, whatever a peer does.
    pub(super) fn check_memory(&self) {
        let most = &self.most;
        let (snd_wnd, rcv_wnd) = (u64::from(most.snd_wnd), u64::from(most.rcv_wnd));
        let outgoing = u64::from(most.snd_queue_bytes) + snd_wnd * u64::from(most.mtu);
        let incoming = 3 * rcv_wnd * u64::from(most.rcv_mtu);
        let slots = (u64::from(most.snd_queue) + snd_wnd).next_power_of_two() * 32
            + (2 * rcv_wnd).next_power_of_two() * 16
            + (2 * rcv_wnd).next_power_of_two() * 8;
        let bound = (outgoing + incoming) / 16 * 17 + slots + 4 * u64::from(most.mtu) + 8192;
        assert!(self.held as u64 <= bound, "{} bytes held, {bound} at most", self.held);
    }

    /// `check` never returns a time that has passed, that is too late, or at which nothing is done.
    pub(super) fn check_wake(&mut self, clock: Time, updated: bool, datagrams: usize) {
        let wake = self.subject.check(self.now);
        assert_eq!(wake, self.twin.check(self.now));
        assert!(wake.is_none_or(|wake| wake >= self.now), "{wake:?} is before {}", self.now);
        let stays_asleep = self.wake.is_none_or(|wake| wake > self.now) && clock <= self.now;
        assert!(!updated || !stays_asleep || datagrams == 0, "{:?} was too late", self.wake);
        assert!(!updated || wake != Some(self.now), "update at {} leaves work for then", self.now);
        assert!(wake.is_some() || self.paced || self.subject.is_idle(), "work and no time for it");
        self.wake = wake;
    }
}
