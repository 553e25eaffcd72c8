//! The drivers over real loopback sockets. Whatever needs no socket is tested in virtual time, beside the
//! code. No test here depends on the speed of the machine.

#![cfg(feature = "net")]
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "a test that panics has found something"
)]

#[path = "common/configs.rs"]
mod configs;

use std::io::{self, ErrorKind, Write};
use std::net::{SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};
use whitewater::Repairs;
use whitewater::kcp::{self, Config, Conv, Modern, PeerCloseReason, PeerEvent, Recovery};
use whitewater::net::{Error, SocketStats};

/// Long enough for any machine; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(20);

fn listener(config: kcp::PeersConfig) -> kcp::Listener {
    kcp::Listener::bind("127.0.0.1:0", &kcp::PeersConfig { kcp: configs::classic_turbo(), ..config }).unwrap()
}

/// For clients that are not there to answer a question.
fn trusting() -> kcp::PeersConfig {
    kcp::PeersConfig { strangers: kcp::Strangers::Trusted, ..kcp::PeersConfig::default() }
}

fn client(listener: &kcp::Listener, conv: u32) -> kcp::Socket {
    connect(listener.local_addr().unwrap(), conv)
}

fn connect(to: SocketAddr, conv: u32) -> kcp::Socket {
    let mut socket = kcp::Socket::connect(to, Conv(conv), &configs::classic_turbo()).unwrap();
    socket.set_read_timeout(Some(PATIENCE));
    socket
}

/// Pumps and echoes until `done`, which sees every event.
fn serve(listener: &mut kcp::Listener, mut done: impl FnMut(&kcp::Listener, Option<PeerEvent>) -> bool) {
    let start = Instant::now();
    let mut message = vec![0; 1 << 16];
    loop {
        assert!(start.elapsed() < PATIENCE, "{:?}", listener.stats());
        listener.poll(Some(Duration::from_millis(5))).unwrap();
        let event = listener.poll_event();
        if let Some(PeerEvent::Readable(id)) = event
            && let Some(peer) = listener.peer(id)
        {
            while let Ok(len) = peer.recv_into(&mut message) {
                peer.send(&message[..len]).unwrap();
            }
        }
        if done(listener, event) {
            return;
        }
    }
}

/// A port of this host on which nobody listens and that the system never assigns.
fn nobody() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 1))
}

#[test]
fn messages_of_every_size_are_echoed() {
    let mut listener = listener(kcp::PeersConfig::default());
    let mut socket = client(&listener, 7);
    let peer = thread::spawn(move || {
        let mut buf = vec![0; 1 << 16];
        for len in [0, 1, 100, 1376, 1377, 5000, 60_000] {
            let message: Vec<u8> = (0..len).map(|at| (at * 31 + len) as u8).collect();
            assert_eq!(socket.send_blocking(&message).unwrap(), len);
            assert_eq!(socket.recv_blocking(&mut buf).unwrap(), len);
            assert!(buf[..len] == message);
        }
        socket.drain(PATIENCE).unwrap();
        assert_eq!(socket.kcp().wait_snd(), 0);
        let rejected = (socket.socket_stats().rejected, socket.socket_stats().strangers);
        assert_eq!(rejected, (0, 0));
    });
    serve(&mut listener, |_, _| peer.is_finished());
    peer.join().unwrap();
    let id = listener.peers().ids().next().unwrap();
    assert_eq!((listener.peers().len(), listener.peer(id).unwrap().conv()), (1, Conv(7)));
}

