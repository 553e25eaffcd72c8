//! What the tests call, as `src/net/thread/threads.rs` has it for programs.

use super::ThreadConfig;
use super::handle::Handle;
use crate::channel::SendError;
use crate::model::{Model, SessionConfig, Wire};
use crate::net::driver::{Driver, Line, Port};
use crate::net::shards::{Wake, meet};
use bytes::Bytes;
use std::io;
use std::sync::Arc;
use whitewater::{Channel, Event, SessionId};

pub struct Server {
    handle: Handle<Model>,
    shards: u8,
}

impl Server {
    /// A server with a thread for each of these wires.
    pub fn start(wires: &[Arc<Wire>], session: &SessionConfig, config: &ThreadConfig) -> Self {
        let shards = u8::try_from(wires.len()).unwrap();
        let bells = wires.iter().map(|wire| Arc::clone(&wire.bell) as Arc<dyn Wake>);
        let neighbours = meet(bells, Model::handle_own).map(|others| (shards > 1).then_some(others));
        let drivers = (0..).zip(wires).zip(neighbours).map(|((shard, wire), neighbours)| Driver {
            machine: Model::new(shard, session),
            line: Line { port: Port { wire: Arc::clone(wire) }, neighbours },
        });
        Self { handle: Handle::spawn(drivers, config).unwrap(), shards }
    }

    /// The session of this number.
    pub fn id(&self, session: u8) -> SessionId {
        Model::id(session, self.shards)
    }

    /// Waits for the next event; `None`: all threads have ended.
    pub fn event(&mut self) -> Option<(SessionId, Event)> {
        self.handle
            .poll(None)
            .then(|| self.handle.poll_event())
            .flatten()
            .and_then(|(id, event)| Some((id?, event)))
    }

    pub fn send(&mut self, id: SessionId, channel: Channel, message: &[u8]) -> Result<(), SendError> {
        self.handle.send(Some(id), channel, message)
    }

    pub fn recv(&mut self, id: SessionId, channel: Channel) -> Option<Bytes> {
        self.handle.recv(Some(id), channel)
    }

    pub fn close(&mut self, id: SessionId, code: u16) {
        self.handle.close(Some(id), code, "");
    }

    pub fn kick(&mut self, id: SessionId, code: u16) {
        self.handle.kick(Some(id), code, "");
    }

    /// Runs something on the thread of a session.
    pub fn run_at(&mut self, id: SessionId, run: impl FnOnce() + Send + 'static) -> bool {
        self.handle.run_at(Some(id), move |_| run())
    }

    pub fn shutdown(mut self) -> io::Result<()> {
        self.handle.shutdown(0)
    }
}
