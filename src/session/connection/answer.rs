//! Pings are answered: at once where nothing is said, or with what is said anyway, and then with how long that took and what has come.

use super::Connection;
use super::acks::low;
use super::transmit::{Written, delay_units};
use crate::message::Message;
use crate::packet::Acks;
use crate::seq::Seq16;
use crate::session::config::micros;
use crate::session::wire::{AckFrame, EcnFrame, Frame, FrameWriter};
use crate::time::Time;
use std::time::Duration;

/// How the last ping is to be answered, by the stamp that it has.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Answer {
    /// Not at all, any more.
    #[default]
    None,
    /// At once, and with nothing but what it asks.
    Plain(u64),
    /// With what had arrived.
    Full(u64),
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
        self.answer = Answer::Plain(stamp);
        let Some((acks, age)) = newest else { return };
        self.answer = Answer::Full(stamp);
        let (at, counts) = (now.before(micros(age).into()), self.packets_received());
        self.measured.in_use().arrived = Arrived { acks, at, counts };
    }

    /// When the answer leaves at the latest, if there is one.
    pub(super) fn answer_due(&self, now: Time) -> Time {
        match self.answer {
            Answer::None => Time::NEVER,
            Answer::Plain(_) => now,
            Answer::Full(_) => self.measured.arrived().map_or(Time::NEVER, |arrived| arrived.at + WAIT),
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
        let answer = std::mem::take(&mut self.answer);
        if let Answer::Full(_) = answer
            && let Some(&Arrived { acks: Acks { ack, bits }, at, counts }) = self.measured.arrived()
        {
            let _ = writer.push(&Frame::Ack(AckFrame { ack, bits, delay: delay_units(now.since(at)) }));
            let _ = writer.push(&Frame::Ecn(counts));
        }
        if let Answer::Plain(stamp) | Answer::Full(stamp) = answer {
            written.any |= writer.push(&Frame::Pong(stamp)).is_ok();
        }
    }
}

/// How long an answer may wait for something to ride with.
const WAIT: Duration = Duration::from_millis(40);
/// Bytes of the frames of an answer: ACK, ECN, PONG.
const ANSWER: usize = 9 + 13 + 9;
