//! A socket.

use super::{Measure, Measures, To};
use crate::net::{SocketStats, SocketTraffic};

impl Measures for SocketTraffic {
    fn measures(&self, each: &mut dyn FnMut(Measure)) {
        let mut to = To(each);
        to.counter("whitewater_socket_datagrams_received_total", "all that came", self.received);
        to.counter("whitewater_socket_datagrams_sent_total", "all that the system took", self.sent);
        let calls = [("receive", self.receive_calls), ("send", self.send_calls)];
        to.counters("whitewater_socket_calls_total", "system calls that it took", "call", calls);
        to.counter(
            "whitewater_socket_congestion_marks_total",
            "ECN's CE on what came",
            self.congestion_marks,
        );
        to.counter("whitewater_socket_handed_on_total", "datagrams for another shard", self.handed_on);
        to.counter("whitewater_socket_not_joined_total", "times that GSO failed", self.not_joined);
    }
}

impl Measures for SocketStats {
    fn measures(&self, each: &mut dyn FnMut(Measure)) {
        let errors = [
            ("unreachable", self.unreachable),
            ("send_buffer_full", self.send_buffer_full),
            ("no_buffers", self.no_buffers),
            ("too_long", self.too_long),
            ("not_handed_on", self.not_handed_on),
            ("send_failed", self.send_failed),
            ("stranger", self.strangers),
            ("rejected", self.rejected),
        ];
        To(each).counters("whitewater_socket_errors_total", "what counts as loss", "kind", errors);
    }
}
