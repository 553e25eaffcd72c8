//! Sessions whose applications send nothing, over loopback sockets in real time. One thread has the server with
//! its single socket, sleeps until a timer is due or a datagram comes, and is measured. The other has all
//! clients, each with a socket of its own, and looks at them every ms.

use super::bare::{Bare, ByTime};
use super::beat::Beat;
use super::sessions::Clients;
use super::udp::{Host, Listener, OneByOne, Sessions, Sockets, converse, each_ms};
use super::{Agenda, Side, WARM, thread_time};
use crate::ikcp::Ikcp;
use std::net::SocketAddr;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

pub(crate) fn table(sessions: usize, seconds: u32) {
    println!("{sessions} idle sessions over loopback, {seconds} s; the server's thread, a second");
    let end = WARM + seconds * 1000;
    let row = |name: &str, found: Found| found.print(name);
    row("ikcp.c", run(sessions, end, OneByOne::<Ikcp>::new, Beat::<Ikcp>::new, by_the_ms));
    row("by-time", run(sessions, end, Listener::new, Bare::<ByTime>::new, asleep));
    row("sessions", run(sessions, end, Sessions::checked, Clients::new, asleep));
    row("encrypted", run(sessions, end, Sessions::encrypted, Clients::encrypted, asleep));
}

/// A host that can sleep until something is to be done.
pub(super) trait Sleeper: Host {
    /// Sleeps and does what is to be done for so long, or a little less.
    fn rest(&mut self, time: Duration);
    /// Datagrams received so far.
    fn received(&self) -> u64;
}

/// What a thread has used up.
struct Used {
    cpu: f64,
    wakes: i64,
    sent: u64,
    received: u64,
}

struct Found {
    /// Share of a core.
    cpu: f64,
    wakes: f64,
    /// Datagrams of the server.
    sent: f64,
    received: f64,
}

impl Found {
    fn print(&self, name: &str) {
        let Self { cpu, wakes, sent, received } = self;
        println!(
            "  {name:12}{:5.2} % of a core, {wakes:5.0} wake-ups, {sent:6.0} datagrams sent, {received:6.0} received",
            cpu * 100.0
        );
    }
}

/// Runs a host until a time, ms. Returns what it has used up since [`WARM`].
type Drive<H> = fn(&mut H, Instant, u32, usize) -> Used;

fn run<H: Host + 'static, C: Side>(
    sessions: usize,
    end: u32,
    host: fn(&[SocketAddr]) -> H,
    clients: impl Fn(usize, u32) -> C,
    drive: Drive<H>,
) -> Found {
    let (sockets, (clients_are_up, over)) = (Sockets::new(sessions), mpsc::channel::<()>());
    let (clock, (tell, told), addresses) = (Instant::now(), mpsc::channel(), sockets.addresses());
    let server = thread::Builder::new().name("server".to_owned()).spawn(move || {
        let mut host = host(&addresses);
        tell.send(host.address()).expect("somebody waits");
        let used = drive(&mut host, clock, end, addresses.len());
        let _ = over.recv(); // that nobody is left: the end of the host ends all sessions
        used
    });
    let server = server.expect("a thread");
    let address = told.recv().expect("a server");
    converse(clock, end, (&sockets, &Agenda::new(0, 0)), address, &mut clients(sessions, 1));
    drop(clients_are_up);
    let Used { cpu, wakes, sent, received } = server.join().expect("no panic");
    let seconds = f64::from(end - WARM) / 1000.0;
    let each = |count: f64| count / seconds;
    Found {
        cpu: each(cpu),
        wakes: each(wakes as f64),
        sent: each(sent as f64),
        received: each(received as f64),
    }
}

fn asleep<H: Sleeper>(host: &mut H, clock: Instant, end: u32, _: usize) -> Used {
    let used = |host: &H| Used {
        cpu: thread_time(),
        wakes: thread_wakes(),
        sent: host.sent(),
        received: host.received(),
    };
    let [warm, used] = [WARM, end].map(|until| {
        let until = Duration::from_millis(until.into());
        while let Some(left) = until.checked_sub(clock.elapsed()) {
            host.rest(left);
        }
        used(host)
    });
    Used {
        cpu: used.cpu - warm.cpu,
        wakes: used.wakes - warm.wakes,
        sent: used.sent - warm.sent,
        received: used.received - warm.received,
    }
}

/// For control blocks that their users update by a beat.
fn by_the_ms<H: Host>(host: &mut H, clock: Instant, end: u32, sessions: usize) -> Used {
    let mut warm = None;
    each_ms(clock, end, &Agenda::new(0, sessions as u64), |from, now, sends, message| {
        if now >= WARM {
            warm.get_or_insert_with(|| (thread_time(), thread_wakes(), host.sent()));
        }
        host.step(from, now, sends, message, &mut |_| ());
    });
    let (cpu, wakes, sent) = warm.expect("it was long enough");
    let sent = host.sent() - sent;
    Used { cpu: thread_time() - cpu, wakes: thread_wakes() - wakes, sent, received: sent }
}

/// How often this thread went to sleep.
fn thread_wakes() -> i64 {
    // SAFETY: all of it may be zero, and the call writes to it and nothing else.
    let used = unsafe {
        let mut used: libc::rusage = std::mem::zeroed();
        assert_eq!(libc::getrusage(libc::RUSAGE_THREAD, &raw mut used), 0, "the thread exists");
        used
    };
    used.ru_nvcsw
}
