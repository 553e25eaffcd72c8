//! A game server in Agones: it talks to the sidecar of its pod through the crate `agones`, and players bring connect tokens.
//!
//! ```text
//!   SERVER_KEY_FILE=server.key agones-server          serves, until SIGTERM or until its match is over
//!   FLEET_KEY_FILE=fleet.key SERVER_KEY_FILE=server.key agones-server key
//! ```
//!
//! The second one is for an init container: it asks the sidecar which server this is, and writes the key of this server. The server itself
//! never sees the key of the fleet. Files of keys have 64 hex digits. Also in the environment:
//!
//! | | default | |
//! |---|---|---|
//! | `BIND` | 0.0.0.0:4000 | the address and the port of the container, which players reach through a port of the node |
//! | `DRAIN_SECONDS` | 20 | how long players may stay after SIGTERM: less than `terminationGracePeriodSeconds` |
//! | `MATCHMAKER` | | where to ask for tokens for other servers: an address that answers `POST /move` with one, in this example's own words |
//! | `AGONES_SDK_GRPC_PORT` | 9357 | the port of the sidecar; Agones sets it |

mod drain;
mod game_server;
#[expect(dead_code, reason = "a server only posts")]
mod http;
mod keys;
mod protocol;
mod server;
mod sidecar;

use server::Config;
use sidecar::Sidecar;
use std::env;
use std::error::Error;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

type Done = Result<(), Box<dyn Error>>;

fn main() -> ExitCode {
    let words: Vec<_> = env::args().skip(1).collect();
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    let result = match words[..] {
        [] => serve(),
        ["key"] => write_key(),
        _ => Err("no argument, or `key`".into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn serve() -> Done {
    let config = Config {
        at: setting("BIND")?.unwrap_or(([0, 0, 0, 0], 4000).into()),
        key: keys::read("SERVER_KEY_FILE")?,
        drain: Duration::from_secs(setting("DRAIN_SECONDS")?.unwrap_or(20)),
        matchmaker: setting("MATCHMAKER")?,
    };
    server::run(&config, Sidecar::start()?)
}

fn write_key() -> Done {
    let fleet_key = keys::read("FLEET_KEY_FILE")?;
    let sidecar = Sidecar::start()?;
    match sidecar.game_server() {
        Some(game_server) => keys::write_for(game_server.server_id, fleet_key),
        None => Err("stopped before the sidecar had started".into()),
    }
}

/// A variable of the environment, if it is there.
fn setting<T: FromStr<Err: Error + 'static>>(name: &str) -> Result<Option<T>, Box<dyn Error>> {
    Ok(env::var(name).ok().map(|text| text.parse()).transpose()?)
}
