//! A fleet on this machine: the matchmaker with TLS, two servers, and a player who is moved from one to the other.
//!
//! ```text
//!   cargo run --release -p whitewater-matchmaker --example fleet demo
//! ```
//!
//! runs each of these as a process:
//!
//! ```text
//!   fleet matchmaker --listen 127.0.0.1:0 --tls cert.pem key.pem ..                as whitewater-matchmaker
//!   fleet server first 127.0.0.1:0 127.0.0.1:8443 cert.pem servers.token           registers, and echoes until it is empty after a drain
//!   fleet player ann                                                               plays with the token that it reads as a line
//! ```

mod agent;
mod demo;
mod game;
mod player;
mod server;

use std::env;
use std::error::Error;
use std::future::pending;
use std::process::ExitCode;
use whitewater_matchmaker::Matchmaker;
use whitewater_matchmaker::settings::Settings;

type Done = Result<(), Box<dyn Error>>;

fn main() -> ExitCode {
    let words: Vec<_> = env::args().skip(1).collect();
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(wrong) => {
            eprintln!("fleet {}: {wrong}", words.join(" "));
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[String]) -> Done {
    let all: Vec<_> = words.iter().map(String::as_str).collect();
    match all[..] {
        ["demo"] => demo::run(),
        ["matchmaker", ..] => matchmaker(words.get(1..).unwrap_or_default()),
        ["server", name, at, matchmaker, root, token] => server::run(&server::Config {
            name,
            at: at.parse()?,
            matchmaker: matchmaker.parse()?,
            root,
            token,
        }),
        ["player", name] => player::run(name),
        _ => {
            Err("it is demo, matchmaker SETTINGS, server NAME AT MATCHMAKER ROOT TOKEN-FILE, or player NAME"
                .into())
        }
    }
}

#[tokio::main]
async fn matchmaker(words: &[String]) -> Done {
    let matchmaker = Matchmaker::bind(Settings::from_words(words)?).await?;
    println!("listening on {}", matchmaker.local_addr()?);
    matchmaker.serve(pending()).await;
    Ok(())
}
