//! The program's handle to a thread, or to the threads of all shards of a server.

use super::ThreadConfig;
use super::inbox::Inbox;
use super::outbox::Outgoing;
use super::shared::{Counts, Shared};
use super::worker::{Command, Parcel, Tell, What, Worker};
use crate::channel::{AnyChannel, Channel, ChannelError, ChannelKind, RecvError, SendError, cure};
use crate::message::pack::Payload;
use crate::net::driver::Driver;
use crate::net::end::{End, Id};
use crate::net::sync::mpsc::{Receiver, Sender, channel};
use crate::net::sync::thread::{Builder, JoinHandle};
use crate::session::{DATAGRAMS, Event, SessionConfig, SessionId};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io;
use std::mem::replace;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

/// One or more threads, each with a server or a client, and one queue of what they report. Dropping it ends the
/// sessions and the threads.
pub(super) struct Handle<E: End> {
    /// One per shard, at least one.
    pub(super) threads: Vec<Thread<E>>,
    parcels: Receiver<Parcel>,
    config: SessionConfig,
    sessions: BTreeMap<Id, Known>,
    /// Each with its cost, bytes, until it is taken.
    events: VecDeque<(Id, Event, usize)>,
    /// Whether the client was closed. If its session comes up later, it is not open.
    is_given_up: bool,
    /// The server's session whose end was reported last. It is removed with the next event.
    ended: Option<SessionId>,
    pub(super) local_addr: SocketAddr,
}

/// A session as the program sees it, once it is up.
struct Known {
    counts: Arc<Counts>,
    /// Whether it accepts messages.
    is_open: bool,
    inbox: Inbox,
    peer: SocketAddr,
}

/// A packed message that a session may send.
#[derive(Clone, Copy)]
pub(super) struct Packed<'a> {
    handle: AnyChannel,
    bytes: &'a [u8],
    bits: usize,
}

