//! Datagrams on a stream between two processes, which may be of different versions: a length, where it came from, and its bytes.

use crate::machine::{Arrival, Ecn, Underlay};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};

/// What both ends say first: a name and the version of this format.
pub(super) const HELLO: [u8; 4] = *b"WWT\x01";
/// Length, ECN mark, family, port, IPv6 address or IPv4 address and zeros, flow label, scope.
pub(super) const HEAD_LEN: usize = 2 + 1 + 1 + 2 + 16 + 4 + 4;

/// Appends a datagram. `false`: it is too long for any.
pub(super) fn encode(from: Arrival, datagram: &[u8], out: &mut Vec<u8>) -> bool {
    let Ok(len) = u16::try_from(datagram.len()) else { return false };
    let (family, ip, flow, scope) = match from.address {
        SocketAddr::V4(address) => (4, address.ip().to_ipv6_compatible(), 0, 0),
        SocketAddr::V6(address) => (6, *address.ip(), address.flowinfo(), address.scope_id()),
    };
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(&[from.ecn.map_or(0, Ecn::bits), family]);
    out.extend_from_slice(&from.address.port().to_le_bytes());
    out.extend_from_slice(&ip.octets());
    out.extend_from_slice(&flow.to_le_bytes());
    out.extend_from_slice(&scope.to_le_bytes());
    out.extend_from_slice(datagram);
    true
}

/// Where a datagram came from, and its length. `None`: that is no head.
pub(super) fn decode(head: &[u8; HEAD_LEN]) -> Option<(Arrival, usize)> {
    let (len, rest) = head.split_first_chunk()?;
    let (&[ecn, family], rest) = rest.split_first_chunk()?;
    let (port, rest) = rest.split_first_chunk()?;
    let (ip, rest) = rest.split_first_chunk::<16>()?;
    let (flow, scope) = rest.split_first_chunk()?;
    let (ip, port, scope) = (Ipv6Addr::from(*ip), u16::from_le_bytes(*port), scope.first_chunk()?);
    let address = match family {
        4 => SocketAddr::new(IpAddr::V4(ip.to_ipv4()?), port),
        6 => SocketAddrV6::new(ip, port, u32::from_le_bytes(*flow), u32::from_le_bytes(*scope)).into(),
        _ => return None,
    };
    let arrival = Arrival { address, ecn: Ecn::from_bits(ecn), underlay: Underlay::default(), network: 0 };
    Some((arrival, u16::from_le_bytes(*len).into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_keeps_its_address_and_its_mark_and_no_other_family_is_read() {
        for address in ["10.1.2.3:4", "0.0.0.1:4", "[fe80::1%7]:65535", "[::ffff:1.2.3.4]:1", "[::1]:0"] {
            for ecn in [None, Some(Ecn::Capable), Some(Ecn::Scalable), Some(Ecn::Congested)] {
                let from = Arrival { ecn, ..Arrival::from(address.parse::<SocketAddr>().unwrap()) };
                let mut out = Vec::new();
                assert!(encode(from, &[7; 1200], &mut out));
                let (head, rest) = out.split_first_chunk().unwrap();
                assert_eq!((decode(head), rest), (Some((from, 1200)), &[7; 1200][..]));
            }
        }
        let mut out = Vec::new();
        assert!(
            !encode(Arrival::from(SocketAddr::from(([0; 4], 0))), &[0; 1 << 16], &mut out) && out.is_empty()
        );
        (0..=u8::MAX).for_each(|family| {
            let mut head = [0xff; HEAD_LEN];
            head[3] = family;
            assert_eq!(decode(&head).is_some(), family == 6, "a v4 address ends in zeros");
        });
    }
}
