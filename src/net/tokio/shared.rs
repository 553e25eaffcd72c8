//! What the driver task of a socket shares with the handles of its sessions.
//!
//! There is one mutex per socket. It is held for calls that neither wait nor touch a socket, some tens of
//! nanoseconds each, or for one batch of datagrams. A queue per session would cost a copy and an allocation
//! per message, and would hide from a writer how full the channel is. Whoever changes something wakes the
//! driver, which is polled once for all of them; whoever waits leaves a waker.

use super::super::clock::Clock;
use super::super::error::Error;
use super::super::tally::{SocketStats, SocketTraffic};
use super::super::transport::{Beside, Transport};
use super::core::{Core, Member as _, Notice};
use super::driver::Socket;
use super::waiting::{For, Waiting};
use crate::channel::RecvError;
use crate::hash::Given;
use crate::session::{CloseReason, Event};
use crate::time::Time;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use whitewater_udp::Port;

pub(super) struct Shared<C: Core> {
    state: Mutex<State<C>>,
    pub(super) clock: Clock,
    /// The application has said that the network has changed, and the driver has not handled it yet.
    pub(super) path_changed: AtomicBool,
}

pub(super) struct State<C: Core> {
    pub(super) core: C,
    /// The sessions as their users see them.
    pub(super) waiting: HashMap<C::Id, Waiting<C::Member>, Given>,
    /// Sessions that have connected and were not accepted yet.
    incoming: VecDeque<C::Id>,
    /// Clients that ask to join and that no task has taken yet, and the tasks that wait for one.
    asking: VecDeque<C::Id>,
    askers: Vec<Waker>,
    /// Tasks that wait for a session to accept.
    acceptors: Vec<Waker>,
    /// Tasks that wait for the last session to end.
    finishers: Vec<Waker>,
    /// Number of handles of any kind. Without any, the driver ends when there is nothing left to do.
    owners: usize,
    /// Whether new sessions are kept for an acceptor; otherwise they are released.
    pub(super) is_accepting: bool,
    /// The code of a shutdown: there will be no more sessions.
    ended: Option<u16>,
    /// The waker of the driver while it sleeps.
    pub(super) driver: Option<Waker>,
    /// A transport that the driver has not taken yet.
    pub(super) attached: Option<Beside>,
    /// The port of the second network, or that there is none any longer, if the driver does not know yet.
    pub(super) second: Option<Option<Port<Socket>>>,
    /// Sessions with tasks that wait for room behind one that was woken. They must be woken if that one does
    /// not run.
    pub(super) behind: Vec<C::Id>,
    /// The task whose turn it is to send, to be woken once the mutex is free.
    next: Option<Waker>,
    failed: Option<(io::ErrorKind, String)>,
    pub(super) local_addr: SocketAddr,
    pub(super) socket_stats: SocketStats,
    pub(super) socket_traffic: SocketTraffic,
}

impl<C: Core> Shared<C> {
    pub(super) fn new(core: C, clock: Clock, local_addr: SocketAddr, is_accepting: bool) -> Arc<Self> {
        let state = State {
            core,
            waiting: HashMap::default(),
            incoming: VecDeque::new(),
            asking: VecDeque::new(),
            askers: Vec::new(),
            acceptors: Vec::new(),
            finishers: Vec::new(),
            owners: 0,
            is_accepting,
            ended: None,
            driver: None,
            attached: None,
            second: None,
            behind: Vec::new(),
            next: None,
            failed: None,
            local_addr,
            socket_stats: SocketStats::default(),
            socket_traffic: SocketTraffic::default(),
        };
        Arc::new(Self { state: Mutex::new(state), clock, path_changed: AtomicBool::new(false) })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State<C>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the driver a transport.
    pub(super) fn attach(&self, transport: impl Transport + 'static) {
        self.change(|state| state.attached = Some(Beside::new(transport)));
    }

    /// Changes something and makes the driver handle it.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut State<C>) -> T) -> T {
        let mut state = self.lock();
        let result = change(&mut state);
        let driver = state.driver.take();
        drop(state);
        if let Some(driver) = driver {
            driver.wake();
        }
        result
    }

