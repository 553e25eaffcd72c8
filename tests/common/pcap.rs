//! Writes captures for other programs: UDP over IPv4 over Ethernet, in the classic pcap format.

use std::net::{SocketAddr, SocketAddrV4};
use std::path::Path;
use std::{fs, io};
use whitewater::Time;

/// A datagram that was sent: when, from where, to where, and its bytes.
pub(crate) type Captured = (Time, SocketAddr, SocketAddr, Vec<u8>);

/// Writes a capture of these datagrams, which must have IPv4 addresses. IP and UDP checksums are left out.
pub(crate) fn write(file: &Path, datagrams: &[Captured]) -> io::Result<()> {
    let mut bytes = Vec::new();
    for word in [0xa1b2_c3d4, 4 << 16 | 2, 0, 0, LONGEST, ETHERNET] {
        bytes.extend_from_slice(&u32::to_le_bytes(word));
    }
    for (at, from, to, datagram) in datagrams {
        let frame = frame(v4(from), v4(to), datagram);
        let (seconds, micros) = (at.as_micros() / 1_000_000, at.as_micros() % 1_000_000);
        let len = frame.len() as u64;
        for word in [seconds, micros, len, len] {
            bytes.extend_from_slice(&u32::try_from(word).unwrap().to_le_bytes());
        }
        bytes.extend_from_slice(&frame);
    }
    fs::write(file, bytes)
}

fn frame(from: SocketAddrV4, to: SocketAddrV4, datagram: &[u8]) -> Vec<u8> {
    let udp_len = u16::try_from(8 + datagram.len()).unwrap();
    let mut frame = [&[0; 12][..], &[0x08, 0x00]].concat();
    frame.extend_from_slice(&[0x45, 0]);
    frame.extend_from_slice(&(20 + udp_len).to_be_bytes());
    frame.extend_from_slice(&[0, 0, 0, 0, 64, 17, 0, 0]);
    frame.extend_from_slice(&from.ip().octets());
    frame.extend_from_slice(&to.ip().octets());
    for number in [from.port(), to.port(), udp_len, 0] {
        frame.extend_from_slice(&number.to_be_bytes());
    }
    frame.extend_from_slice(datagram);
    frame
}

fn v4(address: &SocketAddr) -> SocketAddrV4 {
    let SocketAddr::V4(address) = address else { panic!("{address} is not of IPv4") };
    *address
}

/// Longest frame that the file announces, bytes.
const LONGEST: u32 = 65_535 + 14;
/// LINKTYPE_ETHERNET.
const ETHERNET: u32 = 1;
