//! Compares whitewater, ikcp.c (by kcp-sys) and the crate kcp in one run: the same driver, the same path, the
//! same seeds. Trust the ratios of one run more than any single figure.
//!
//! ```text
//! cargo run --release -- pipe [ROUNDS]                     ns per segment, by size, window and loss
//! cargo run --release -- one PEER SIZE WINDOW LOSS COUNT   one run of that, for callgrind.sh
//! cargo run --release -- forged                            µs per datagram of forged ACKs
//! cargo run --release -- idle                              ns of an update; bytes of an idle session
//! cargo run --release -- memory                            bytes per segment, allocations per message
//! cargo run --release -- many [PEERS]                      what idle peers cost: heap, wake-ups, CPU
//! cargo run --release -- crowd [SESSIONS]                  datagrams, latency and CPU of a full server
//! cargo run --release -- crowd-one PEER SESSIONS LOSS [SECONDS]   one run of that, for callgrind.sh
//! cargo run --release -- crowd-udp [SESSIONS] [SECONDS]   the same over sockets: CPU of the server with its system calls (Linux)
//! cargo run --release -- scale [SESSIONS..]                a server's CPU, heap and wake-ups a session beside other libraries (Linux)
//! cargo run --release -- shards [SESSIONS]                 ticks a second of 1 to as many shards as there are cores (Linux)
//! cargo run --release -- still [SESSIONS] [SECONDS]       idle sessions over sockets: CPU, wake-ups and datagrams of the server (Linux)
//! cargo run --release -- lossy [ROUNDS]                   64 MiB over bad paths in virtual time
//! cargo run --release -- wire                             bytes on the wire of a small message
//! cargo run --release -- udp [ROUNDS]                      ns of a datagram through sockets (Linux)
//! cargo run --release -- uring [ROUNDS]                    ns of an echoed datagram by io_uring (Linux)
//! cargo run --release -F aws-lc-rs -- ciphers [ROUNDS]   ns of sealing and opening a packet, by ring and aws-lc-rs
//! cargo run --release -- tokio [ROUNDS]                    streams under tokio, beside tokio_kcp and TCP
//! cargo run --release -- tokio-turns [ROUNDS]              round trips of them, of tasks and of the future of `block_on`
//! cargo run --release -- echo [ROUNDS]                     60 messages per second there and back, CPU of each
//! cargo run --release -- blocking [ROUNDS]                 messages per second of calls that block, both ways of bare KCP
//! cargo run --release -- turns [ROUNDS]                    round trips in one thread, without a runtime
//! cargo run --release -- lab [SECONDS ROUNDS]             latency and bytes between two namespaces (Linux, root)
//! cargo run --release -- lab-transfers [ROUNDS [NAME]]    20 MB between them
//! cargo run --release -- lab-smoke                        whether all of that works
//! cargo run --release -- tokio-one PEER LOAD COUNT         one run of that, for a profiler
//! ```

mod bare;
mod blocking;
mod ciphers;
mod crowd;
mod forged;
mod heap;
mod idle;
mod ikcp;
#[cfg(target_os = "linux")]
mod lab;
mod lossy;
mod many;
mod memory;
#[cfg(target_os = "linux")]
mod net;
#[path = "../../pipe/mod.rs"]
mod pipe;
mod runs;
mod runtime;
mod rust;
mod session;
mod table;
mod turns;
mod wire;

