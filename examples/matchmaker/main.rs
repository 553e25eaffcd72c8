//! A fleet: a matchmaker that makes connect tokens, servers that accept them, and a player who is moved from one server
//! to another.
//!
//! ```text
//!   cargo run --release --features crypto --example matchmaker demo
//! ```
//!
//! runs everything as processes on this machine. By hand, each of these is a process:
//!
//! ```text
//!   FLEET_KEY=<64 hex digits> matchmaker matchmaker 127.0.0.1:8080
//!   FLEET_KEY=<the same>      matchmaker key 1                        prints the key of server 1
//!   SERVER_KEY=<that>         matchmaker server 1 127.0.0.1:4001 127.0.0.1:8080
//!                             matchmaker player ann 127.0.0.1:8080
//!                             matchmaker drain 1 127.0.0.1:8080       server 1 sends its players away and ends
//! ```
//!
//! The fleet key makes the tokens of every server, so no server has it. A server's key only opens its own tokens.
//! Unencrypted HTTP is for this machine: whoever reads the answer with a token can use it to join. Between machines,
//! put TLS in front.

mod agent;
mod demo;
mod http;
mod keys;
mod matchmaker;
mod player;
mod server;

use std::env;
use std::error::Error;
use std::net::{SocketAddr, TcpListener};
use std::process::ExitCode;

type Done = Result<(), Box<dyn Error>>;

fn main() -> ExitCode {
    let words: Vec<_> = env::args().skip(1).collect();
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(wrong) => {
            eprintln!("matchmaker {}: {wrong}", words.join(" "));
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[&str]) -> Done {
    let say = |line: &str| println!("{line}");
    match *words {
        ["demo"] => demo::run(),
        ["matchmaker", at] => {
            let listener = TcpListener::bind(at)?;
            say(&format!("listening on {}", listener.local_addr()?));
            matchmaker::run(&listener, keys::fleet_key()?)
        }
        ["key", id] => {
            say(&keys::hex(keys::fleet_key()?.server_key(id.parse()?, keys::KEY_ID).secret()));
            Ok(())
        }
        ["server", id, at, matchmaker] => {
            let config = server::Config {
                id: id.parse()?,
                key: keys::from_environment("SERVER_KEY")?,
                at: at.parse()?,
                matchmaker: matchmaker.parse()?,
            };
            server::run(&config, &say)
        }
        ["player", name, matchmaker] => player::run(name, matchmaker.parse()?, &say),
        ["drain", id, matchmaker] => drain(id.parse()?, matchmaker.parse()?),
        _ => Err("it is demo, matchmaker AT, key ID, server ID AT MATCHMAKER, player NAME MATCHMAKER or drain ID MATCHMAKER".into()),
    }
}

fn drain(id: u64, matchmaker: SocketAddr) -> Done {
    http::post(matchmaker, "/drain", id.to_string().as_bytes())?;
    Ok(())
}

#[cfg(test)]
mod tests;
