//! Pairs by coturn: guests have an allocation with a channel to their host, which sends and gets datagrams as they are. Without passwords, which cost
//! coturn nothing for a datagram on a channel.
//!
//! Source: RFC 8656 (TURN) and RFC 8489 (STUN).

use super::{Failure, Process, Relaying, asked, free_address, next, socket, sockets};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

pub(crate) struct Turn {
    process: Process,
    turn: SocketAddr,
    pairs: Vec<Pair>,
    buf: Vec<u8>,
}

struct Pair {
    guest: UdpSocket,
    host: UdpSocket,
    /// Where the host reaches its guest.
    relayed: SocketAddr,
}

impl Turn {
    pub(crate) fn start() -> Result<Self, Failure> {
        let turn = free_address()?;
        let port = turn.port().to_string();
        let process = Command::new("turnserver")
            .args([
                "-n",
                "--no-auth",
                "--no-tls",
                "--no-dtls",
                "--no-cli",
                "--allow-loopback-peers",
                "-m",
                "1",
            ])
            .args(["--listening-ip", "127.0.0.1", "--relay-ip", "127.0.0.1", "--listening-port", &port])
            .args(["--log-file", "/dev/null", "--pidfile", "/dev/null"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let process = Process(process.map_err(|error| format!("Debian's package coturn: {error}"))?);
        thread::sleep(Duration::from_millis(500));
        let mut pairs = Vec::new();
        for guest in sockets()? {
            let host = socket()?;
            // REQUESTED-TRANSPORT: UDP.
            let answer = asked(&guest, turn, &message(0x0003, &[attribute(0x0019, &[17, 0, 0, 0])]))?;
            let relayed = relayed(&answer).ok_or("coturn allocates nothing")?;
            let channel = attribute(0x000c, &[0x40, 0, 0, 0]);
            let peer = attribute(0x0012, &masked(host.local_addr()?)?);
            let answer = asked(&guest, turn, &message(0x0009, &[channel, peer]))?;
            if !answer.starts_with(&[0x01, 0x09]) {
                return Err(format!("coturn binds no channel: {answer:?}").into());
            }
            pairs.push(Pair { guest, host, relayed });
        }
        Ok(Self { process, turn, pairs, buf: vec![0; 2000] })
    }
}

impl Relaying for Turn {
    fn pid(&self) -> Option<u32> {
        Some(self.process.0.id())
    }

    fn pairs(&self) -> usize {
        self.pairs.len()
    }

    fn up(&mut self, pair: usize, payload: &[u8]) -> Result<(), Failure> {
        let pair = self.pairs.get(pair).ok_or("no such pair")?;
        self.buf.clear();
        self.buf.extend_from_slice(&[0x40, 0]);
        self.buf.extend_from_slice(&u16::try_from(payload.len())?.to_be_bytes());
        self.buf.extend_from_slice(payload);
        pair.guest.send_to(&self.buf, self.turn)?;
        self.buf.resize(2000, 0);
        Ok(())
    }

    fn answer(&mut self, pair: usize) -> Result<usize, Failure> {
        let (pair, mut count) = (self.pairs.get(pair).ok_or("no such pair")?, 0);
        while let Some((len, _)) = next(&pair.host, &mut self.buf)? {
            pair.host.send_to(self.buf.get(..len).unwrap_or_default(), pair.relayed)?;
            count += 1;
        }
        Ok(count)
    }

    fn down(&mut self, pair: usize, payload: &mut Vec<u8>) -> Result<bool, Failure> {
        let pair = self.pairs.get(pair).ok_or("no such pair")?;
        let Some((len, _)) = next(&pair.guest, &mut self.buf)? else { return Ok(false) };
        payload.clear();
        payload.extend_from_slice(self.buf.get(4..len).unwrap_or_default());
        Ok(true)
    }
}

const MAGIC: [u8; 4] = [0x21, 0x12, 0xa4, 0x42];

/// A request of STUN.
fn message(kind: u16, attributes: &[Vec<u8>]) -> Vec<u8> {
    let attributes = attributes.concat();
    let len = u16::try_from(attributes.len()).unwrap_or_default();
    [&kind.to_be_bytes()[..], &len.to_be_bytes(), &MAGIC, &[7; 12], &attributes].concat()
}

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let len = u16::try_from(value.len()).unwrap_or_default();
    [&kind.to_be_bytes()[..], &len.to_be_bytes(), value].concat()
}

/// XOR-PEER-ADDRESS.
fn masked(address: SocketAddr) -> Result<[u8; 8], Failure> {
    let IpAddr::V4(ip) = address.ip() else { return Err("of IPv4 only".into()) };
    let ([a, b, c, d], [w, x, y, z], [p, q]) = (ip.octets(), MAGIC, address.port().to_be_bytes());
    Ok([0, 1, p ^ w, q ^ x, a ^ w, b ^ x, c ^ y, d ^ z])
}

/// XOR-RELAYED-ADDRESS in an answer to an Allocate.
fn relayed(answer: &[u8]) -> Option<SocketAddr> {
    let mut rest = answer.strip_prefix(&[0x01, 0x03])?.get(18..)?;
    while let Some(([k, kk, l, ll], after)) = rest.split_first_chunk() {
        let (value, next) =
            after.split_at_checked(usize::from(u16::from_be_bytes([*l, *ll])).next_multiple_of(4))?;
        if [*k, *kk] == [0x00, 0x16] {
            let [_, _, p, q, a, b, c, d] = *value.first_chunk()?;
            let [w, x, y, z] = MAGIC;
            let ip = Ipv4Addr::new(a ^ w, b ^ x, c ^ y, d ^ z);
            return Some((ip, u16::from_be_bytes([p ^ w, q ^ x])).into());
        }
        rest = next;
    }
    None
}