use std::env;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["pipe"] => runs::table(5),
        ["pipe", rounds] => runs::table(number(rounds)),
        ["one", peer, size, window, loss, count] => {
            let load = pipe::Load { size: number(size), window: number(window), loss: number(loss) };
            runs::one(peer, load, number(count));
        }
        ["forged"] => forged::table(),
        ["idle"] => idle::table(),
        ["memory"] => memory::table(),
        ["many"] => {
            many::table(1_000_000);
            crowd::idle(16_000);
        }
        ["many", count] => many::table(number(count)),
        ["lossy"] => lossy::table(5),
        ["lossy", rounds] => lossy::table(number(rounds)),
        ["wire"] => wire::table(),
        ["crowd"] => crowd::table(10_000),
        ["crowd", sessions] => crowd::table(number(sessions)),
        ["crowd-one", peer, sessions, loss] => {
            crowd::profile(peer, number(sessions), number(loss), crowd::SECONDS);
        }
        ["crowd-one", peer, sessions, loss, seconds] => {
            crowd::profile(peer, number(sessions), number(loss), number(seconds));
        }
        #[cfg(target_os = "linux")]
        ["scale"] => crowd::scale::table(&[1000, 10_000, 50_000]),
        #[cfg(target_os = "linux")]
        ["scale", ref counts @ ..] => {
            crowd::scale::table(&counts.iter().map(|count| number(count)).collect::<Vec<_>>());
        }
        #[cfg(target_os = "linux")]
        ["shards"] => crowd::scale::shards(5000),
        #[cfg(target_os = "linux")]
        ["shards", sessions] => crowd::scale::shards(number(sessions)),
        #[cfg(target_os = "linux")]
        ["crowd-udp"] => crowd::udp::table(1000, 10),
        #[cfg(target_os = "linux")]
        ["crowd-udp", sessions] => crowd::udp::table(number(sessions), 10),
        #[cfg(target_os = "linux")]
        ["crowd-udp", sessions, seconds] => crowd::udp::table(number(sessions), number(seconds)),
        #[cfg(target_os = "linux")]
        ["crowd-udp-one", peer, sessions, seconds] => {
            crowd::udp::profile(peer, number(sessions), number(seconds));
        }
        #[cfg(target_os = "linux")]
        ["still"] => crowd::still::table(10_000, 10),
        #[cfg(target_os = "linux")]
        ["still", sessions] => crowd::still::table(number(sessions), 10),
        #[cfg(target_os = "linux")]
        ["still", sessions, seconds] => crowd::still::table(number(sessions), number(seconds)),
        #[cfg(target_os = "linux")]
        ["udp"] => net::udp::table(5),
        #[cfg(target_os = "linux")]
        ["udp", rounds] => net::udp::table(number(rounds)),
        #[cfg(target_os = "linux")]
        ["uring"] => net::uring::table(5),
        #[cfg(target_os = "linux")]
        ["uring", rounds] => net::uring::table(number(rounds)),
        ["ciphers"] => ciphers::table(5),
        ["ciphers", rounds] => ciphers::table(number(rounds)),
        ["tokio"] => runtime::table(5),
        ["tokio", rounds] => runtime::table(number(rounds)),
        #[cfg(target_os = "linux")]
        ["lab"] => lab::latency(20, 3),
        #[cfg(target_os = "linux")]
        ["lab", seconds, rounds] => lab::latency(number(seconds), number(rounds)),
        #[cfg(target_os = "linux")]
        ["lab-transfers"] => lab::transfers(2, ""),
        #[cfg(target_os = "linux")]
        ["lab-transfers", rounds] => lab::transfers(number(rounds), ""),
        #[cfg(target_os = "linux")]
        ["lab-transfers", rounds, named] => lab::transfers(number(rounds), named),
        #[cfg(target_os = "linux")]
        ["lab-smoke"] => lab::smoke(),
        #[cfg(not(target_os = "linux"))]
        ["lab-smoke"] => println!("skipped    lab: it needs Linux"),
        ["echo"] => runtime::echo(5),
        ["echo", rounds] => runtime::echo(number(rounds)),
        ["blocking"] => blocking::table(5),
        ["blocking", rounds] => blocking::table(number(rounds)),
        ["turns"] => turns::table(5),
        ["turns", rounds] => turns::table(number(rounds)),
        ["turns-one", peer, count] => turns::one(peer, number(count)),
        ["tokio-turns"] => runtime::turns(5),
        ["tokio-turns", rounds] => runtime::turns(number(rounds)),
        ["tokio-one", peer, load, count] => runtime::one(peer, load, number(count)),
        _ => {
            eprintln!(
                "usage: peers pipe [ROUNDS] | one PEER SIZE WINDOW LOSS COUNT | forged | idle | memory | many [PEERS] \
                 | crowd [SESSIONS] | crowd-one PEER SESSIONS LOSS [SECONDS] | crowd-udp [SESSIONS [SECONDS]] | crowd-udp-one PEER SESSIONS SECONDS \
                 | scale [SESSIONS..] | shards [SESSIONS] | still [SESSIONS [SECONDS]] \
                 | lab [SECONDS ROUNDS] | lab-transfers [ROUNDS [NAME]] | lab-smoke | lossy [ROUNDS] | wire | udp [ROUNDS] | uring [ROUNDS] | ciphers [ROUNDS] \
                 | tokio [ROUNDS] | echo [ROUNDS] | blocking [ROUNDS] | turns [ROUNDS] | tokio-turns [ROUNDS] \
                 | tokio-one PEER bulk|messages|ping-pong|unspawned|beside|echo COUNT"
            );
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn number<N: std::str::FromStr>(arg: &str) -> N {
    arg.parse().unwrap_or_else(|_| panic!("{arg} is not a number"))
}
