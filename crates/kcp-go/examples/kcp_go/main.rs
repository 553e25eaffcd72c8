//! Talks to kcp-go and kcptun. The server echoes, the client checks that what comes back is intact, and the
//! pipe connects standard input and output. The server allows 1024 sessions, from one host or many
//! (`limits.rs`). The default of `kcp::PeersConfig::default()`, 16 per host, is for players.
//!
//! ```text
//! cargo run --release -p whitewater-kcp-go --example kcp_go -- server 127.0.0.1:4000 --crypt salsa20 --key secret --fec 10,3
//! cargo run --release -p whitewater-kcp-go --example kcp_go -- client 127.0.0.1:4000 --crypt salsa20 --key secret --fec 10,3
//! ```
//!
//! A plain echo is also a peer of kcptun's multiplexer, so with the same server this gives an echo over TCP
//! on port 5000:
//!
//! ```text
//! kcptun-client --localaddr :5000 --remoteaddr 127.0.0.1:4000 --crypt salsa20 --key secret --datashard 10 --parityshard 3 --nocomp
//! ```

#![expect(clippy::indexing_slicing, reason = "`len` is what was written")]

mod args;
mod client;
mod limits;
mod pipe;
mod server;

use args::{Args, Command};
use std::process::ExitCode;

fn main() -> ExitCode {
    if std::env::args().skip(1).any(|word| word == "--help" || word == "-h") {
        println!("{}", args::USAGE);
        return ExitCode::SUCCESS;
    }
    let args = match Args::parse(std::env::args().skip(1)) {
        Ok(args) => args,
        Err(message) => {
            eprintln!("{message}\n\n{}", args::USAGE);
            return ExitCode::from(2);
        }
    };
    let result = match args.command {
        Command::Server => server::run(&args),
        Command::Client => client::run(&args),
        Command::Pipe => pipe::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