    /// The same for a task that may have to wait: the driver is woken only if something was done.
    pub(super) fn poll<T>(&self, poll: impl FnOnce(&mut State<C>) -> Poll<T>) -> Poll<T> {
        let mut state = self.lock();
        let result = poll(&mut state);
        let driver = if result.is_ready() { state.driver.take() } else { None };
        let next = state.next.take();
        drop(state);
        driver.into_iter().chain(next).for_each(Waker::wake);
        result
    }
}

impl<C: Core> fmt::Debug for Shared<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("local_addr", &self.lock().local_addr).finish_non_exhaustive()
    }
}

impl<C: Core> State<C> {
    /// Passes on all events. Wakers to be called once the mutex is free are left in `woken`.
    pub(super) fn tell(&mut self, now: Time, woken: &mut Vec<Waker>) {
        while let Some((id, notice)) = self.core.poll_notice() {
            let Self { core, waiting, .. } = self;
            let known = waiting.get_mut(&id);
            match (notice, known) {
                (Notice::Event(Event::Connected), None) if !self.is_accepting => core.release(now, id),
                (Notice::Event(Event::Connected), None) => {
                    waiting.insert(id, Waiting::new());
                    self.incoming.push_back(id);
                    woken.append(&mut self.acceptors);
                }
                (Notice::Event(Event::Connected), Some(known)) => {
                    known.is_up = true;
                    known.wake(woken, |what| what == For::Event)
                }
                (Notice::Event(Event::Readable), Some(known)) => known.wake(woken, |what| match what {
                    For::Recv(channel) => core.member(id).is_some_and(|member| member.is_readable(channel)),
                    what => what == For::Datagram,
                }),
                (Notice::Event(Event::Writable), Some(known)) => {
                    known.wake(woken, |what| what == For::Delivered);
                    if known.wake_senders(woken) {
                        self.behind.push(id);
                    }
                }
                (Notice::Event(Event::Requested), None) if !self.is_accepting => core.release(now, id),
                (Notice::Event(Event::Requested), None) => {
                    self.asking.push_back(id);
                    woken.append(&mut self.askers);
                }
                (Notice::Event(event), Some(known)) => {
                    known.tell(event);
                    known.wake(woken, |what| what == For::Event);
                }
                (Notice::Closed(_), Some(Waiting { handles: 0, .. }))
                    if self.incoming.len() > C::ENDED_MAX =>
                {
                    waiting.remove(&id);
                    self.incoming.retain(|incoming| *incoming != id);
                }
                (Notice::Closed(closed), Some(known)) => {
                    known.closed = Some(closed);
                    known.wake(woken, |_| true);
                }
                (Notice::Closed(_), None) => self.asking.retain(|asking| *asking != id), // nobody answered it
                (_, None) => {}
            }
        }
        if !self.finishers.is_empty() && self.core.is_idle() {
            woken.append(&mut self.finishers);
        }
    }

    /// Notes that the socket has failed: nothing is sent any more, and every waiting task is woken.
    pub(super) fn fail(&mut self, error: &io::Error, woken: &mut Vec<Waker>) {
        self.failed = Some((error.kind(), error.to_string()));
        self.waiting.values_mut().for_each(|waiting| waiting.wake(woken, |_| true));
        woken.append(&mut self.askers);
        woken.append(&mut self.acceptors);
        woken.append(&mut self.finishers);
    }

    /// Whether the driver has nothing left to do, now or ever.
    pub(super) fn is_over(&self) -> bool {
        self.owners == 0 && self.core.is_idle()
    }

    /// Notes that a task has sent something on a channel.
    pub(super) fn sent(&mut self, id: C::Id, channel: u8, cx: &Context<'_>) {
        self.next = self.waiting.get_mut(&id).and_then(|waiting| waiting.sent(channel, cx.waker()));
        if self.next.is_some() {
            self.behind.push(id); // there may be others behind that one
        }
    }

    /// The tasks that were woken have had their turn: if one has not run, wakes those behind it as well.
    pub(super) fn wake_rest(&mut self, woken: &mut Vec<Waker>) {
        for id in self.behind.drain(..) {
            if let Some(known) = self.waiting.get_mut(&id) {
                known.wake_rest(woken);
            }
        }
    }

    /// The session to read from; if it is over, what is left of it.
    pub(super) fn source(&mut self, id: C::Id) -> Option<&mut C::Member> {
        let Self { core, waiting, .. } = self;
        core.member(id).or_else(|| waiting.get_mut(&id)?.closed.as_mut()?.ended.as_deref_mut())
    }

