//! An echo server on loopback, in its own thread.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use whitewater::session::{self, ServerStats};
use whitewater::{Channel, Event, Server, ServerConfig, SessionConfig, SessionId};
use whitewater_sim::SimRng;

/// What comes on it goes back on it.
const ECHOED: Channel = Channel::ordered(0);

/// Served until it is dropped: then it is gone without a word.
pub(crate) struct Echo {
    pub(crate) address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<Server>>,
}

impl Echo {
    /// `answer` makes the answer to an unreliable datagram; `None` closes the session with the code 7.
    pub(crate) fn start(mut server: Server, answer: Answer) -> Self {
        let address = server.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let serve = move || {
            while !stopped.load(Ordering::Relaxed) {
                server.poll(Some(Duration::from_millis(5))).unwrap();
                while let Some((id, event)) = server.poll_event() {
                    if event == Event::Readable {
                        echo(&mut server, id, answer);
                    }
                }
            }
            server
        };
        Self { address, stop, thread: Some(thread::spawn(serve)) }
    }

    /// Closes all sessions with this code.
    pub(crate) fn shut_down(mut self, code: u16) -> ServerStats {
        let mut server = self.stop().unwrap();
        server.shutdown(code).unwrap();
        server.stats()
    }

    fn stop(&mut self) -> Option<Server> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take()?.join().ok()
    }
}

pub(crate) type Answer = fn(&Server, SessionId, &[u8]) -> Option<Vec<u8>>;

impl Drop for Echo {
    fn drop(&mut self) {
        let is_running = self.thread.is_some();
        let mut stopped = self.stop();
        if let Some(server) = &mut stopped {
            // A server that has forgotten its sessions says goodbye to none.
            let forgetful = ServerConfig::insecure(SessionConfig::default());
            *server.machine_mut() = session::Server::new(&forgetful, SimRng::new(1, 1)).unwrap();
        }
        assert!(!is_running || stopped.is_some() || thread::panicking(), "the server");
    }
}

fn echo(server: &mut Server, id: SessionId, answer: Answer) {
    let mut buf = vec![0; 1 << 16];
    while let Ok(len) = server.recv_datagram_into(id, &mut buf) {
        match answer(server, id, &buf[..len]) {
            Some(answer) => drop(server.send_datagram(id, &answer).unwrap()),
            None => server.close(id, 7),
        }
    }
    while let Ok(len) = server.recv_into(id, ECHOED, &mut buf) {
        server.send(id, ECHOED, &buf[..len]).unwrap();
    }
}
