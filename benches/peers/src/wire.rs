//! What a reliable message of 64 bytes costs on the wire: the UDP payload plus 28 bytes of IPv4 and UDP
//! headers per datagram, in both directions, without loss. In virtual time, so the figures are exact.

mod bare;
mod sessions;

use std::fmt;

/// Size of a message, bytes.
const MESSAGE: usize = 64;
/// Half a round trip, ms.
const DELAY: u32 = 25;
/// Messages per run.
const COUNT: u64 = 200_000;
/// Size of the IPv4 and UDP headers, bytes.
const IP_AND_UDP: u64 = 28;

/// How often messages are sent.
#[derive(Clone, Copy)]
enum Load {
    /// As many as are accepted.
    Full,
    /// This many per ms.
    Paced(u64),
}

impl Load {
    const ALL: [(Self, &str); 3] =
        [(Self::Full, "as many as go"), (Self::Paced(4), "4 a ms"), (Self::Paced(1), "1 a ms")];

    /// Most messages to send in one ms.
    fn quota(self) -> u64 {
        match self {
            Self::Full => u64::MAX,
            Self::Paced(count) => count,
        }
    }
}

/// What was sent on the wire, in both directions.
#[derive(Clone, Copy, Default)]
struct Wire {
    bytes: u64,
    datagrams: u64,
}

impl Wire {
    fn add(&mut self, datagram: &[u8]) {
        self.bytes += datagram.len() as u64;
        self.datagrams += 1;
    }
}

impl fmt::Display for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each = |bytes: u64| bytes as f64 / COUNT as f64;
        write!(f, "{:.1} ({:.1})", each(self.bytes + IP_AND_UDP * self.datagrams), each(self.bytes))
    }
}

pub(crate) fn table() {
    println!(
        "bytes on the wire of a reliable message of {MESSAGE} bytes, both directions (UDP payload alone), round trip {} ms, windows of 1024",
        2 * DELAY
    );
    let loads: Vec<_> = Load::ALL.iter().map(|(_, name)| *name).collect();
    println!("| | {} |", loads.join(" | "));
    println!("|---|{}", "---:|".repeat(loads.len()));
    let row = |name: &str, run: &dyn Fn(Load) -> Wire| {
        let cells: Vec<_> = Load::ALL.iter().map(|(load, _)| run(*load).to_string()).collect();
        println!("| {name} | {} |", cells.join(" | "));
    };
    bare::rows(&row);
    sessions::rows(&row);
}
