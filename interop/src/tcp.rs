//! TCP at the ends of a tunnel.

use crate::PATIENCE;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Echoes connections one after the other, on a thread, until it is dropped.
#[derive(Debug)]
pub struct Echo {
    /// Its address.
    pub address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Echo {
    /// Starts it on a port of its own.
    ///
    /// # Panics
    ///
    /// If there is no socket.
    #[must_use]
    pub fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                echo(&stream.unwrap(), &stopped);
            }
        });
        Self { address, stop, thread: Some(thread) }
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address); // it waits for a connection
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn echo(mut stream: &TcpStream, stop: &AtomicBool) {
    stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let mut buf = [0; 1 << 14];
    while !stop.load(Ordering::Relaxed) {
        match stream.read(&mut buf) {
            Ok(len @ 1..) if stream.write_all(&buf[..len]).is_ok() => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            _ => return,
        }
    }
}

/// Sends these bytes and returns as many bytes of the answer.
///
/// # Panics
///
/// If that takes too long.
#[must_use]
pub fn ask(server: SocketAddr, sent: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(server).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    let mut back = vec![0; sent.len()];
    thread::scope(|scope| {
        let mut out = stream.try_clone().unwrap();
        scope.spawn(move || out.write_all(sent).unwrap());
        if let Err(error) = stream.read_exact(&mut back) {
            let _ = stream.shutdown(Shutdown::Both); // otherwise the other end would keep waiting
            panic!("not all of it came back: {error}");
        }
    });
    back
}
