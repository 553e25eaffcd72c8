//! What a proxy puts before the datagrams of its clients: the header of the PROXY protocol, version 2.
//!
//! Source: The PROXY protocol (HAProxy), version 2, section 2.2.

use super::Reader;
use std::net::{IpAddr, SocketAddr};

/// A header: whose datagram follows.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ProxyHeader {
    /// The client that sent it to the proxy. `None`: the proxy itself.
    pub client: Option<SocketAddr>,
    /// Bytes of the header, 16 to 65,551.
    pub len: usize,
}

impl ProxyHeader {
    /// Reads the header. `None`: it is cut off, of another version, or not of a client that sent by UDP and has a port.
    #[must_use]
    pub fn decode(datagram: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(datagram.strip_prefix(&SIGNATURE)?);
        let [command, family] = reader.array().ok()?;
        let len = usize::from(u16::from_be_bytes(reader.array().ok()?));
        let mut told = Reader::new(reader.bytes(len).ok()?);
        let client = match (command, family) {
            (LOCAL, _) => None,
            (PROXY, UDP_IPV4) => Some(client::<4>(&mut told)?),
            (PROXY, UDP_IPV6) => Some(client::<16>(&mut told)?),
            _ => return None,
        };
        Some(Self { client, len: SIGNATURE.len() + 4 + len })
    }
}

/// The addresses of a header: the client's and the proxy's, then their ports. What follows says more, and nothing that we need.
fn client<const LEN: usize>(told: &mut Reader<'_>) -> Option<SocketAddr>
where
    IpAddr: From<[u8; LEN]>,
{
    let [client, _proxy] = [told.array::<LEN>().ok()?, told.array::<LEN>().ok()?];
    let [port, _proxys] = [told.array().ok()?, told.array().ok()?].map(u16::from_be_bytes);
    (port != 0).then(|| SocketAddr::new(IpAddr::from(client).to_canonical(), port))
}

const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
/// Version and command.
const LOCAL: u8 = 0x20;
const PROXY: u8 = 0x21;
/// Family and protocol.
const UDP_IPV4: u8 = 0x12;
const UDP_IPV6: u8 = 0x22;

#[cfg(test)]
mod tests {
    use super::*;

    fn header(command: u8, family: u8, told: &[u8]) -> Vec<u8> {
        let len = u16::try_from(told.len()).unwrap().to_be_bytes();
        [&SIGNATURE[..], &[command, family], &len, told].concat()
    }

    #[test]
    fn a_header_names_the_client_and_says_where_the_datagram_begins() {
        let v4 = [192, 0, 2, 1, 198, 51, 100, 1, 0x0f, 0xa0, 0x0f, 0xa1];
        let mut v6 = [0; 36];
        (v6[0], v6[15], v6[33]) = (0x20, 1, 9);
        let mapped = [&[0; 10][..], &[0xff; 2], &[192, 0, 2, 1], &[0; 16], &[0x0f, 0xa0, 0, 1]].concat();
        let more = [&v4[..], &[4, 0, 2, 0, 0]].concat(); // with padding as a field
        for (family, told, client) in [
            (UDP_IPV4, &v4[..], "192.0.2.1:4000"),
            (UDP_IPV4, &more, "192.0.2.1:4000"),
            (UDP_IPV6, &v6, "[2000::1]:9"),
            (UDP_IPV6, &mapped, "192.0.2.1:4000"),
        ] {
            let header = header(PROXY, family, told);
            let client = Some(client.parse().unwrap());
            let found = Some(ProxyHeader { client, len: header.len() });
            assert_eq!(ProxyHeader::decode(&header), found);
            assert_eq!(ProxyHeader::decode(&[&header[..], b"datagram"].concat()), found);
            assert!((0..header.len()).all(|len| ProxyHeader::decode(&header[..len]).is_none()), "cut off");
        }
        let own = header(LOCAL, 0, &[]);
        assert_eq!(ProxyHeader::decode(&own), Some(ProxyHeader { client: None, len: 16 }));
    }

    #[test]
    fn what_is_no_header_of_a_client_by_udp_is_refused() {
        let v4 = [192, 0, 2, 1, 198, 51, 100, 1, 0x0f, 0xa0, 0x0f, 0xa1];
        let mut no_port = v4;
        (no_port[8], no_port[9]) = (0, 0);
        for (command, family, told) in [
            (0x11, UDP_IPV4, &v4[..]), // version 1
            (0x22, UDP_IPV4, &v4),     // a command to come
            (PROXY, 0x11, &v4),        // TCP
            (PROXY, 0, &v4),           // unspecified
            (PROXY, UDP_IPV6, &v4),
            (PROXY, UDP_IPV4, &v4[..11]),
            (PROXY, UDP_IPV4, &no_port),
        ] {
            assert_eq!(ProxyHeader::decode(&header(command, family, told)), None, "{command:#x} {family:#x}");
        }
    }
}