    /// Registers a task to be woken, unless there is nothing to wait for.
    pub(super) fn wait<T>(&mut self, id: C::Id, what: For, cx: &Context<'_>) -> Poll<io::Result<T>> {
        if let Some(error) = self.error(id) {
            return Poll::Ready(Err(error));
        }
        if let Some(waiting) = self.waiting.get_mut(&id) {
            waiting.wait(what, cx.waker());
        }
        Poll::Pending
    }

    /// Why a session is over, or why the socket failed.
    pub(super) fn error(&self, id: C::Id) -> Option<io::Error> {
        let closed = || Some(self.waiting.get(&id)?.closed.as_ref()?.error.clone().into());
        self.failure().or_else(closed)
    }

    /// Releases sessions that were not accepted, and from now on every new one.
    pub(super) fn refuse(&mut self, now: Time) {
        self.is_accepting = false;
        for id in self.incoming.drain(..).chain(self.asking.drain(..)) {
            self.waiting.remove(&id);
            self.core.release(now, id);
        }
    }

    /// Does the same for a shutdown. Returns the tasks to wake that waited for a session or a request.
    pub(super) fn end(&mut self, now: Time, code: u16) -> Vec<Waker> {
        self.refuse(now);
        self.ended = Some(code);
        self.acceptors.drain(..).chain(self.askers.drain(..)).collect()
    }

    /// Why there will be no more sessions, after a shutdown.
    fn ended(&self) -> Option<io::Error> {
        let reason = CloseReason::Local(self.ended?);
        Some(Error::Closed { reason }.into())
    }

    pub(super) fn failure(&self) -> Option<io::Error> {
        self.failed.as_ref().map(|(kind, error)| io::Error::new(*kind, error.clone()))
    }
}

/// A handle to a session. Dropping the last one releases the session.
#[derive(Debug)]
pub(super) struct Handle<C: Core> {
    pub(super) shared: Arc<Shared<C>>,
    pub(super) id: C::Id,
}

impl<C: Core> Handle<C> {
    /// A handle to a session in `state`, whose mutex the caller holds.
    pub(super) fn of(shared: &Arc<Shared<C>>, state: &mut State<C>, id: C::Id) -> Self {
        state.waiting.entry(id).or_insert_with(Waiting::new).handles += 1;
        state.owners += 1;
        Self { shared: Arc::clone(shared), id }
    }

    /// Calls `call` with the session; `None`: it is gone.
    pub(super) fn with<T>(&self, call: impl FnOnce(&mut C::Member) -> T) -> Option<T> {
        self.shared.change(|state| state.core.member(self.id).map(call))
    }

    /// Calls `recv` with the session, or with what is left of it, and waits if there is nothing.
    pub(super) fn poll_recv<T>(
        &self,
        cx: &Context<'_>,
        what: For,
        recv: impl FnOnce(&mut C::Member) -> Result<T, RecvError>,
    ) -> Poll<io::Result<T>> {
        self.shared.poll(|state| {
            let mut has_ended = false;
            let received = state.source(self.id).map_or(Err(RecvError::Empty), |member| {
                let was_up = member.is_up();
                let received = recv(member);
                has_ended = was_up && !member.is_up();
                received
            });
            if has_ended {
                state.next = state.driver.take(); // it tells the peer and the waiting tasks
            }
            match received {
                Ok(received) => Poll::Ready(Ok(received)),
                Err(RecvError::Empty) => state.wait(self.id, what, cx),
                Err(error) => Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidInput, error))),
            }
        })
    }
}

impl<C: Core> Clone for Handle<C> {
    fn clone(&self) -> Self {
        Self::of(&self.shared, &mut self.shared.lock(), self.id)
    }
}

impl<C: Core> Drop for Handle<C> {
    fn drop(&mut self) {
        let now = self.shared.clock.now();
        self.shared.change(|state| {
            state.owners -= 1;
            let Some(waiting) = state.waiting.get_mut(&self.id) else { return };
            waiting.handles -= 1;
            if waiting.handles == 0 {
                state.waiting.remove(&self.id);
                state.core.release(now, self.id);
            }
        });
    }
}

