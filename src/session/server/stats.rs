//! What a server counts.

use crate::counters::{reasons, stats};

stats! {
    /// What a server has accepted, ended and dropped, by kind, beside what each [connection](crate::session::Connection::stats) counts.
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    pub struct ServerStats: AddAssign {
        /// Sessions there are: asked for, not confirmed, up, and just over.
        pub sessions: usize => "whitewater_server_sessions",
        /// Datagrams received.
        pub datagrams: u64 => "whitewater_server_datagrams_received_total",
        /// Bytes of datagrams received.
        pub bytes_received: u64 => "whitewater_server_bytes_received_total",
        /// Datagrams sent: of sessions, and to strangers.
        pub datagrams_sent: u64 => "whitewater_server_datagrams_sent_total",
        /// Bytes of datagrams sent.
        pub bytes_sent: u64 => "whitewater_server_bytes_sent_total",
        /// Datagrams that their session dropped: not authentic, not new, from elsewhere, or too late.
        pub dropped: u64 => "whitewater_server_dropped_total",
        /// Cookies given out.
        pub challenges: u64 => "whitewater_server_challenges_total",
        /// Clients that the application was asked about.
        pub requested: u64 => "whitewater_server_requested_total",
        /// Sessions begun, confirmed or not.
        pub accepted: u64 => "whitewater_server_accepted_total",
        /// ACCEPTs sent again, those that say no among them.
        pub accepts_repeated: u64 => "whitewater_server_accepts_repeated_total",
        /// Sessions whose client has been heard.
        pub confirmed: u64 => "whitewater_server_confirmed_total",
        /// Sessions never confirmed, that made room or whose time was out.
        pub unconfirmed: u64 => "whitewater_server_unconfirmed_total",
        /// RESETs sent.
        pub resets: u64 => "whitewater_server_resets_total",
        /// DENYs sent.
        pub denials: u64 => "whitewater_server_denials_total",
        /// Bytes that all sessions hold now.
        pub memory: u64 => "whitewater_server_memory_bytes",
        /// What was dropped without a session, by what was wrong.
        pub rejected: RejectedRequests => "whitewater_server_rejected_total",
    }
}

reasons! {
    /// What a server has dropped without a session, by what was wrong.
    pub struct RejectedRequests: u64 {
        /// No packet of the protocol, or one that servers do not get.
        malformed,
        /// Another version of the protocol.
        version,
        /// A suite that the server does not have.
        suite,
        /// Another application.
        protocol,
        /// Cookies asked for too often.
        challenge_rate,
        /// A cookie that is too old, or not ours, or another's.
        cookie,
        /// A CONNECT of an attempt that is known: confirmed, over, changed, or answered a moment ago.
        repeated,
        /// One address asks for too many sessions a second.
        accept_rate,
        /// One address has too many sessions.
        per_address,
        /// There is no room for another session.
        full,
        /// A connect token that is not good, or not any more.
        token,
        /// A connect token older than the one by which its client is in.
        outdated,
        /// The first message of a handshake is not authentic.
        handshake,
        /// The application said no.
        declined,
        /// The application said nothing for 10 s, or until others needed the room.
        unanswered,
        /// DATA of no session that there is.
        unknown,
        /// Answers that found no room: drain `poll_transmit` after each call.
        replies,
    }
}
