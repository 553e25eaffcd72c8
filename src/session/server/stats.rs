//! What a server counts.

use std::ops::AddAssign;

/// What a server has accepted, ended and dropped, by kind, beside what each [connection](crate::session::Connection::stats) counts.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct ServerStats {
    /// Sessions there are: asked for, not confirmed, up, and just over.
    pub sessions: usize,
    /// Datagrams received.
    pub datagrams: u64,
    /// Bytes of them.
    pub bytes_received: u64,
    /// Datagrams sent: of sessions, and to strangers.
    pub datagrams_sent: u64,
    /// Bytes of them.
    pub bytes_sent: u64,
    /// Datagrams that their session dropped: not authentic, not new, from elsewhere, or too late.
    pub dropped: u64,
    /// Cookies given out.
    pub challenges: u64,
    /// Clients that the application was asked about.
    pub requested: u64,
    /// Sessions begun, confirmed or not.
    pub accepted: u64,
    /// ACCEPTs sent again, those that say no among them.
    pub accepts_repeated: u64,
    /// Sessions whose client has been heard.
    pub confirmed: u64,
    /// Sessions never confirmed, that made room or whose time was out.
    pub unconfirmed: u64,
    /// RESETs sent.
    pub resets: u64,
    /// DENYs sent.
    pub denials: u64,
    /// Bytes that all sessions hold now.
    pub memory: u64,
    /// What was dropped.
    pub rejected: RejectedRequests,
}

/// What a server has dropped without a session, by what was wrong.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct RejectedRequests {
    /// No packet of the protocol, or one that servers do not get.
    pub malformed: u64,
    /// Another version of the protocol.
    pub version: u64,
    /// A suite that the server does not have.
    pub suite: u64,
    /// Another application.
    pub protocol: u64,
    /// Cookies asked for too often.
    pub challenge_rate: u64,
    /// A cookie that is too old, or not ours, or another's.
    pub cookie: u64,
    /// A CONNECT of an attempt that is known: confirmed, over, changed, or answered a moment ago.
    pub repeated: u64,
    /// One address asks for too many sessions a second.
    pub accept_rate: u64,
    /// One address has too many sessions.
    pub per_address: u64,
    /// There is no room for another session.
    pub full: u64,
    /// A connect token that is not good, or not any more.
    pub token: u64,
    /// A connect token older than the one by which its client is in.
    pub outdated: u64,
    /// The first message of a handshake is not authentic.
    pub handshake: u64,
    /// The application said no.
    pub declined: u64,
    /// The application said nothing for 10 s, or until others needed the room.
    pub unanswered: u64,
    /// DATA of no session that there is.
    pub unknown: u64,
    /// Answers that found no room: drain `poll_transmit` after each call.
    pub replies: u64,
}

impl AddAssign for ServerStats {
    /// Both together.
    fn add_assign(&mut self, other: Self) {
        let Self {
            sessions,
            datagrams,
            bytes_received,
            datagrams_sent,
            bytes_sent,
            dropped,
            challenges,
            requested,
            accepted,
            accepts_repeated,
            confirmed,
            unconfirmed,
            resets,
            denials,
            memory,
            rejected,
        } = other; // a new field fails to compile until it is handled
        self.sessions += sessions;
        self.datagrams += datagrams;
        self.bytes_received += bytes_received;
        self.datagrams_sent += datagrams_sent;
        self.bytes_sent += bytes_sent;
        self.dropped += dropped;
        self.challenges += challenges;
        self.requested += requested;
        self.accepted += accepted;
        self.accepts_repeated += accepts_repeated;
        self.confirmed += confirmed;
        self.unconfirmed += unconfirmed;
        self.resets += resets;
        self.denials += denials;
        self.memory += memory;
        self.rejected += rejected;
    }
}

impl AddAssign for RejectedRequests {
    /// Both together.
    fn add_assign(&mut self, other: Self) {
        let Self {
            malformed,
            version,
            suite,
            protocol,
            challenge_rate,
            cookie,
            repeated,
            accept_rate,
            per_address,
            full,
            token,
            outdated,
            handshake,
            declined,
            unanswered,
            unknown,
            replies,
        } = other; // a new field fails to compile until it is handled
        self.malformed += malformed;
        self.version += version;
        self.suite += suite;
        self.protocol += protocol;
        self.challenge_rate += challenge_rate;
        self.cookie += cookie;
        self.repeated += repeated;
        self.accept_rate += accept_rate;
        self.per_address += per_address;
        self.full += full;
        self.token += token;
        self.outdated += outdated;
        self.handshake += handshake;
        self.declined += declined;
        self.unanswered += unanswered;
        self.unknown += unknown;
        self.replies += replies;
    }
}
