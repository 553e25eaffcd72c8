//! What is counted. Times are in seconds.

use pyo3::prelude::*;
use whitewater::session::{self, Connection};

/// Declares a class with these numbers.
macro_rules! numbers {
    ($(#[$doc:meta])* $class:ident { $($field:ident: $type:ty),* $(,)? }) => {
        $(#[$doc])*
        #[pyclass(frozen, get_all, module = "whitewater")]
        pub(crate) struct $class { $(pub(crate) $field: $type,)* }

        #[pymethods]
        impl $class {
            fn __repr__(&self) -> String {
                let fields = [$(format!(concat!(stringify!($field), "={:?}"), self.$field)),*];
                format!(concat!(stringify!($class), "({})"), fields.join(", "))
            }
        }
    };
}

numbers! {
    /// One end of a session.
    Stats {
        rtt: f64,
        rttvar: f64,
        rtt_min: f64,
        loss: Option<f64>,
        packets_judged: u64,
        packets_lost: u64,
        sent: u64,
        bytes_sent: u64,
        received: u64,
        bytes_received: u64,
        rejected: u64,
        resent: u64,
        repairs_sent: u64,
        rebuilt: u64,
        moves: u64,
        memory: usize,
        mtu: u16,
    }
}

numbers! {
    /// A server.
    ServerStats {
        sessions: usize,
        datagrams: u64,
        bytes_received: u64,
        datagrams_sent: u64,
        bytes_sent: u64,
        dropped: u64,
        accepted: u64,
        confirmed: u64,
        unconfirmed: u64,
        denials: u64,
        memory: u64,
    }
}

numbers! {
    /// A control block of KCP.
    KcpStats {
        srtt: f64,
        rttvar: f64,
        rto: f64,
        in_flight: u64,
        snd_queue: u64,
        rcv_queue: u64,
        segments_sent: u64,
        segments_received: u64,
        resends: u64,
        duplicates: u64,
    }
}

impl Stats {
    pub(crate) fn of(connection: &Connection) -> Self {
        let stats = connection.stats();
        Self {
            rtt: stats.rtt.as_secs_f64(),
            rttvar: stats.rttvar.as_secs_f64(),
            rtt_min: stats.rtt_min.as_secs_f64(),
            loss: stats.loss,
            packets_judged: stats.packets_judged,
            packets_lost: stats.packets_lost,
            sent: stats.sent,
            bytes_sent: stats.bytes_sent,
            received: stats.received,
            bytes_received: stats.bytes_received,
            rejected: stats.refused().map(|(_, count)| count).sum(),
            resent: stats.kcp.resends_timeout + stats.kcp.resends_fast,
            repairs_sent: stats.kcp.repairs_sent + stats.repairs.sent,
            rebuilt: stats.kcp.rebuilt + stats.repairs.rebuilt,
            moves: stats.moves,
            memory: stats.memory,
            mtu: stats.mtu,
        }
    }
}

impl From<session::ServerStats> for ServerStats {
    fn from(stats: session::ServerStats) -> Self {
        let session::ServerStats { sessions, datagrams, bytes_received, datagrams_sent, bytes_sent, .. } =
            stats;
        let session::ServerStats { dropped, accepted, confirmed, unconfirmed, denials, memory, .. } = stats;
        Self {
            sessions,
            datagrams,
            bytes_received,
            datagrams_sent,
            bytes_sent,
            dropped,
            accepted,
            confirmed,
            unconfirmed,
            denials,
            memory,
        }
    }
}
