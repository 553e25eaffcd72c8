//! TCP over whitewater: a TCP connection to the entry goes through a session to the exit, and from there by TCP to a
//! service. Each TCP connection has a session of its own, with one stream, on one socket at the exit. Each direction
//! ends by itself.
//!
//! ```text
//! cargo run --release --features tokio,crypto --example tunnel -- exit 0.0.0.0:4000 127.0.0.1:22 KEY
//! cargo run --release --features tokio,crypto --example tunnel -- entry 127.0.0.1:2222 exit.example:4000 KEY
//! cargo run --release --features tokio --example tunnel -- demo [MIB]
//! ```
//!
//! The key is 64 hex digits that both ends know. Without the feature `crypto` there is no key, and nothing is
//! encrypted. Ctrl-c ends the program; the exit waits until everything sent has arrived.

mod demo;
mod entry;
mod exit;
mod rates;

use rates::Rates;
use std::env;
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::lookup_host;
use whitewater::kcp::Config;
use whitewater::session::Suite;
use whitewater::{Channel, ChannelConfig, SessionConfig};

/// The result of a task in this program.
type Done = Result<(), Box<dyn Error>>;

/// The key that both ends know, if there is encryption.
type Key = Option<[u8; 32]>;

/// The one channel.
const BYTES: Channel = Channel::stream(0);
/// The strongest suite that is built in.
const SUITE: Suite = if cfg!(feature = "crypto") { Suite::TOKEN } else { Suite::Checked };

#[tokio::main]
async fn main() -> Done {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let rates = Arc::new(Rates::default());
    let printer = tokio::spawn(rates::print(Arc::clone(&rates)));
    match args[..] {
        ["exit", listen, service, ref digits @ ..] => {
            exit::run(address(listen).await?, address(service).await?, key(digits)?, rates).await?;
        }
        ["entry", listen, exit, ref digits @ ..] => {
            entry::run(address(listen).await?, address(exit).await?, key(digits)?, rates).await?;
        }
        ["demo"] => demo::run(64, rates).await?,
        ["demo", mib] => demo::run(mib.parse()?, rates).await?,
        _ => {
            return Err("tunnel exit LISTEN SERVICE [KEY] | entry LISTEN EXIT [KEY] | demo [MIB]".into());
        }
    }
    printer.abort();
    Ok(())
}

async fn address(name: &str) -> io::Result<SocketAddr> {
    lookup_host(name).await?.next().ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
}

/// Parses a key of 64 hex digits. Without encryption there is none.
fn key(digits: &[&str]) -> Result<Key, Box<dyn Error>> {
    match *digits {
        [] if SUITE == Suite::Checked => Ok(None),
        [digits] if SUITE != Suite::Checked && digits.len() == 64 => {
            let mut key = [0; 32];
            for (at, byte) in key.iter_mut().enumerate() {
                *byte = u8::from_str_radix(digits.get(2 * at..2 * at + 2).unwrap_or_default(), 16)?;
            }
            Ok(Some(key))
        }
        _ if SUITE == Suite::Checked => Err("a key needs the feature crypto".into()),
        _ => Err("a key of 64 hex digits, the same at both ends".into()),
    }
}

/// Windows for 100 Mbit/s over 100 ms, and a send queue of the same size.
fn config() -> SessionConfig {
    let kcp = Config { snd_wnd: 1024, rcv_wnd: 1024, snd_queue: 1024, ..Config::default() };
    let channels = vec![ChannelConfig { kcp, ..BYTES.config() }];
    SessionConfig { channels, drain: Duration::from_secs(10), ..SessionConfig::default() }
}
