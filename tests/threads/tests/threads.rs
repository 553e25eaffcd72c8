//! Whatever the order of the steps of the program, the threads of its sessions and their peers: everything arrives
//! once and in order, nobody waits for a wake-up that does not come, and every thread ends.
//!
//! Each scenario runs under three schedulers: random, random with few changes of threads (PCT), and depth first as far as
//! it gets. `THREADS=<n>` runs n times as many.

use shuttle::scheduler::{DfsScheduler, PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, MaxSteps, Runner, thread};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use whitewater::channel::SendError;
use whitewater::thread::ThreadConfig;
use whitewater::{Channel, CloseReason, Event, SessionId};
use whitewater_threads::Server;
use whitewater_threads::model::{GOODBYE, SessionConfig, Wire};

const CHATS: [Channel; 2] = [Channel::ordered(0), Channel::ordered(1)];
/// So little room that each message waits for the one before it to be taken.
const TIGHT: ThreadConfig = ThreadConfig { outgoing: 1, incoming: 1 };

#[test]
fn everything_that_arrives_is_read_although_one_message_fills_the_queue() {
    explore(|| {
        let (wires, mut server) = start(1, TIGHT);
        let peer = thread::spawn(move || (0..3).for_each(|message| wires[0].arrive(5, 0, message)));
        let read = read(&mut server, 3);
        assert_eq!(read, [(5, 0), (5, 1), (5, 2)]);
        peer.join().unwrap();
        server.shutdown().unwrap();
    });
}

#[test]
fn everything_that_is_sent_leaves_although_one_message_fills_the_queue() {
    explore(|| {
        let (wires, mut server) = start(1, TIGHT);
        wires[0].arrive(5, 0, 0);
        let id = server.id(5);
        read(&mut server, 1);
        for message in 0..3 {
            while let Err(error) = server.send(id, CHATS[0], &[message]) {
                assert!(error.is_full());
                while server.event().unwrap().1 != Event::Writable {}
            }
        }
        server.close(id, 1);
        while !is_end(server.event().unwrap().1, CloseReason::Local(1)) {}
        assert_eq!(wires[0].sent_so_far(), [[5, 0, 0], [5, 0, 1], [5, 0, 2]]);
        server.shutdown().unwrap();
    });
}

#[test]
fn a_server_that_is_dropped_while_it_sends_and_receives_says_everything_and_ends() {
    explore(|| {
        let (wires, mut server) = start(1, ThreadConfig::default());
        wires[0].arrive(5, 0, 0);
        let id = server.id(5);
        read(&mut server, 1);
        let wire = Arc::clone(&wires[0]);
        let peer = thread::spawn(move || (0..2).for_each(|message| wire.arrive(5, 1, message)));
        server.send(id, CHATS[0], &[0]).unwrap();
        server.send(id, CHATS[1], &[1]).unwrap();
        drop(server);
        let mut sent = wires[0].sent_so_far();
        sent.sort_unstable();
        assert_eq!(sent, [[5, 0, 0], [5, 1, 1]]);
        peer.join().unwrap();
    });
}

#[test]
fn a_socket_that_fails_ends_the_thread_and_wakes_the_program() {
    explore(|| {
        let (wires, mut server) = start(1, TIGHT);
        let id = server.id(5);
        let peer = thread::spawn(move || {
            wires[0].arrive(5, 0, 0);
            wires[0].fail();
        });
        while server.event().is_some() {
            match server.send(id, CHATS[0], b"x") {
                Ok(()) | Err(SendError::Full { .. } | SendError::Closed) => {}
                other => panic!("{other:?}"),
            }
        }
        assert!(server.send(id, CHATS[0], b"x").is_err());
        peer.join().unwrap();
        assert!(server.shutdown().is_err());
    });
}

