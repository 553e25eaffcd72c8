//! Pairs by our relay: guests as they are, and hosts by hand.

use super::{Failure, Process, Relaying, asked, free_address, next, socket, sockets};
use std::net::{SocketAddr, UdpSocket};
use std::process::Command;
use std::time::UNIX_EPOCH;
use std::{env, fs};
use whitewater_relay::{GuestTicket, HostGrant, RelayKey};

pub(crate) struct Relayed {
    process: Process,
    relay: SocketAddr,
    pairs: Vec<Pair>,
    buf: Vec<u8>,
}

struct Pair {
    guest: UdpSocket,
    ticket: GuestTicket,
    host: UdpSocket,
}

impl Relayed {
    pub(crate) fn start() -> Result<Self, Failure> {
        let program = env::current_exe()?.with_file_name("../whitewater-relay");
        let (relay, key_file) =
            (free_address()?, env::temp_dir().join(format!("relay-{}.key", std::process::id())));
        fs::write(&key_file, [5; 32])?;
        let process = Command::new(program).arg(relay.to_string()).arg(&key_file).spawn();
        let process = Process(process.map_err(|error| format!("build whitewater-relay first: {error}"))?);
        let expires = u32::try_from(UNIX_EPOCH.elapsed()?.as_secs() + 600)?;
        let key = RelayKey::new([5; 32]);
        let mut pairs = Vec::new();
        for (number, guest) in (0..).zip(sockets()?) {
            let host = socket()?;
            let grant = HostGrant { host: number, expires, guests: 4, bytes_per_second: 10_000_000 };
            let ticket = key.host(grant);
            let said = &ticket.ticket()[..];
            let cookie = asked(&host, relay, &[&[0xb0], said, &[0; 32]].concat())?;
            let cookie = *cookie.last_chunk::<16>().ok_or("no cookie")?;
            let answer = asked(&host, relay, &[&[0xb0], said, &cookie, &ticket.proof(&cookie)].concat())?;
            if answer.first() != Some(&0xb2) {
                return Err("the relay does not take the ticket".into());
            }
            pairs.push(Pair { guest, ticket: key.guest(number, 1, expires), host });
        }
        let _ = fs::remove_file(key_file);
        Ok(Self { process, relay, pairs, buf: vec![0; 2000] })
    }
}

impl Relaying for Relayed {
    fn pid(&self) -> Option<u32> {
        Some(self.process.0.id())
    }

    fn pairs(&self) -> usize {
        self.pairs.len()
    }

    fn up(&mut self, pair: usize, payload: &[u8]) -> Result<(), Failure> {
        let pair = self.pairs.get(pair).ok_or("no such pair")?;
        self.buf.clear();
        self.buf.extend_from_slice(payload);
        self.buf.extend_from_slice(&pair.ticket);
        pair.guest.send_to(&self.buf, self.relay)?;
        self.buf.resize(2000, 0);
        Ok(())
    }

    fn answer(&mut self, pair: usize) -> Result<usize, Failure> {
        let (pair, mut count) = (self.pairs.get(pair).ok_or("no such pair")?, 0);
        while let Some((len, _)) = next(&pair.host, &mut self.buf)? {
            // The first five bytes are those of an answer, the address is 18 more.
            self.buf.copy_within(23..len, 5);
            pair.host.send_to(self.buf.get(..len - 18).unwrap_or_default(), self.relay)?;
            count += 1;
        }
        Ok(count)
    }

    fn down(&mut self, pair: usize, payload: &mut Vec<u8>) -> Result<bool, Failure> {
        let pair = self.pairs.get(pair).ok_or("no such pair")?;
        let Some((len, _)) = next(&pair.guest, &mut self.buf)? else { return Ok(false) };
        payload.clear();
        payload.extend_from_slice(self.buf.get(..len).unwrap_or_default());
        Ok(true)
    }
}
