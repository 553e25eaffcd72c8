//! What goes through a socket, and what is lost there.

use whitewater_udp::Counts;

stats! {
    /// What went through the socket.
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    pub struct SocketTraffic: AddAssign {
        /// Datagrams received.
        pub received: u64 => "whitewater_socket_datagrams_received_total",
        /// Datagrams that the system accepted for sending.
        pub sent: u64 => "whitewater_socket_datagrams_sent_total",
        /// System calls for receiving: fewer than datagrams if the system returns several at once.
        pub receive_calls: u64 => "whitewater_socket_calls_total" [call: "receive", "System calls that it took"],
        /// System calls for sending.
        pub send_calls: u64 => "whitewater_socket_calls_total" [call: "send", "System calls that it took"],
        /// Datagrams that arrived with the mark of a queue that was filling (ECN's CE), if calls for many datagrams read them.
        pub congestion_marks: u64 => "whitewater_socket_congestion_marks_total",
        /// With several servers on one port: datagrams of another server's sessions that were handed on.
        pub handed_on: u64 => "whitewater_socket_handed_on_total",
        /// How often datagrams could not be sent as one and were sent one by one.
        pub not_joined: u64 => "whitewater_socket_not_joined_total",
    }
}

stats! {
    /// What the socket reported that counts as packet loss, not as failure.
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    pub struct SocketStats: AddAssign {
        /// "Unreachable" by ICMP: no such port, host or network, or refused on the way.
        pub unreachable: u64 => "whitewater_socket_errors_total" [kind: "unreachable", LOSS],
        /// How often the send buffer was full; the datagram was kept and sent later.
        pub send_buffer_full: u64 => "whitewater_socket_errors_total" [kind: "send_buffer_full", LOSS],
        /// Datagrams lost because the system had no memory for them (ENOBUFS).
        pub no_buffers: u64 => "whitewater_socket_errors_total" [kind: "no_buffers", LOSS],
        /// Datagrams longer than the socket, the interface or the path allows.
        pub too_long: u64 => "whitewater_socket_errors_total" [kind: "too_long", LOSS],
        /// With several servers on one port: datagrams of another server's sessions that were lost here, because too
        /// many waited there.
        pub not_handed_on: u64 => "whitewater_socket_errors_total" [kind: "not_handed_on", LOSS],
        /// Datagrams lost to any other send error.
        pub send_failed: u64 => "whitewater_socket_errors_total" [kind: "send_failed", LOSS],
        /// For a [`kcp::Socket`](crate::kcp::Socket): datagrams from addresses other than the peer's, dropped.
        pub strangers: u64 => "whitewater_socket_errors_total" [kind: "stranger", LOSS],
        /// For a [`kcp::Socket`](crate::kcp::Socket): datagrams that the control block rejected; `Stats::rejected`
        /// tells why. The other drivers count what they drop in statistics of their own.
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

/// What [`SocketStats`] counts in total.
const LOSS: &str = "What the system reported that counts as loss";
