//! Sockets and a loop for other KCPs that have none.

use crate::PATIENCE;
use crate::messages::total;
use crate::relay::is_nothing;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A control block of another KCP. It writes its datagrams to the socket that it was made with.
pub trait Control {
    /// Queues a message.
    fn send(&mut self, message: &[u8]);
    /// Returns the next message.
    fn recv(&mut self) -> Option<Vec<u8>>;
    /// Takes a datagram.
    fn input(&mut self, datagram: &[u8]);
    /// Call it at least once per interval. `now`: ms since the conversation began.
    fn update(&mut self, now: u32);
}

/// Sends all messages and collects the echo until it has as many bytes.
///
/// # Panics
///
/// If that takes too long.
#[must_use]
pub fn ask<C: Control>(
    server: SocketAddr,
    make: impl FnOnce(UdpSocket) -> C,
    messages: &[Vec<u8>],
) -> Vec<Vec<u8>> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.connect(server).unwrap();
    let mut end = End::new(socket, make);
    messages.iter().for_each(|message| end.control.send(message));
    let mut back = Vec::new();
    let mut left = total(messages);
    while left > 0 {
        end.turn();
        while let Some(message) = end.control.recv() {
            left = left.saturating_sub(message.len());
            back.push(message);
        }
        assert!(end.start.elapsed() < PATIENCE, "{left} of {} bytes did not come back", total(messages));
    }
    back
}

/// Echoes what its first peer sends, on a thread, until it is dropped.
#[derive(Debug)]
pub struct Echo {
    /// Its address.
    pub address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Echo {
    /// `make` makes a control block that writes to this socket.
    ///
    /// # Panics
    ///
    /// If there is no socket.
    #[must_use]
    pub fn start<C: Control>(make: impl FnOnce(UdpSocket) -> C + Send + 'static) -> Self {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = socket.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let serve = move || {
            socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
            while !stopped.load(Ordering::Relaxed) {
                let Ok((_, from)) = socket.peek_from(&mut [0; 2048]) else { continue };
                socket.connect(from).unwrap();
                let mut end = End::new(socket, make);
                while !stopped.load(Ordering::Relaxed) {
                    end.turn();
                    while let Some(message) = end.control.recv() {
                        end.control.send(&message);
                    }
                }
                return;
            }
        };
        Self { address, stop, thread: Some(thread::spawn(serve)) }
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let served = self.thread.take().map(JoinHandle::join);
        assert!(thread::panicking() || matches!(served, Some(Ok(()))), "their server");
    }
}

/// A control block and its socket.
struct End<C> {
    socket: UdpSocket,
    control: C,
    start: Instant,
}

impl<C: Control> End<C> {
    fn new(socket: UdpSocket, make: impl FnOnce(UdpSocket) -> C) -> Self {
        socket.set_nonblocking(true).unwrap();
        let mut control = make(socket.try_clone().unwrap());
        control.update(0);
        Self { socket, control, start: Instant::now() }
    }

    /// Does everything once, then pauses.
    fn turn(&mut self) {
        let mut buf = [0; 2048];
        loop {
            match self.socket.recv(&mut buf) {
                Ok(len) => self.control.input(&buf[..len]),
                Err(error) if is_nothing(error.kind()) => break,
                Err(error) => panic!("{error}"),
            }
        }
        self.control.update(u32::try_from(self.start.elapsed().as_millis()).unwrap());
        thread::sleep(Duration::from_millis(1));
    }
}

/// A socket to write datagrams to. One that cannot be sent is lost.
#[derive(Debug)]
pub struct Out(pub UdpSocket);

impl Write for Out {
    fn write(&mut self, datagram: &[u8]) -> io::Result<usize> {
        let _ = self.0.send(datagram);
        Ok(datagram.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
