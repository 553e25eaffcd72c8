//! A server that sends everything back.

use crate::players::CHAT;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use whitewater::{Event, Server, ServerConfig};
use whitewater_web::{Browsers, Web, WebConfig, listen};

/// Echoes messages and datagrams on a thread, and notes the addresses of who has joined.
pub(crate) struct Echo {
    pub(crate) at: SocketAddr,
    pub(crate) joined: Arc<Mutex<Vec<SocketAddr>>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Server>>,
}

impl Echo {
    pub(crate) fn new(config: &ServerConfig, browsers: Browsers) -> Self {
        let mut server = Server::bind("127.0.0.1:0", config).unwrap();
        server.attach(browsers).unwrap();
        let (joined, is_over) = (Arc::<Mutex<Vec<_>>>::default(), Arc::new(AtomicBool::new(false)));
        let (at, notes, ends) = (server.local_addr().unwrap(), Arc::clone(&joined), Arc::clone(&is_over));
        let thread = std::thread::spawn(move || {
            while !ends.load(Relaxed) {
                server.poll(Some(Duration::from_millis(20))).unwrap();
                while let Some((id, event)) = server.poll_event() {
                    match event {
                        Event::Connected => notes.lock().unwrap().push(server.peer_addr(id).unwrap()),
                        Event::Readable => {
                            while let Some(message) = server.recv(id, CHAT) {
                                server.send(id, CHAT, &message).unwrap();
                            }
                            while let Some(datagram) = server.recv_datagram(id) {
                                let _ = server.send_datagram(id, &datagram); // it may be lost
                            }
                        }
                        _ => {}
                    }
                }
                server.flush();
            }
            server
        });
        Self { at, joined, is_over, thread: Some(thread) }
    }

    pub(crate) fn end(&mut self) -> Server {
        self.is_over.store(true, Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

/// Waits until that is so, at most 20 s.
pub(crate) fn until(is_so: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < end, "in vain");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub(crate) fn start(config: &ServerConfig, web: &WebConfig) -> (Echo, Web, Runtime) {
    let (web, browsers) = listen(web).unwrap();
    (Echo::new(config, browsers), web, Runtime::new().unwrap())
}
