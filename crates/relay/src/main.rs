//! A relay.

use std::error::Error;
use std::net::UdpSocket;
use std::sync::atomic::AtomicBool;
use std::{env, fs};
use whitewater_relay::{Relay, RelayConfig, RelayKey, serve};

const USAGE: &str = "usage: whitewater-relay ADDRESS KEY_FILE [COUNTS_FILE]
  ADDRESS      where guests and hosts send, for example 0.0.0.0:4100
  KEY_FILE     32 random bytes, which the matchmaker has as well: head -c 32 /dev/urandom > relay.key
  COUNTS_FILE  is written each second in the text format of Prometheus, for the textfile collector of its node exporter";

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let (address, key, counts) = match &arguments[..] {
        [address, key] => (address, key, None),
        [address, key, counts] => (address, key, Some(counts)),
        _ => return Err(USAGE.into()),
    };
    let key: [u8; 32] = fs::read(key)?.try_into().map_err(|_| "the key file has to have 32 bytes")?;
    let mut secret = [0; 32];
    getrandom::fill(&mut secret)?;
    let relay = Relay::new(RelayKey::new(key), RelayConfig::default(), secret);
    let socket = UdpSocket::bind(address)?;
    println!("relays at {}", socket.local_addr()?);
    serve(socket, relay, &AtomicBool::new(false), |relay| {
        let Some(file) = counts else { return };
        let new = format!("{file}.new");
        let written = fs::write(&new, relay.counts().to_string()).and_then(|()| fs::rename(&new, file));
        if let Err(error) = written {
            eprintln!("cannot write {file}: {error}");
        }
    })?;
    Ok(())
}
