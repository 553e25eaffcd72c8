//! Several servers on one port behind as many threads, and one queue of what comes.

use super::handle::Handle;
use super::outbox::Outgoing;
use super::worker::Parcel;
use super::{Incoming, NotSent, ThreadConfig, Way};
use crate::message::Message;
use crate::net::Server;
use crate::session::{self, Blob, ServerConfig, SessionId};
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// The servers of [`Server::bind_shards`] on a thread each, as one [`ServerThread`](super::ServerThread): what happens in any of them comes
/// out here, and a session is found by its id wherever it is.
///
/// ```no_run
/// use std::time::Duration;
/// use whitewater::net::{Incoming, Server, ServerThreads, ThreadConfig};
/// use whitewater::session::{Blob, ServerConfig};
///
/// let threads = std::thread::available_parallelism()?.get().min(64);
/// let shards = Server::<Blob>::bind_shards("0.0.0.0:4000", &ServerConfig::insecure(), threads)?;
/// let mut server = ServerThreads::spawn(shards, &ThreadConfig::default())?;
/// while let Some((id, incoming)) = server.recv(Duration::MAX) {
///     if let Incoming::Message { lane, bytes } = incoming {
///         let _ = server.send(id, lane, &bytes); // an error is of this client, and must not end the server
///     }
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// The limits of the [`ThreadConfig`] are of each thread. Dropped, it ends all sessions and waits for that.
#[derive(Debug)]
pub struct ServerThreads<M: Message + Send + 'static = Blob> {
    /// By shard.
    shards: Vec<Handle<session::Server<M>>>,
    parcels: Receiver<Parcel<session::Server<M>>>,
}

impl<M: Message + Send + 'static> ServerThreads<M> {
    /// Servers on `addr`, each on a new thread: see [`Server::bind_shards`].
    ///
    /// # Errors
    ///
    /// Those of [`Server::bind_shards`] and of [`spawn`](Self::spawn).
    pub fn bind(
        addr: impl ToSocketAddrs,
        server: &ServerConfig,
        count: usize,
        config: &ThreadConfig,
    ) -> io::Result<Self> {
        Self::spawn(Server::bind_shards(addr, server, count)?, config)
    }

    /// Takes all of what [`Server::bind_shards`] has made, in its order.
    ///
    /// # Errors
    ///
    /// There is none, or the system gives no thread, or does not know a socket's address.
    pub fn spawn(servers: Vec<Server<M>>, config: &ThreadConfig) -> io::Result<Self> {
        if servers.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no server to spawn"));
        }
        let (gives, parcels) = channel();
        let spawn = |server| Handle::spawn_for(server, config, gives.clone());
        let shards = servers.into_iter().map(spawn).collect::<io::Result<_>>()?;
        Ok(Self { shards, parcels })
    }

    /// Takes the next event, message or datagram of any session. What is of one session comes in order.
    pub fn try_recv(&mut self) -> Option<(SessionId, Incoming<M>)> {
        let parcel = self.parcels.try_recv().ok()?;
        self.open(parcel)
    }

    /// The same, and waits for one, at most for `timeout`; at once `None` when all threads have ended.
    pub fn recv(&mut self, timeout: Duration) -> Option<(SessionId, Incoming<M>)> {
        let parcel = self.parcels.recv_timeout(timeout).ok()?;
        self.open(parcel)
    }

    /// Bytes that may be sent to a session now, see [`ServerThread::room`](super::ServerThread::room).
    #[must_use]
    pub fn room(&self, id: SessionId, way: Way) -> usize {
        self.shards.get(usize::from(id.shard())).map_or(0, |shard| shard.room(id, way))
    }

    /// Sends a message on a reliable lane.
    ///
    /// # Errors
    ///
    /// Enough waits already, or there is no such session.
    pub fn send(&mut self, id: SessionId, lane: usize, message: &[u8]) -> Result<(), NotSent> {
        self.shard(id)?.send(id, Outgoing::Lane(lane, message.to_vec()))
    }

    /// Sends an unreliable datagram.
    ///
    /// # Errors
    ///
    /// Enough waits already, or there is no such session.
    pub fn send_datagram(&mut self, id: SessionId, datagram: &[u8]) -> Result<(), NotSent> {
        self.shard(id)?.send(id, Outgoing::Datagram(datagram.to_vec()))
    }

    /// Sends a message of a channel.
    ///
    /// # Errors
    ///
    /// Enough waits already, or there is no such session.
    pub fn send_message(&mut self, id: SessionId, channel: usize, message: M) -> Result<(), NotSent> {
        self.shard(id)?.send(id, Outgoing::Message(channel, message))
    }

    /// Sends a block of a channel.
    ///
    /// # Errors
    ///
    /// Enough waits already, or there is no such session.
    pub fn send_block(&mut self, id: SessionId, channel: usize, block: &[u8]) -> Result<(), NotSent> {
        self.shard(id)?.send(id, Outgoing::Block(channel, block.to_vec()))
    }

    /// Ends a session, see [`ServerThread::close`](super::ServerThread::close).
    pub fn close(&mut self, id: SessionId, code: u16) {
        if let Ok(shard) = self.shard(id) {
            shard.close(id, code);
        }
    }

    /// Has the thread of that shard do something with its server, between two pumps: keep it short.
    ///
    /// # Errors
    ///
    /// A thousand of them wait already, or there is no such shard, or its thread has ended.
    pub fn run(
        &mut self,
        shard: usize,
        run: impl FnOnce(&mut Server<M>) + Send + 'static,
    ) -> Result<(), NotSent> {
        self.shards.get(shard).ok_or(NotSent::Gone)?.run(run)
    }

    /// How many shards there are.
    #[must_use]
    pub const fn shards(&self) -> usize {
        self.shards.len()
    }

    /// The address that all of them are bound to.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        let unspecified = SocketAddr::from(([0; 4], 0));
        self.shards.first().map_or(unspecified, Handle::local_addr) // there is one
    }

    /// Whether a thread has ended: its socket has failed, which [`shutdown`](Self::shutdown) tells. The others go on.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.shards.iter().any(Handle::is_finished)
    }

    /// Ends all sessions when what was sent has arrived, then the threads, and waits for that: at most twice `drain` and 2 s. What comes
    /// meanwhile is dropped.
    ///
    /// # Errors
    ///
    /// A socket has failed, or what a thread was given to [`run`](Self::run) has panicked.
    pub fn shutdown(mut self, code: u16) -> io::Result<()> {
        self.shards.iter().for_each(|shard| shard.begin_shutdown(code));
        let ended = self.shards.iter_mut().map(|shard| shard.shutdown(code));
        ended.fold(Ok(()), io::Result::and)
    }

    fn shard(&mut self, id: SessionId) -> Result<&mut Handle<session::Server<M>>, NotSent> {
        self.shards.get_mut(usize::from(id.shard())).ok_or(NotSent::Gone)
    }

    fn open(&mut self, parcel: Parcel<session::Server<M>>) -> Option<(SessionId, Incoming<M>)> {
        let shard = self.shards.get_mut(usize::from(parcel.id.shard()))?;
        Some(shard.open(parcel))
    }
}

impl<M: Message + Send + 'static> Drop for ServerThreads<M> {
    /// All begin to end before one is waited for.
    fn drop(&mut self) {
        self.shards.iter().for_each(|shard| shard.begin_shutdown(0));
    }
}
