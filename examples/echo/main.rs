//! KCP over real UDP sockets: an echo server, a client that measures it, a lossy network between them, and a pipe. See
//! `cargo run --release --example echo -- --help`.

mod args;
mod client;
mod demo;
mod pipe;
mod relay;
mod server;

use args::{Args, Mode};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::process::ExitCode;
use std::thread;
use whitewater::kcp::{self, Conv};

fn main() -> ExitCode {
    let args = match Args::parse(std::env::args().skip(1)) {
        Ok(args) => args,
        Err(wrong) => {
            eprintln!("echo: {wrong} (--help tells more)");
            return ExitCode::from(2);
        }
    };
    let done = match args.mode {
        Mode::Help => {
            println!("{}", args::help());
            Ok(())
        }
        Mode::Demo => demo::run(&args),
        Mode::Listen(at) => listen(&args, at),
        Mode::Connect(to) => connect(&args, to),
        Mode::PipeListen(at) => pipe::listen(&args, at),
        Mode::PipeConnect(to) => pipe::connect(&args, to),
        Mode::Relay { listen, to } => relay(&args, listen, to),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(wrong) => {
            eprintln!("echo: {wrong}");
            ExitCode::FAILURE
        }
    }
}

fn listen(args: &Args, at: SocketAddr) -> Result<(), String> {
    let config = kcp::PeersConfig { kcp: args.config(), eager: args.eager, ..kcp::PeersConfig::default() };
    let mut listener =
        kcp::Listener::bind(at, &config).map_err(|error| format!("cannot listen on {at}: {error}"))?;
    println!("listening on {}", listener.local_addr().map_err(|error| error.to_string())?);
    server::serve(&mut listener, true, || true).map_err(|error| format!("the server failed: {error}"))
}

fn connect(args: &Args, to: SocketAddr) -> Result<(), String> {
    let conv = args.conv.unwrap_or(Conv(1));
    let mut socket =
        kcp::Socket::connect(to, conv, &args.config()).map_err(|error| format!("{to}: {error}"))?;
    socket.set_peer_timeout(Some(args.timeout));
    socket.set_eager(args.eager);
    demo::measure(args, &mut socket).map_err(|error| gone(&socket, &error))
}

fn relay(args: &Args, at: SocketAddr, to: SocketAddr) -> Result<(), String> {
    let started = UdpSocket::bind(at).and_then(|socket| {
        eprintln!("passing on from {} to {to}", socket.local_addr()?);
        relay::start(socket, to, args.link)
    });
    started.map_err(|error| format!("cannot listen on {at}: {error}"))?;
    loop {
        thread::park();
    }
}

/// A line about a session that failed.
fn gone(socket: &kcp::Socket, error: &io::Error) -> String {
    let refused = if socket.socket_stats().unreachable > 0 { " (nobody listens there)" } else { "" };
    format!("{}: {error}{refused}", socket.peer_addr())
}
