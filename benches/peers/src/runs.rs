//! ns per delivered segment in total: send, flush, path, input, recv, and the ACKs on their way back.

use crate::bare::Bare;
use crate::ikcp::Ikcp;
use crate::pipe::{ByTime, Load, MSS, Peer, Pipe, Whitewater};
use crate::rust::Rust;
use crate::session::Sessions;
use crate::table::{self, Spread};
use std::mem::MaybeUninit;
use std::time::Duration;

/// Every size, window and loss, `rounds` times. In each round the implementations take turns.
pub(crate) fn table(rounds: usize) {
    println!("CPU ns per delivered segment, median of {rounds} interleaved rounds [least..most]");
    for size in [64, MSS] {
        for loss in [0, 1, 10] {
            for window in [32, 128, 1024, 8192] {
                row(Load { size, window, loss }, rounds);
            }
        }
    }
}

/// One run, for counting instructions with callgrind. Prints the number of delivered messages.
pub(crate) fn one(peer: &str, load: Load, count: u64) {
    let run = match peer {
        Whitewater::NAME => run::<Whitewater>,
        Ikcp::NAME => run::<Ikcp>,
        Rust::NAME => run::<Rust>,
        "by-time" => run::<ByTime<0>>,
        "repairs" => run::<ByTime<30>>,
        "session" => run::<Sessions<false>>,
        "encrypted" => run::<Sessions<true>>,
        "bare" => run::<Bare>,
        _ => panic!("{peer} is none of ww, by-time, repairs, session, encrypted, ikcp.c, kcp, bare"),
    };
    println!("{}", run(load, count).delivered);
}

fn row(load: Load, rounds: usize) {
    let Load { size, window, loss } = load;
    // Several windows, so that costs per round trip are spread out evenly.
    let count = u64::from(window.max(1024)) * 20;
    let peers: [(&str, RunFn); 3] =
        [(Whitewater::NAME, run::<Whitewater>), (Ikcp::NAME, run::<Ikcp>), (Rust::NAME, run::<Rust>)];
    let mut times = [const { Vec::new() }; 3];
    let mut paths = [""; 3].map(str::to_owned);
    let mut bare = Vec::new();
    for _ in 0..rounds {
        for (index, (name, run)) in peers.iter().enumerate() {
            let run = run(load, count);
            times[index].push(run.nanos);
            paths[index] = format!("{name} {:.0} us, {:.0} B", run.virtual_micros, run.bytes);
        }
        bare.push(run::<Bare>(Load { loss: 0, ..load }, count).nanos);
    }
    let names = peers.iter().map(|(name, _)| *name);
    let spreads: Vec<_> = names.zip(times.map(Spread::of)).collect();
    println!("{size:4} B  window {window:4}  loss {loss:2} %   {}", table::spreads("ns", &spreads));
    println!(
        "        bare copying {:.0} ns; a segment on the path, virtual time and bytes: {}",
        Spread::of(bare).median,
        paths.join("; ")
    );
}

type RunFn = fn(Load, u64) -> Run;

/// The cost of a run per delivered message.
struct Run {
    delivered: u64,
    nanos: f64,
    /// What the path saw: an implementation that resends less or later has less to do.
    virtual_micros: f64,
    bytes: f64,
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
fn run<P: Peer>(load: Load, count: u64) -> Run {
    let mut pipe = Pipe::<P>::new(load);
    // Warm up until the RTT is known, every buffer has been used, and losses are normal.
    pipe.deliver(u64::from(load.window) * 8);
    let (before, now, bytes) = (pipe.received(), pipe.now(), pipe.bytes());
    let start = cpu_time();
    pipe.deliver(count);
    let elapsed = cpu_time() - start;
    let delivered = pipe.received() - before;
    let each = |total: f64| total / delivered as f64;
    Run {
        delivered,
        nanos: each(elapsed.as_secs_f64() * 1e9),
        virtual_micros: each(f64::from(pipe.now() - now) * 1000.0),
        bytes: each((pipe.bytes() - bytes) as f64),
    }
}

/// CPU time of this thread. A run is about as long as a time slice of the scheduler, so on a busy machine
/// wall-clock time may be twice as long.
pub(crate) fn cpu_time() -> Duration {
    let mut time = MaybeUninit::uninit();
    // SAFETY: the kernel fills in the time, for which there is room, or reports failure.
    let time = unsafe {
        assert_eq!(libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, time.as_mut_ptr()), 0);
        time.assume_init()
    };
    Duration::new(time.tv_sec.cast_unsigned(), u32::try_from(time.tv_nsec).unwrap_or(0))
}
