//! What goes through a socket, and what is lost there.

use whitewater_udp::Counts;

stats! {
    /// What went through the socket.
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    pub struct SocketTraffic: AddAssign {
        /// Datagrams received.
        pub received: u64 => "whitewater_socket_datagrams_received_total",
        /// Datagrams that the system took to send.
        pub sent: u64 => "whitewater_socket_datagrams_sent_total",
        /// Calls that receiving took: fewer than datagrams where the system gives several at once.
        pub receive_calls: u64 => "whitewater_socket_calls_total" [call: "receive", "System calls that it took"],
        /// Calls that sending took.
        pub send_calls: u64 => "whitewater_socket_calls_total" [call: "send", "System calls that it took"],
        /// Datagrams that came with the mark of a queue that was filling (ECN's CE).
        pub congestion_marks: u64 => "whitewater_socket_congestion_marks_total",
        /// Of one of several servers on a port: datagrams of another one's session, which were handed on.
        pub handed_on: u64 => "whitewater_socket_handed_on_total",
        /// Times that datagrams could not be sent as one and went one by one.
        pub not_joined: u64 => "whitewater_socket_not_joined_total",
    }
}

stats! {
    /// What the socket reported that is packet loss and not failure.
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    pub struct SocketStats: AddAssign {
        /// "Unreachable" by ICMP: no such port, host or network, or refused on the way.
        pub unreachable: u64 => "whitewater_socket_errors_total" [kind: "unreachable", LOSS],
        /// Times the send buffer was full; the datagram was kept and sent later.
        pub send_buffer_full: u64 => "whitewater_socket_errors_total" [kind: "send_buffer_full", LOSS],
        /// Datagrams lost because the system had no memory for them (ENOBUFS).
        pub no_buffers: u64 => "whitewater_socket_errors_total" [kind: "no_buffers", LOSS],
        /// Datagrams longer than the socket, the interface or the path takes.
        pub too_long: u64 => "whitewater_socket_errors_total" [kind: "too_long", LOSS],
        /// Of one of several servers on a port: datagrams of another one's session that were lost here, because too many waited there.
        pub not_handed_on: u64 => "whitewater_socket_errors_total" [kind: "not_handed_on", LOSS],
        /// Datagrams lost to any other error on sending.
        pub send_failed: u64 => "whitewater_socket_errors_total" [kind: "send_failed", LOSS],
        /// Of a [`kcp::Socket`](crate::kcp::Socket): datagrams from an address that is not the peer's, dropped.
        pub strangers: u64 => "whitewater_socket_errors_total" [kind: "stranger", LOSS],
        /// Of a [`kcp::Socket`](crate::kcp::Socket): datagrams that the control block rejected; `Stats::rejected` says why. The other drivers
        /// count what they drop in statistics of their own.
        pub rejected: u64 => "whitewater_socket_errors_total" [kind: "rejected", LOSS],
    }
}

impl From<Counts> for SocketTraffic {
    fn from(counts: Counts) -> Self {
        let Counts { received, sent, receive_calls, send_calls, congestion_marks, not_joined, .. } = counts;
        Self { received, sent, receive_calls, send_calls, congestion_marks, not_joined, ..Self::default() }
    }
}

impl From<Counts> for SocketStats {
    fn from(counts: Counts) -> Self {
        let Counts { unreachable, send_buffer_full, no_buffers, too_long, send_failed, .. } = counts;
        Self { unreachable, send_buffer_full, no_buffers, too_long, send_failed, ..Self::default() }
    }
}

/// What [`SocketStats`] are together.
const LOSS: &str = "What the system reported that counts as loss";