#[test]
fn a_registered_ipv4_peer_is_served_from_a_dual_stack_socket() {
    let kcp = configs::turbo();
    let limits = kcp::PeersConfig { kcp, ..kcp::PeersConfig::registered() };
    let Ok(mut listener) = kcp::Listener::bind("[::]:0", &limits) else { return }; // no IPv6 here
    let port = listener.local_addr().unwrap().port();
    let mut buf = [0; 100];
    for to in [SocketAddr::from(([127, 0, 0, 1], port)), format!("[::1]:{port}").parse().unwrap()] {
        let mut socket = kcp::Socket::connect(to, Conv(7), &kcp).unwrap();
        let from = socket.local_addr().unwrap();
        let id = listener.register(from, Conv(7)).unwrap();
        socket.send(b"ping").unwrap();
        socket.flush();
        assert!(listener.poll(Some(PATIENCE)).unwrap(), "{to}: {:?}", listener.stats());
        assert_eq!(listener.poll_event(), Some(PeerEvent::Readable(id)));
        let peer = listener.peer(id).unwrap();
        assert_eq!((peer.peer_addr(), peer.recv_into(&mut buf)), (from, Ok(4)));
        peer.send(b"pong, the last word").unwrap();
        assert!(listener.close(id));
        socket.set_read_timeout(Some(PATIENCE));
        assert_eq!(socket.recv_blocking(&mut buf).unwrap(), 19);
        assert_eq!(listener.socket_stats(), SocketStats::default());
    }
}

#[test]
fn sessions_of_one_address_do_not_mix() {
    let mut listener = listener(kcp::PeersConfig::default());
    let to = listener.local_addr().unwrap();
    let peers: Vec<_> = (0..8u32)
        .map(|conv| {
            thread::spawn(move || {
                let mut socket = connect(to, conv);
                let mut buf = [0; 16];
                for round in 0..20u32 {
                    socket.send_blocking(&(conv * 1000 + round).to_le_bytes()).unwrap();
                    let len = socket.recv_blocking(&mut buf).unwrap();
                    assert_eq!(buf[..len], (conv * 1000 + round).to_le_bytes());
                }
            })
        })
        .collect();
    serve(&mut listener, |_, _| peers.iter().all(thread::JoinHandle::is_finished));
    for peer in peers {
        peer.join().unwrap();
    }
    assert_eq!(listener.stats().accepted, 8);
}

#[test]
fn a_stream_gets_through_a_full_send_queue_with_every_recovery() {
    for config in recoveries() {
        stream_through_a_full_queue(Config { stream: true, snd_queue: 16, ..config });
    }
}

fn stream_through_a_full_queue(config: Config) {
    let limits = kcp::PeersConfig { kcp: config, ..kcp::PeersConfig::default() };
    let mut listener = kcp::Listener::bind("127.0.0.1:0", &limits).unwrap();
    let mut socket = kcp::Socket::connect(listener.local_addr().unwrap(), Conv(1), &config).unwrap();
    let data: Vec<u8> = (0..300_000u32).map(|at| (at / 7) as u8).collect();
    let sent = data.clone();
    let peer = thread::spawn(move || {
        socket.set_write_timeout(Some(PATIENCE));
        let mut rest = &sent[..];
        while !rest.is_empty() {
            let len = socket.send_blocking(&rest[..rest.len().min(4000)]).unwrap();
            rest = &rest[len..];
        }
        socket.drain(PATIENCE).unwrap();
    });
    let (mut received, mut buf) = (Vec::new(), [0; 2000]);
    while received.len() < data.len() {
        assert!(listener.poll(Some(PATIENCE)).unwrap());
        while let Some(event) = listener.poll_event() {
            let PeerEvent::Readable(id) = event else { continue };
            while let Ok(len) = listener.peer(id).unwrap().recv_into(&mut buf) {
                received.extend_from_slice(&buf[..len]);
            }
        }
    }
    assert!(received == data);
    serve(&mut listener, |_, _| peer.is_finished());
    peer.join().unwrap();
}

/// The UDP socket of the `kcp` crate's control block.
struct Wire(UdpSocket);

