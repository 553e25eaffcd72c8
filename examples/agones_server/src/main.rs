//! A game server in Agones: it talks to the sidecar of its pod through the crate `agones`, and registers with the matchmaker of `crates/matchmaker`,
//! which sends players to it. It serves until SIGTERM, until the operators of the matchmaker want it to end, or until its match is over.
//!
//! Everything is in the environment. Secrets are in files, because others can see the environment of a pod:
//!
//! | | default | |
//! |---|---|---|
//! | `MATCHMAKER` | | host and port of the matchmaker |
//! | `MATCHMAKER_ROOT_FILE` | plain HTTP, only on this machine | PEM of the root that its certificate is from |
//! | `SERVERS_TOKEN_FILE` | | what the matchmaker wants to see: its `--servers-token` |
//! | `REGION` | default | where the server is, in the matchmaker's words |
//! | `BIND` | 0.0.0.0:4000 | the address and the port of the container, which players reach through a port of the node |
//! | `DRAIN_SECONDS` | 20 | how long players may stay after SIGTERM: less than `terminationGracePeriodSeconds` |
//! | `IDLE_SECONDS` | 60 | how long the server stays allocated when nobody comes, until it is ready again |
//! | `AGONES_SDK_GRPC_PORT` | 9357 | the port of the sidecar; Agones sets it |

mod drain;
mod game_server;
mod idle;
mod load;
mod matchmaker;
mod protocol;
mod server;
mod sidecar;

use std::error::Error;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;
use std::{env, fs};
use whitewater_matchmaker::Bearer;

type Done = Result<(), Box<dyn Error>>;

fn main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn serve() -> Done {
    let config = server::Config {
        at: setting("BIND")?.unwrap_or(([0, 0, 0, 0], 4000).into()),
        region: setting("REGION")?.unwrap_or("default".to_owned()),
        drain: Duration::from_secs(setting("DRAIN_SECONDS")?.unwrap_or(20)),
        idle: Duration::from_secs(setting("IDLE_SECONDS")?.unwrap_or(60)),
    };
    let token = file("SERVERS_TOKEN_FILE")?.ok_or("SERVERS_TOKEN_FILE has to be in the environment")?;
    let matchmaker = matchmaker::Config {
        at: setting("MATCHMAKER")?.ok_or("MATCHMAKER has to be in the environment")?,
        root: file("MATCHMAKER_ROOT_FILE")?.map(String::into_bytes),
        token: Bearer::new(token.trim())
            .ok_or("SERVERS_TOKEN_FILE has no secret of 16 or more characters")?,
    };
    server::run(&config, matchmaker)
}

/// A variable of the environment, if it is there.
fn setting<T: FromStr<Err: Error + 'static>>(name: &str) -> Result<Option<T>, Box<dyn Error>> {
    Ok(env::var(name).ok().map(|text| text.parse()).transpose()?)
}

/// The text of the file that a variable names, if it is there.
fn file(name: &str) -> Result<Option<String>, Box<dyn Error>> {
    let path: Option<String> = setting(name)?;
    Ok(path.map(|path| fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))).transpose()?)
}