pub(super) struct Thread<E: End> {
    commands: Sender<Command<E>>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl<E: End> Handle<E> {
    pub(super) fn spawn(
        ends: impl IntoIterator<Item = Driver<E>>,
        config: &ThreadConfig,
    ) -> io::Result<Self> {
        let (gives, parcels) = channel();
        let mut local_addr = SocketAddr::from(([0; 4], 0));
        let mut session = SessionConfig::default();
        let mut threads = Vec::new();
        for mut end in ends {
            local_addr = end.local_addr()?;
            session.clone_from(end.machine.config());
            let (commands, takes) = channel();
            let shared = Arc::new(Shared::new(end.line.port.bell()?, *config));
            let worker =
                Worker::new(end, takes, Tell { parcels: gives.clone(), shared: Arc::clone(&shared) });
            let thread = Some(Builder::new().name("whitewater".to_owned()).spawn(|| worker.run())?);
            threads.push(Thread { commands, shared, thread });
        }
        let (sessions, events) = (BTreeMap::new(), VecDeque::new());
        Ok(Self {
            threads,
            parcels,
            config: session,
            sessions,
            events,
            is_given_up: false,
            ended: None,
            local_addr,
        })
    }

    /// Takes what the threads have reported. If there is no event, waits for one, for at most `timeout`. Returns
    /// whether there are events.
    pub(super) fn poll(&mut self, timeout: Option<Duration>) -> bool {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            while let Ok(parcel) = self.parcels.try_recv() {
                self.take(parcel);
            }
            if !self.events.is_empty() {
                return true;
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let parcel = match left {
                Some(left) => self.parcels.recv_timeout(left).ok(),
                None => self.parcels.recv().ok(),
            };
            let Some(parcel) = parcel else { return false };
            self.take(parcel);
        }
    }

    pub(super) fn poll_event(&mut self) -> Option<(Id, Event)> {
        if let Some(ended) = self.ended.take()
            && let Some(mut known) = self.sessions.remove(&Some(ended))
        {
            let thread = self.of(Some(ended));
            known.inbox.clear(|way, cost| {
                thread.into_iter().for_each(|thread| known.counts.taken(&thread.shared, way, cost))
            });
        }
        if self.events.is_empty() {
            self.poll(Some(Duration::ZERO));
        }
        let (id, event, cost) = self.events.pop_front()?;
        self.heard(id, cost); // at once: else a program that waits for the next event would wait for itself
        if let (Some(id), Event::Closed { .. }) = (id, event) {
            self.ended = Some(id);
        }
        if event == Event::Readable
            && let Some(known) = self.sessions.get_mut(&id)
        {
            known.inbox.on_told();
        }
        Some((id, event))
    }

    fn take(&mut self, Parcel { id, what, cost, counts, peer }: Parcel) {
        if let (Some(counts), Some(peer)) = (counts, peer) {
            self.sessions
                .insert(id, Known { counts, is_open: !self.is_given_up, inbox: Inbox::default(), peer });
        }
        let known = self.sessions.get_mut(&id);
        match (what, known) {
            (What::Message(channel, message), Some(known)) => {
                if known.inbox.push(channel, message, cost) {
                    self.events.push_back((id, Event::Readable, 0));
                }
            }
            (What::Message(..), None) => {} // no message comes before the session is up
            (What::Event(mut event), mut known) => {
                if let (Some(known), Some(peer)) = (&mut known, peer) {
                    known.peer = peer;
                }
                if let (Event::Closed { undelivered, .. }, Some(known)) = (&mut event, known) {
                    known.is_open = false;
                    let (messages, datagrams) = known.counts.untaken();
                    undelivered.messages += messages;
                    undelivered.datagrams += datagrams;
                }
                self.events.push_back((id, event, cost));
            }
        }
    }

    /// Notes that the program has taken an event of this cost.
    fn heard(&self, id: Id, cost: usize) {
        if let Some(thread) = self.of(id) {
            thread.shared.heard(cost);
        }
    }

    fn pop(&mut self, id: Id, channel: u8) -> Option<Bytes> {
        let known = self.sessions.get_mut(&id)?;
        let (message, cost) = known.inbox.pop(channel)?;
        let counts = Arc::clone(&known.counts);
        counts.taken(&self.of(id)?.shared, channel, cost);
        Some(message)
    }

    pub(super) fn recv<P: Payload + ?Sized>(&mut self, id: Id, channel: Channel<P>) -> Option<P::Received> {
        self.check(channel.into()).inspect_err(|error| log::error!("recv: {error}")).ok()?;
        let message = P::unpack_owned(self.pop(id, channel.number())?);
        let refuse = |error| self.of(id).map(|thread| thread.command(Command::Refuse(id, error)));
        message.map_err(refuse).ok()
    }

    pub(super) fn recv_into(&mut self, id: Id, channel: Channel, buf: &mut [u8]) -> Result<usize, RecvError> {
        self.check(channel.into())?;
        self.pop_into(id, channel.number(), buf)
    }

    pub(super) fn recv_datagram(&mut self, id: Id) -> Option<Bytes> {
        self.pop(id, DATAGRAMS)
    }

    pub(super) fn recv_datagram_into(&mut self, id: Id, buf: &mut [u8]) -> Result<usize, RecvError> {
        self.pop_into(id, DATAGRAMS, buf)
    }

    fn pop_into(&mut self, id: Id, channel: u8, buf: &mut [u8]) -> Result<usize, RecvError> {
        let next = self.sessions.get(&id).and_then(|known| known.inbox.next_len(channel));
        let (have, need) = (buf.len(), next.ok_or(RecvError::Empty)?);
        let room = buf.get_mut(..need).ok_or(RecvError::BufferTooSmall { have, need })?;
        room.copy_from_slice(&self.pop(id, channel).ok_or(RecvError::Empty)?);
        Ok(need)
    }

    pub(super) fn send<P: Payload + ?Sized>(
        &self,
        id: Id,
        channel: Channel<P>,
        message: &P::Sent,
    ) -> Result<(), SendError> {
        let mut spare = Vec::new();
        self.send_packed(id, self.pack(channel, message, &mut spare)?)
    }

    /// Packs a message, if a session with these channels may send it.
    pub(super) fn pack<'a, P: Payload + ?Sized>(
        &self,
        channel: Channel<P>,
        message: &'a P::Sent,
        spare: &'a mut Vec<u8>,
    ) -> Result<Packed<'a>, SendError> {
        let handle = AnyChannel::from(channel);
        self.check(handle)?;
        let (bytes, bits) = P::pack(message, spare)?;
        let config = self.config.channels.get(usize::from(channel.number()));
        let (len, max) = (bytes.len(), config.map_or(0, |config| config.max_message as usize));
        if len > max && channel.kind() != ChannelKind::Stream {
            return Err(SendError::TooLong { channel: channel.number(), len, max, cure: cure::MAX_MESSAGE });
        }
        Ok(Packed { handle, bytes, bits })
    }

    pub(super) fn send_packed(
        &self,
        id: Id,
        Packed { handle, bytes, bits }: Packed<'_>,
    ) -> Result<(), SendError> {
        self.push(id, Outgoing { channel: Some(handle), bytes: bytes.to_vec(), bits })
    }

    pub(super) fn send_datagram(&self, id: Id, datagram: &[u8]) -> Result<(), SendError> {
        let (len, max) = (datagram.len(), self.config.datagram_max_here());
        if len > max {
            return Err(SendError::TooLong { channel: DATAGRAMS, len, max, cure: cure::RELIABLE });
        }
        self.push(id, Outgoing { channel: None, bytes: datagram.to_vec(), bits: 8 * len })
    }

    fn push(&self, id: Id, outgoing: Outgoing) -> Result<(), SendError> {
        let none = if id.is_some() { SendError::Closed } else { SendError::NotConnected };
        let known = self.sessions.get(&id).ok_or(none)?;
        let (thread, way) = (self.of(id).ok_or(SendError::Closed)?, outgoing.way());
        if !known.is_open {
            return Err(SendError::Closed);
        }
        if !known.counts.send(way, outgoing.cost()) {
            return Err(SendError::Full { channel: way });
        }
        if thread.command(Command::Send(id, outgoing)) { Ok(()) } else { Err(SendError::Closed) }
    }

    fn check(&self, handle: AnyChannel) -> Result<(), ChannelError> {
        let channels = &self.config.channels;
        let missing = ChannelError::Missing { number: handle.number(), count: channels.len() };
        let there = channels.get(usize::from(handle.number())).ok_or(missing)?.channel;
        if there == handle { Ok(()) } else { Err(ChannelError::Wrong { handle, there }) }
    }

    /// Closes a session or an attempt to connect, unless it was closed before.
    pub(super) fn close(&mut self, id: Id, code: u16, text: &str) {
        let was_open = self.sessions.get_mut(&id).is_none_or(|known| replace(&mut known.is_open, false));
        self.is_given_up |= id.is_none();
        if was_open && let Some(thread) = self.of(id) {
            thread.command(Command::Close(id, code, text.into())); // fails only if all sessions are over
        }
    }

    pub(super) fn kick(&mut self, id: Id, code: u16, text: &str) {
        self.sessions.get_mut(&id).into_iter().for_each(|known| known.is_open = false);
        self.is_given_up |= id.is_none();
        if let Some(thread) = self.of(id) {
            thread.command(Command::Kick(id, code, text.into())); // fails only if all sessions are over
        }
    }

    pub(super) fn is_open(&self, id: Id) -> bool {
        self.sessions.get(&id).is_some_and(|known| known.is_open)
    }

    pub(super) fn peer_addr(&self, id: Id) -> Option<SocketAddr> {
        self.sessions.get(&id).map(|known| known.peer)
    }

    pub(super) fn user(&self, id: Id) -> &[u8] {
        self.sessions.get(&id).map_or(&[], |known| &known.counts.user)
    }

    pub(super) fn ticket(&self, id: Id) -> &[u8] {
        self.sessions.get(&id).map_or(&[], |known| &known.counts.ticket)
    }

    pub(super) fn close_text(&self, id: Id) -> &str {
        self.sessions.get(&id).and_then(|known| known.counts.close_text.get()).map_or("", |text| text)
    }

    /// The sessions that are up.
    pub(super) fn ids(&self) -> impl Iterator<Item = Id> {
        self.sessions.iter().filter(|(_, known)| known.is_open).map(|(id, _)| *id)
    }

    /// Runs a closure on the thread of a session. Returns whether the thread was told.
    pub(super) fn run_at(&self, id: Id, run: impl FnOnce(&mut Driver<E>) + Send + 'static) -> bool {
        self.of(id).is_some_and(|thread| Self::run_on(thread, run))
    }

    /// The same, by the number of the thread.
    pub(super) fn run(&self, shard: usize, run: impl FnOnce(&mut Driver<E>) + Send + 'static) -> bool {
        self.threads.get(shard).is_some_and(|thread| Self::run_on(thread, run))
    }

    fn run_on(thread: &Thread<E>, run: impl FnOnce(&mut Driver<E>) + Send + 'static) -> bool {
        if thread.shared.runs.load(SeqCst) >= RUNS {
            return false;
        }
        thread.shared.runs.fetch_add(1, SeqCst);
        thread.command(Command::Run(Box::new(run)))
    }

    pub(super) fn is_finished(&self) -> bool {
        self.threads.iter().any(|thread| thread.thread.as_ref().is_none_or(JoinHandle::is_finished))
    }

    /// Ends all sessions and then the threads, and waits for them. All threads are told before the first is waited
    /// for.
    pub(super) fn shutdown(&mut self, code: u16) -> io::Result<()> {
        for thread in &self.threads {
            thread.command(Command::Shutdown(code)); // fails only if the thread has ended by itself
        }
        let ended = self.threads.iter_mut().filter_map(|thread| thread.thread.take()).map(|thread| {
            thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread of the sessions panicked")))
        });
        ended.fold(Ok(()), io::Result::and)
    }

    fn of(&self, id: Id) -> Option<&Thread<E>> {
        let shard = id.map_or(0, |id| id.shard().into());
        self.threads.get(if self.threads.len() == 1 { 0 } else { shard })
    }
}

impl<E: End> Thread<E> {
    /// Returns whether the thread still runs.
    fn command(&self, command: Command<E>) -> bool {
        let is_there = self.commands.send(command).is_ok();
        self.shared.wake();
        is_there
    }
}

impl<E: End> fmt::Debug for Handle<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("local_addr", &self.local_addr).finish_non_exhaustive()
    }
}

impl<E: End> Drop for Handle<E> {
    fn drop(&mut self) {
        if let Err(error) = self.shutdown(0) {
            log::warn!("the thread of the sessions ended early: {error}");
        }
    }
}

const RUNS: usize = 1024;
