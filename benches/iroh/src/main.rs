//! How soon two endpoints of iroh have a connection and a direct path, with a relay of their own: no name server, no
//! other relay, no mapped port. The endpoints have iroh's defaults otherwise.
//!
//! ```text
//! iroh-peer relay ADDRESS:PORT               passes on streams over TCP, tells addresses over UDP; prints its URL
//! iroh-peer host RELAY_URL                   prints who and where it is, then echoes, until it is killed
//! iroh-peer guest RELAY_URL HOST_LINE        connects to that host once, and prints a line of JSON
//! ```
//!
//! The line of the host has its key, the relay and its addresses. A guest that gets the key and the relay alone knows
//! as much as iroh publishes by default. With the addresses it tries these and the relay at once.
//!
//! The guest is at the relay, and knows its own address, before its clock starts. It then counts ms until
//!
//! - `connected`: the handshake is done, by whichever path;
//! - `echoed`: the first message is back;
//! - `direct`: it sends on a direct path, by [`Connection::paths_stream`];
//! - `both_direct`: the message has arrived with which the host says that it does, too. That is the time at the host
//!   and the way to the guest.
//!
//! What has not happened after 10 s is `null`; `path` is where the guest sends in the end.

mod guest;
mod host;
mod peer;
mod relay;

use std::env;
use std::process::ExitCode;

/// Of iroh, its relay and this program alike: each ends the program, or one connection.
type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

#[tokio::main]
async fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let result = match args[..] {
        ["relay", address] => relay::run(address).await,
        ["host", relay] => host::run(relay).await,
        ["guest", relay, host] => guest::run(relay, host).await,
        _ => Err("iroh-peer relay ADDRESS:PORT | host RELAY_URL | guest RELAY_URL HOST_LINE".into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