/// Accepts sessions. When it is dropped, sessions not accepted are released and no new ones admitted.
#[derive(Debug)]
pub(super) struct Acceptor<C: Core> {
    pub(super) shared: Arc<Shared<C>>,
}

impl<C: Core> Acceptor<C> {
    pub(super) fn new(shared: Arc<Shared<C>>) -> Self {
        shared.lock().owners += 1;
        Self { shared }
    }

    pub(super) fn poll_accept(&self, cx: &Context<'_>) -> Poll<io::Result<Handle<C>>> {
        let next = |state: &mut State<C>| {
            let handle = state.incoming.pop_front().map(|id| Ok(Handle::of(&self.shared, state, id)));
            handle.or_else(|| state.ended().map(Err))
        };
        self.poll(cx, |state| &mut state.acceptors, next)
    }

    /// Waits for a client that asks to join and for which `take` returns something.
    pub(super) fn poll_request<T>(
        &self,
        cx: &Context<'_>,
        mut take: impl FnMut(&mut State<C>, C::Id) -> Option<T>,
    ) -> Poll<io::Result<T>> {
        let next = |state: &mut State<C>| {
            let mut taken = None;
            while let (None, Some(id)) = (&taken, state.asking.pop_front()) {
                taken = take(state, id);
            }
            taken.map(Ok).or_else(|| state.ended().map(Err))
        };
        self.poll(cx, |state| &mut state.askers, next)
    }

    /// Waits until no session is left.
    pub(super) fn poll_idle(&self, cx: &Context<'_>) -> Poll<io::Result<()>> {
        let is_idle = |state: &mut State<C>| state.failed.is_none() && state.core.is_idle();
        self.poll(cx, |state| &mut state.finishers, |state| is_idle(state).then_some(Ok(())))
    }

    /// Waits among `tasks` until `found` finds something or the socket fails.
    fn poll<T>(
        &self,
        cx: &Context<'_>,
        tasks: fn(&mut State<C>) -> &mut Vec<Waker>,
        found: impl FnOnce(&mut State<C>) -> Option<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let mut state = self.shared.lock();
        if let Some(found) = found(&mut state).or_else(|| state.failure().map(Err)) {
            return Poll::Ready(found);
        }
        let tasks = tasks(&mut state);
        if !tasks.iter().any(|task| task.will_wake(cx.waker())) {
            tasks.push(cx.waker().clone());
        }
        Poll::Pending
    }
}

impl<C: Core> Drop for Acceptor<C> {
    fn drop(&mut self) {
        let now = self.shared.clock.now();
        self.shared.change(|state| {
            state.owners -= 1;
            state.refuse(now);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::driver::clock;
    use super::*;
    use crate::kcp;
    use crate::machine::Machine as _;
    use crate::seq::Conv;
    use crate::session::peers::{Peers, PeersConfig, Strangers};
    use getrandom::SysRng;
    use rand_core::UnwrapErr;
    use std::time::Duration;

    /// They would take memory that no limit counts.
    #[test]
    fn nothing_is_kept_of_bare_peers_that_end_before_they_are_accepted() {
        let config = PeersConfig { strangers: Strangers::Trusted, ..PeersConfig::default() };
        let core = Peers::new(&config, &mut UnwrapErr(SysRng)).unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], 4000));
        let shared = Shared::new(core, clock(), address, true);
        let (mut state, mut now, mut datagram) = (shared.lock(), Time::from_millis(1), Vec::new());
        for conv in 0..8 {
            let mut peer = kcp::Link::new(address, Conv(conv), &config.kcp).unwrap();
            peer.kcp_mut().send(&[7; 1000]).unwrap();
            peer.handle_timeout(now);
            while peer.poll_transmit(now, &mut datagram).is_some() {
                state.core.handle_datagram(now, address.into(), &mut datagram);
                datagram.clear();
            }
        }
        state.tell(now, &mut Vec::new());
        assert_eq!((state.incoming.len(), state.waiting.len()), (8, 8));
        now = now + config.idle_timeout + Duration::from_secs(1);
        state.core.handle_timeout(now);
        while state.core.poll_transmit(now, &mut datagram).is_some() {}
        state.tell(now, &mut Vec::new());
        let left = (state.core.len(), state.incoming.len(), state.waiting.len());
        assert_eq!((left, state.core.stats().closed_idle), ((0, 0, 0), 8));
    }
}
