//! Pings are answered: at once where nothing is said, or with what is said anyway, and then with how long that took and what has come.

use super::Connection;
use super::acks::low;
use super::transmit::Written;
use crate::message::Message;
use crate::packet::Acks;
use crate::seq::Seq16;
use crate::session::config::micros;
use crate::session::wire::{AckFrame, EcnFrame, Frame, FrameWriter};
use crate::time::Time;
use std::time::Duration;

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Answer {
    /// Not at all, any more.
    #[default]
    None,
    /// At once, and with nothing but what it asks.
    Plain,
    /// With what had arrived.
    Full,
}

/// What had arrived when a ping came, and when the newest of that did: so whoever pinged knows how long the answer has waited.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrived {
    acks: Acks,
    at: Time,
    /// How many packets had come.
    counts: EcnFrame,
}

impl Default for Arrived {
    fn default() -> Self {
        Self { acks: Acks { ack: Seq16(0), bits: 0 }, at: Time::ZERO, counts: EcnFrame::default() }
    }
}

impl<M: Message> Connection<M> {
    /// A ping has come. `rides`: with more than signs of life, so its answer may do so as well.
    pub(super) fn on_ping(&mut self, now: Time, pn: u64, stamp: u64, rides: bool) {
        let newest = self.received.newest(now).filter(|(acks, _)| rides && acks.ack == low(pn));
        (self.ping, self.answer) = (stamp, Answer::Plain);
        let Some((acks, age)) = newest else { return };
        self.answer = Answer::Full;
        let (at, counts) = (now.before(micros(age).into()), self.packets_received());
        self.in_use().arrived = Arrived { acks, at, counts };
    }

    /// When the answer leaves at the latest, if there is one.
    pub(super) fn answer_due(&self, now: Time) -> Time {
        match self.answer {
            Answer::None => Time::NEVER,
            Answer::Plain => now,
            Answer::Full => self.in_use.as_ref().map_or(Time::NEVER, |in_use| in_use.arrived.at + WAIT),
        }
    }

    /// Writes the answer, if it is due, or may ride and there is room for it.
    pub(super) fn write_answer(
        &mut self,
        now: Time,
        writer: &mut FrameWriter<'_>,
        rides: bool,
        written: &mut Written,
    ) {
        if self.answer == Answer::None
            || (!rides && self.answer_due(now) > now)
            || writer.room().is_none_or(|room| room < ANSWER)
        {
            return;
        }
        if let Answer::Full = std::mem::take(&mut self.answer)
            && let Some(Arrived { acks: Acks { ack, bits }, at, counts }) =
                self.in_use.as_ref().map(|in_use| in_use.arrived)
        {
            let _ = writer.push(&Frame::Ack(AckFrame { ack, bits, delay: Self::delay(now.since(at)) }));
            let _ = writer.push(&Frame::Ecn(counts));
        }
        written.any |= writer.push(&Frame::Pong(self.ping)).is_ok();
    }
}

/// How long an answer may wait for something to ride with.
const WAIT: Duration = Duration::from_millis(40);
/// Bytes of the frames of an answer: ACK, ECN, PONG.
const ANSWER: usize = 9 + 13 + 9;