#[test]
fn a_session_that_both_ends_close_at_once_is_over_once() {
    for is_kicked in [false, true] {
        explore(move || {
            let (wires, mut server) = start(1, TIGHT);
            let wire = Arc::clone(&wires[0]);
            let peer = thread::spawn(move || {
                wire.arrive(5, 0, 0);
                wire.arrive(5, GOODBYE, 0);
            });
            let (id, event) = server.event().unwrap();
            assert_eq!(event, Event::Connected);
            let _ = server.send(id, CHATS[1], b"x"); // it may be over by now
            if is_kicked {
                server.kick(id, 1)
            } else {
                server.close(id, 1)
            }
            let mut messages = 0;
            loop {
                let (_, event) = server.event().unwrap();
                messages += CHATS.iter().filter_map(|channel| server.recv(id, *channel)).count();
                if let Event::Closed { reason, undelivered } = event {
                    assert!(matches!(reason, CloseReason::Local(1) | CloseReason::Peer(0)), "{reason:?}");
                    let sent = wires[0].sent_so_far().len();
                    assert!(sent + undelivered.messages >= 1, "told of what did not leave");
                    break;
                }
            }
            assert!(messages <= 1);
            peer.join().unwrap();
            server.shutdown().unwrap();
        });
    }
}

#[test]
fn what_arrives_at_the_wrong_shard_is_handed_on_even_to_one_that_sleeps() {
    explore(|| {
        let (wires, mut server) = start(2, TIGHT);
        let peer = thread::spawn(move || {
            for message in 0..2 {
                wires[0].arrive(5, 0, message); // of shard 1
                wires[1].arrive(4, 0, message); // of shard 0
            }
        });
        let mut all = read(&mut server, 4);
        all.sort_unstable();
        assert_eq!(all, [(4, 0), (4, 1), (5, 0), (5, 1)]);
        peer.join().unwrap();
        server.shutdown().unwrap();
    });
}

fn start(shards: usize, config: ThreadConfig) -> (Vec<Arc<Wire>>, Server) {
    let wires: Vec<_> = (0..shards).map(|_| Arc::<Wire>::default()).collect();
    let channels = CHATS.map(Channel::config).into();
    let session = SessionConfig { channels, drain: Duration::from_secs(5) };
    let server = Server::start(&wires, &session, &config);
    (wires, server)
}

/// Reads that many messages, each once an event says that there are some: the session and the message of each.
fn read(server: &mut Server, count: usize) -> Vec<(u8, u8)> {
    let mut all = Vec::new();
    while all.len() < count {
        let (id, event) = server.event().expect("the threads run");
        if event == Event::Readable {
            let next = |server: &mut Server| server.recv(id, CHATS[0]);
            all.extend(std::iter::from_fn(|| next(server)).map(|message| (number(id), message[0])));
        }
    }
    all
}

fn number(id: SessionId) -> u8 {
    id.to_bits().to_le_bytes()[0]
}

fn is_end(event: Event, why: CloseReason) -> bool {
    matches!(event, Event::Closed { reason, .. } if reason == why)
}

fn explore(scenario: impl Fn() + Send + Sync + Clone + 'static) {
    let factor: usize = std::env::var("THREADS").ok().and_then(|factor| factor.parse().ok()).unwrap_or(1);
    let runs = factor * RUNS;
    let counted = [
        run(RandomScheduler::new_from_seed(1, runs), scenario.clone()),
        run(PctScheduler::new_from_seed(2, 3, runs), scenario.clone()),
        run(DfsScheduler::new(Some(runs), false), scenario),
    ];
    println!("runs: {counted:?}");
    assert!(counted[..2].iter().all(|counted| *counted == runs as u64));
}

fn run(scheduler: impl Scheduler + 'static, scenario: impl Fn() + Send + Sync + 'static) -> u64 {
    let counted = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&counted);
    let mut config = Config::new();
    config.max_steps = MaxSteps::FailAfter(100_000); // a thread that never sleeps
    Runner::new(scheduler, config).run(move || {
        count.fetch_add(1, Relaxed);
        scenario();
    });
    counted.load(Relaxed)
}

/// Of each scenario under each scheduler.
const RUNS: usize = 3_000;
