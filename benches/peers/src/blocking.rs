//! Messages of 64 bytes by calls that block: one thread sends them by `send_blocking`, another one takes them by
//! `recv_blocking`. Measures how many arrive per second, and how many datagrams and system calls that takes.

use crate::runtime::cpu::Cpu;
use crate::table::Spread;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};
use whitewater::kcp::{Config, Conv, Socket};

/// Each setting `rounds` times, in turns.
pub(crate) fn table(rounds: usize) {
    let settings = [
        ("messages", Config::default()),
        ("  stream", Config { stream: true, ..Config::default() }),
        ("  window of 1024", Config { snd_wnd: 1024, rcv_wnd: 1024, ..Config::default() }),
    ];
    let mut found = settings.each_ref().map(|_| Vec::new());
    let mut costs = [[0.0; 3]; 3];
    for _ in 0..rounds {
        for (((_, config), found), cost) in settings.iter().zip(&mut found).zip(&mut costs) {
            let (rate, costs) = measure(config, 200_000);
            found.push(rate);
            *cost = costs;
        }
    }
    for (((name, _), rates), [sent, calls, cpu]) in settings.iter().zip(found).zip(costs) {
        let rate = Spread::of(rates);
        println!(
            "{name:<18} {:.2} M/s [{rate}]  {sent:.3} datagrams, {calls:.3} calls, {cpu:.0} ns of CPU each",
            rate.median
        );
    }
}

/// Millions of messages per second, and for each message the datagrams, the system calls and the ns of CPU time of both ends.
fn measure(config: &Config, count: usize) -> (f64, [f64; 3]) {
    let sockets = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").expect("a port"));
    let [to_near, to_far] = sockets.each_ref().map(|socket| socket.local_addr().expect("an address"));
    let [near, far] = sockets;
    let wrap = |socket: UdpSocket, to| {
        socket.connect(to).expect("a way");
        Socket::from_socket(socket, to, Conv(7), config).expect("a config")
    };
    let (mut near, mut far) = (wrap(near, to_far), wrap(far, to_near));
    let is_done = Arc::new(AtomicBool::new(false));
    let reader_is_done = Arc::clone(&is_done);
    let (start, cpu) = (Instant::now(), Cpu::now());
    let reader = thread::spawn(move || {
        let (mut buf, mut left) = (vec![0; 1 << 16], count * MESSAGE.len());
        while left > 0 {
            left -= far.recv_blocking(&mut buf).expect("a peer that is there");
        }
        let seconds = start.elapsed().as_secs_f64();
        far.set_read_timeout(Some(Duration::from_millis(1)));
        while !reader_is_done.load(Relaxed) {
            let _ = far.recv_blocking(&mut buf); // sends the last acknowledgements
        }
        (seconds, far.socket_traffic())
    });
    for _ in 0..count {
        near.send_blocking(&MESSAGE).expect("a peer that is there");
    }
    near.drain(Duration::from_secs(5)).expect("a peer that is there");
    is_done.store(true, Relaxed);
    let cpu = cpu.elapsed() * 1e9;
    let (seconds, far) = reader.join().expect("no panic");
    let near = near.socket_traffic();
    let each = |sum: u64| sum as f64 / count as f64;
    let calls = near.send_calls + near.receive_calls + far.send_calls + far.receive_calls;
    (count as f64 / 1e6 / seconds, [each(near.sent + far.sent), each(calls), cpu / count as f64])
}

const MESSAGE: [u8; 64] = [7; 64];
