//! One session of a server.

use super::graves::Attempt;
use crate::session::connection::Connection;
use crate::time::Time;
use std::net::IpAddr;
use std::time::Duration;

/// A session, and what its server knows of it.
#[derive(Debug)]
pub(super) struct Peer<M> {
    pub(super) connection: Connection<M>,
    pub(super) attempt: Attempt,
    /// What it counts against.
    pub(super) host: IpAddr,
    pub(super) stage: Stage,
    /// Bytes that it held when it was counted last, and has taken since, which are some of them.
    pub(super) counted: u64,
    pub(super) taken: u64,
    /// It has taken some since it was polled last.
    pub(super) took: bool,
    /// When its connection has something to do, as it said when it was polled last.
    pub(super) due: Time,
    /// When it is looked at next, which is not later.
    pub(super) wake: Option<Time>,
    /// Whether it is on the list of those that may have something to send, or to tell.
    pub(super) is_listed: bool,
    pub(super) is_eventful: bool,
    /// What its connect token said.
    pub(super) pass: Option<Box<super::tokens::Pass>>,
}

/// How far a session of a server has got.
#[derive(Debug)]
pub(super) enum Stage {
    /// The client has not been heard: its ACCEPT may have got lost.
    HalfOpen(Box<HalfOpen>),
    /// It is up, or closing.
    Confirmed,
    /// It is over; what has arrived can be read for a moment.
    Over { until: Time },
}

/// What is kept of a handshake until the client is heard.
#[derive(Debug)]
pub(super) struct HalfOpen {
    /// To be sent again, byte by byte the same.
    pub(super) accept: Box<[u8]>,
    /// Of the message that it answers.
    pub(super) msg1_hash: u128,
    pub(super) until: Time,
    /// When it may be sent again.
    pub(super) again_from: Time,
    /// Whether the application has let it in, and wants to know.
    pub(super) is_told: bool,
}

/// Least time between two ACCEPTs of one attempt.
pub(super) const ACCEPT_EACH: Duration = Duration::from_millis(50);

impl<M> Peer<M> {
    pub(super) const fn is_half_open(&self) -> bool {
        matches!(self.stage, Stage::HalfOpen(_))
    }
}
