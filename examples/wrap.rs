//! KCP around a UDP socket by hand: the control block has no socket and no clock, so this is all it takes.
//! `whitewater::net` does the same, with errors and timeouts handled.

#![expect(clippy::indexing_slicing, reason = "`len` is what was written")]

use std::io;
use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant};
use whitewater::Time;
use whitewater::kcp::{Config, Conv, Kcp};
use whitewater::machine::Output;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (alice, bob) = (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
    alice.connect(bob.local_addr()?)?;
    bob.connect(alice.local_addr()?)?;

    // The output callback. A datagram that cannot be sent is lost, and KCP resends it.
    let mut a = Kcp::new(Conv(7), &Config::default(), |datagram: &[u8]| drop(alice.send(datagram)))?;
    let mut b = Kcp::new(Conv(7), &Config::default(), |datagram: &[u8]| drop(bob.send(datagram)))?;
    alice.set_nonblocking(true)?;
    bob.set_nonblocking(true)?;

    let (start, mut buf) = (Instant::now(), [0; 1500]);
    for round in 1..=5 {
        let sent = Instant::now();
        a.send(format!("ping {round}").as_bytes())?;
        let echo = loop {
            let now = Time::ZERO + start.elapsed();
            drive(&mut a, &alice, now)?;
            drive(&mut b, &bob, now)?;
            if let Ok(len) = b.recv_into(&mut buf) {
                b.send(&buf[..len])?;
            }
            if let Ok(len) = a.recv_into(&mut buf) {
                break String::from_utf8_lossy(&buf[..len]).into_owned();
            }
            thread::sleep(Duration::from_millis(1)); // or until `check` says
        };
        println!("{echo}: {:?}", sent.elapsed());
    }
    Ok(())
}

/// The whole wrapper: what has arrived goes in, what is due goes out.
fn drive(kcp: &mut Kcp<impl Output>, socket: &UdpSocket, now: Time) -> io::Result<()> {
    let mut datagram = [0; 1500];
    loop {
        match socket.recv(&mut datagram) {
            Ok(len) => drop(kcp.input(now, &datagram[..len])), // a bad datagram changes nothing
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
    }
    kcp.update(now);
    Ok(())
}
