//! A relay on a socket.

use crate::relay::{Now, Relay};
use std::io;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, UNIX_EPOCH};
use whitewater_udp::{Mode, Port};

/// Passes on what arrives at `socket` until `stop` is set, which is looked at ten times a second. Calls `report` about once a second, and at the end.
///
/// # Errors
///
/// If the socket has failed.
pub fn serve(
    socket: UdpSocket,
    mut relay: Relay,
    stop: &AtomicBool,
    mut report: impl FnMut(&Relay),
) -> io::Result<()> {
    let mut port: Port = Port::new(socket, Mode::Whole, SLOTS)?;
    let (start, mut reported) = (Instant::now(), Duration::ZERO);
    let (mut unix, mut staged) = (unix_time(), Vec::new());
    while !stop.load(Ordering::Relaxed) {
        let since_start = start.elapsed();
        if since_start - reported >= Duration::from_secs(1) {
            (reported, unix) = (since_start, unix_time());
            report(&relay);
        }
        let now = Now { since_start, unix };
        if !port.is_full() && port.has_next(SLOTS)? {
            pass_on(&mut port, &mut relay, now, &mut staged);
        } else {
            port.wait(Some(Duration::from_millis(100)))?;
            port.flush();
        }
    }
    report(&relay);
    Ok(())
}

/// Handles what was read by one call, and sends what follows.
fn pass_on(port: &mut Port, relay: &mut Relay, now: Now, staged: &mut Vec<u8>) {
    while let Some(datagram) = port.pop() {
        let ecn = datagram.ecn;
        let Some(passed) = relay.handle(now, datagram.from, datagram.bytes) else { continue };
        let to = passed.to;
        staged.clear();
        passed.append(staged);
        port.stage().extend_from_slice(staged);
        port.commit(to, ecn);
        if port.is_due() {
            port.flush();
        }
    }
    port.flush();
}

/// With a clock that is before 1970, no ticket is good.
fn unix_time() -> u64 {
    UNIX_EPOCH.elapsed().map_or(u64::MAX, |since| since.as_secs())
}

/// Arrivals of one call.
const SLOTS: usize = 32;