impl Write for Wire {
    fn write(&mut self, datagram: &[u8]) -> io::Result<usize> {
        self.0.send(datagram)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_foreign_kcp_peer_is_served_with_every_recovery() {
    for config in recoveries() {
        serve_the_crate_kcp(config);
    }
}

fn serve_the_crate_kcp(kcp: Config) {
    let mut listener =
        kcp::Listener::bind("127.0.0.1:0", &kcp::PeersConfig { kcp, ..kcp::PeersConfig::default() }).unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(listener.local_addr().unwrap()).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
    let peer = thread::spawn(move || {
        let mut kcp = ::kcp::Kcp::new(7, Wire(socket.try_clone().unwrap()));
        kcp.set_nodelay(true, 10, 2, true);
        let message: Vec<u8> = (0..20_000u32).map(|at| (at / 3) as u8).collect();
        kcp.send(&message).unwrap();
        let (start, mut buf) = (Instant::now(), vec![0; 1 << 16]);
        loop {
            assert!(start.elapsed() < PATIENCE, "no echo");
            kcp.update(start.elapsed().as_millis() as u32).unwrap();
            if let Ok(len) = socket.recv(&mut buf) {
                kcp.input(&buf[..len]).unwrap();
            }
            if let Ok(len) = kcp.recv(&mut buf) {
                return assert!(buf[..len] == message);
            }
        }
    });
    serve(&mut listener, |_, _| peer.is_finished());
    peer.join().unwrap();
}

/// As in ikcp.c, by timing, and with repairs.
fn recoveries() -> [Config; 3] {
    let modern = Modern { repairs: Repairs::Budget(100), ..Modern::default() };
    let repairs = Config { recovery: Recovery::Modern(modern), ..configs::turbo() };
    [configs::classic_turbo(), configs::turbo(), repairs]
}

/// A port that passes datagrams between its first client and `to`, except for every tenth.
fn lossy_relay(to: SocketAddr) -> SocketAddr {
    let relay = UdpSocket::bind("127.0.0.1:0").unwrap();
    let at = relay.local_addr().unwrap();
    thread::spawn(move || {
        let (mut client, mut buf) = (None, [0; 2000]);
        for number in 1.. {
            let Ok((len, from)) = relay.recv_from(&mut buf) else { continue };
            client = client.or(Some(from));
            let receiver = if from == to { client } else { Some(to) };
            if let Some(receiver) = receiver.filter(|_| number % 10 != 0) {
                let _ = relay.send_to(&buf[..len], receiver); // a failed send is just another loss
            }
        }
    });
    at
}

#[test]
fn every_recovery_echoes_to_every_other_over_a_lossy_path() {
    let ends = recoveries().into_iter().flat_map(|ours| recoveries().map(|theirs| (ours, theirs)));
    for (ours, theirs) in ends {
        let limits = kcp::PeersConfig { kcp: theirs, ..kcp::PeersConfig::default() };
        let mut listener = kcp::Listener::bind("127.0.0.1:0", &limits).unwrap();
        let relay = lossy_relay(listener.local_addr().unwrap());
        let both_rebuild = [ours, theirs].iter().all(|end| *end == recoveries()[2]);
        let peer = thread::spawn(move || {
            let mut socket = kcp::Socket::connect(relay, Conv(7), &ours).unwrap();
            socket.set_read_timeout(Some(PATIENCE));
            let (start, mut buf) = (Instant::now(), vec![0; 1 << 16]);
            for round in 0..1000 {
                let stats = socket.stats();
                let is_seen = stats.repairs_sent > 0 && stats.rebuilt > 0;
                if round >= 5 && (is_seen || !both_rebuild) {
                    break;
                }
                assert!(start.elapsed() < PATIENCE, "no repairs: {stats:?}");
                let message = |number: usize| vec![number as u8; 1 + number * 97];
                (0..20).for_each(|number| assert!(socket.send_blocking(&message(number)).is_ok()));
                for number in 0..20 {
                    let len = socket.recv_blocking(&mut buf).unwrap();
                    assert!(buf[..len] == message(number), "message {number} of round {round}");
                }
            }
            socket.drain(PATIENCE).unwrap();
            let stats = socket.stats();
            assert_eq!(stats.rebuilt > 0, both_rebuild, "{stats:?}");
        });
        serve(&mut listener, |_, _| peer.is_finished());
        peer.join().unwrap();
    }
}

#[test]
fn strangers_and_garbage_open_nothing() {
    let mut listener = listener(kcp::PeersConfig::default());
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    stranger.connect(listener.local_addr().unwrap()).unwrap();
    for datagram in [&b"hello"[..], &[81; 24], &[0; 1000], &[]] {
        stranger.send(datagram).unwrap();
    }
    serve(&mut listener, |listener, _| listener.stats().garbage == 4);
    assert!(listener.peers().is_empty() && listener.stats().accepted == 0);
    stranger.set_nonblocking(true).unwrap();
    assert_eq!(stranger.recv(&mut [0; 1]).unwrap_err().kind(), ErrorKind::WouldBlock, "it got an answer");
}

#[test]
fn an_unconnected_socket_only_hears_its_peer() {
    let mut listener = listener(kcp::PeersConfig::default());
    let own = UdpSocket::bind("127.0.0.1:0").unwrap();
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    stranger.send_to(&[81; 100], own.local_addr().unwrap()).unwrap();
    let mut socket =
        kcp::Socket::from_socket(own, listener.local_addr().unwrap(), Conv(1), &configs::classic_turbo())
            .unwrap();
    let peer = thread::spawn(move || {
        socket.send_blocking(b"to the listener").unwrap();
        let len = socket.recv_blocking(&mut [0; 16]).unwrap();
        assert_eq!((len, socket.socket_stats().strangers), (15, 1));
    });
    serve(&mut listener, |_, _| peer.is_finished());
    peer.join().unwrap();
}

#[test]
fn a_full_listener_keeps_serving_its_peers() {
    let mut listener = listener(kcp::PeersConfig { max_peers: 2, ..trusting() });
    let mut sockets: Vec<_> = (0..4).map(|conv| client(&listener, conv)).collect();
    for socket in &mut sockets {
        socket.send(b"let me in").unwrap();
        socket.flush();
    }
    serve(&mut listener, |listener, _| listener.stats().refused_full >= 2);
    assert_eq!((listener.peers().len(), listener.stats().accepted), (2, 2));
}

#[test]
fn one_address_gets_only_its_share() {
    let limits = kcp::PeersConfig { max_peers_per_address: 3, ..trusting() };
    let mut listener = listener(limits);
    let mut sockets: Vec<_> = (0..5).map(|conv| client(&listener, conv)).collect();
    for socket in &mut sockets {
        socket.send(b"let me in").unwrap();
        socket.flush();
    }
    serve(&mut listener, |listener, _| listener.stats().refused_per_address >= 2);
    assert_eq!((listener.peers().len(), listener.stats().refused_full), (3, 0));
}

#[test]
fn a_silent_session_times_out_and_its_peer_may_come_back() {
    let limits = kcp::PeersConfig { idle_timeout: Duration::from_millis(100), ..trusting() };
    let mut listener = listener(limits);
    let mut socket = client(&listener, 1);
    socket.send(b"then nothing").unwrap();
    socket.flush();
    let mut closed = Vec::new();
    serve(&mut listener, |_, event| {
        closed.extend(event.and_then(|event| match event {
            PeerEvent::Closed { reason, .. } => Some(reason),
            _ => None,
        }));
        !closed.is_empty()
    });
    assert_eq!((closed, listener.peers().len()), (vec![PeerCloseReason::Idle], 0));
    let mut again = client(&listener, 1);
    again.send(b"here I am").unwrap();
    again.flush();
    serve(&mut listener, |listener, _| listener.stats().accepted == 2);
}

#[test]
fn a_closed_port_is_loss_and_then_a_silent_peer() {
    let mut socket = connect(nobody(), 1);
    socket.set_peer_timeout(Some(Duration::from_millis(300)));
    socket.send_blocking(b"anyone?").unwrap();
    let error = socket.recv_blocking(&mut [0; 16]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert!(matches!(Error::of(&error), Some(Error::PeerSilent { .. })), "{error:?}");
    assert!(socket.socket_stats().unreachable > 0, "{:?}", socket.socket_stats());
    assert_eq!(socket.drain(PATIENCE).unwrap_err().kind(), ErrorKind::TimedOut);
    assert_eq!(socket.pump().unwrap_err().kind(), ErrorKind::TimedOut);
}

#[test]
fn a_segment_sent_too_often_is_a_dead_link() {
    let config = Config { dead_link: 3, ..configs::classic_turbo() };
    let mut socket = kcp::Socket::connect(nobody(), Conv(1), &config).unwrap();
    socket.send_blocking(b"anyone?").unwrap();
    let error = socket.recv_blocking(&mut [0; 16]).unwrap_err();
    assert_eq!((error.kind(), Error::of(&error)), (ErrorKind::TimedOut, Some(&Error::DeadLink { sends: 3 })));
}

#[test]
fn a_listener_outlives_peers_that_vanish() {
    let mut listener = listener(trusting());
    let mut gone = client(&listener, 1);
    gone.send(b"and away").unwrap();
    gone.flush();
    drop(gone); // the echo meets a closed port, and ICMP reports it
    serve(&mut listener, |listener, _| listener.stats().accepted == 1);
    let mut socket = client(&listener, 2);
    let peer = thread::spawn(move || {
        socket.send_blocking(b"still there?").unwrap();
        assert_eq!(socket.recv_blocking(&mut [0; 16]).unwrap(), 12);
    });
    serve(&mut listener, |_, _| peer.is_finished());
    peer.join().unwrap();
}

#[test]
fn blocking_calls_respect_their_timeouts() {
    let mut socket = connect(nobody(), 1);
    for wait in [0, 3, 40] {
        let wait = Duration::from_millis(wait);
        socket.set_read_timeout(Some(wait));
        let start = Instant::now();
        assert_eq!(socket.recv_blocking(&mut [0; 16]).unwrap_err().kind(), ErrorKind::WouldBlock);
        assert!((wait..PATIENCE).contains(&start.elapsed()), "{:?}", start.elapsed());
    }
    let config = Config { snd_queue: 1, ..configs::classic_turbo() };
    let mut socket = kcp::Socket::connect(nobody(), Conv(1), &config).unwrap();
    socket.set_write_timeout(Some(Duration::from_millis(30)));
    let error = (0..1000).find_map(|_| socket.send_blocking(b"message").err()).unwrap();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
}

#[test]
fn pump_returns_when_to_call_it_again() {
    let mut socket = connect(nobody(), 1);
    assert_eq!(socket.pump().unwrap(), None, "nothing to do");
    socket.pump().unwrap();
    socket.send(b"something to do").unwrap();
    let wait = socket.pump().unwrap().unwrap();
    assert!(wait <= Duration::from_secs(1), "{wait:?}");
    assert_eq!(socket.recv_into(&mut [0; 16]), Err(kcp::RecvError::NoMessage));
}

#[test]
fn errors_name_what_cannot_work() {
    let error =
        kcp::Socket::connect(nobody(), Conv(1), &Config { mtu: 20, ..configs::classic_fast() }).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().starts_with("`mtu` is 20"), "{error}");
    let mut socket = connect(nobody(), 1);
    let error = socket.send_blocking(&vec![0; 1 << 20]).unwrap_err();
    assert!(matches!(Error::of(&error), Some(Error::Send(_))), "{error:?}");
    let listener = listener(kcp::PeersConfig::default());
    let taken = kcp::Listener::bind(listener.local_addr().unwrap(), &kcp::PeersConfig::default());
    assert_eq!(taken.unwrap_err().kind(), ErrorKind::AddrInUse);
    let error = kcp::Socket::connect("127.0.0.1:99999", Conv(1), &configs::classic_fast()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
}

#[test]
fn drivers_may_be_moved_to_other_threads_and_shared_by_reference() {
    fn is<T: Send + Sync>() {}
    is::<whitewater::Server>(); // an engine's world keeps what may be both
    is::<whitewater::Client>();
    is::<kcp::Listener>();
    is::<kcp::Socket>();
}
