//! The one task of a socket: datagrams in, time, datagrams out, and whoever waits is woken.

use super::super::batch::Datagram;
use super::super::clock::Clock;
use super::super::driver::{as_v4, way};
use super::super::shards::strays::Stray;
use super::core::Core;
use super::shared::Shared;
use super::socket::Socket;
use crate::machine::Arrival;
use crate::session::shard_of;
use crate::time::Time;
use ::tokio::time::{Instant, Sleep, sleep};
use std::io;
use std::net;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

/// Drives what is in `shared` over a socket, until nobody uses it any more or the socket fails.
pub(super) struct Driver<C: Core> {
    pub(super) shared: Arc<Shared<C>>,
    socket: Socket,
    is_v6: bool,
    sleep: Pin<Box<Sleep>>,
    /// When the sleep ends, if it is polled, and when that was last put off.
    sleeps_until: Option<Time>,
    put_off_at: Time,
    /// The drivers of one port, by shard, and which of them this one is.
    neighbours: Option<(All<C>, usize)>,
    /// Datagrams that came here and are for another one.
    strays: Vec<(usize, Stray)>,
    /// Tasks to wake when the mutex is free.
    woken: Vec<Waker>,
    /// Whether those that were woken last have had their turn.
    has_waited: bool,
    /// Whether tasks wait behind some of them.
    has_behind: bool,
}

/// What the drivers of one port share with the handles of their sessions.
type All<C> = Arc<[Arc<Shared<C>>]>;

/// What is left to do after a round.
enum Next {
    /// More at once.
    More,
    /// More, after those who were woken: what they answer leaves together with what acknowledges the question, and who waits behind them
    /// has to be told if they do not come.
    Later,
    /// Nothing before this time, or before a datagram or a call.
    Sleep(Option<Time>),
    Over,
}

impl<C: Core> Driver<C> {
    /// A driver of `core` over a socket that is bound. Spawn it when what it drives has an owner.
    pub(super) fn new(socket: net::UdpSocket, core: C, clock: Clock, is_accepting: bool) -> io::Result<Self> {
        let local_addr = socket.local_addr()?;
        Ok(Self {
            shared: Shared::new(core, clock, local_addr, is_accepting),
            socket: Socket::new(socket, Socket::slots(is_accepting), C::FRAGMENTS)?,
            is_v6: local_addr.is_ipv6(),
            sleep: Box::pin(sleep(Duration::ZERO)),
            sleeps_until: None,
            put_off_at: Time::ZERO,
            neighbours: None,
            strays: Vec::new(),
            woken: Vec::new(),
            has_waited: false,
            has_behind: false,
        })
    }

    /// From now on it is one of several on its port.
    pub(super) fn set_neighbours(&mut self, all: All<C>, own: usize) {
        self.neighbours = Some((all, own));
    }

    /// Gives to the other drivers what came here and is theirs.
    fn hand_on(&mut self) {
        let Some((all, _)) = &self.neighbours else { return };
        for (owner, Stray { from, mut bytes }) in self.strays.drain(..) {
            let Some(owner) = all.get(owner) else { continue };
            let now = owner.clock.now();
            owner.change(|state| state.core.handle_datagram(now, from, &mut bytes));
            self.socket.tally.traffic.handed_on += 1;
        }
    }

    /// A batch in, what is due, a batch out.
    fn round(&mut self, cx: &mut Context<'_>) -> io::Result<Next> {
        // What the socket does not take yet keeps what comes out of the machine, and not what goes in.
        let is_full = self.socket.poll_write(cx)?.is_pending();
        let received = self.socket.read(cx);
        let now = self.shared.clock.now();
        // After those who were woken there is nothing to take in but what came meanwhile; what has become due is seen to in another round.
        let has_waited = std::mem::take(&mut self.has_waited);
        if !has_waited || self.socket.has_read() {
            self.take_in(now);
            self.hand_on();
            let has_woken = !self.woken.is_empty();
            self.woken.drain(..).for_each(Waker::wake);
            if has_woken && !has_waited && received.is_ok() {
                self.has_waited = true;
                return Ok(Next::Later);
            }
        }
        let next = self.put_out(now, cx, is_full);
        self.woken.drain(..).for_each(Waker::wake);
        if !is_full {
            let _ = self.socket.poll_write(cx)?; // when it is full, the task is woken
        }
        let has_more = received?; // what was due was done and sent all the same
        Ok(match next {
            Next::Over => Next::Over,
            _ if self.has_behind => Next::Later,
            _ if has_more => Next::More,
            next => next,
        })
    }

    /// What has come, and what is due.
    fn take_in(&mut self, now: Time) {
        let mut state = self.shared.lock();
        while let Some(Datagram { bytes, from, ecn }) = self.socket.pop() {
            let from = Arrival { address: as_v4(from), ecn };
            let owner = self.neighbours.as_ref().and_then(|(all, own)| {
                let owner = shard_of(bytes).map(usize::from)?;
                (owner != *own && owner < all.len()).then_some(owner)
            });
            match owner {
                Some(owner) => self.strays.push((owner, Stray { from, bytes: bytes.into() })),
                None => state.core.handle_datagram(now, from, bytes),
            }
        }
        state.core.handle_timeout(now);
        state.tell(now, &mut self.woken);
        self.has_behind = state.has_behind();
    }

    /// What is to leave, as much as is sent at once.
    fn put_out(&mut self, now: Time, cx: &Context<'_>, is_full: bool) -> Next {
        let mut state = self.shared.lock();
        let is_v6 = self.is_v6;
        let way = |to| way(to, is_v6);
        let is_all_out = !is_full && state.core.fill(now, &mut self.socket.outbox, way);
        state.tell(now, &mut self.woken);
        self.has_behind = state.has_behind();
        (state.socket_stats, state.socket_traffic) = (self.socket.tally.stats, self.socket.tally.traffic);
        if state.is_over() {
            return Next::Over;
        }
        if !is_all_out && !is_full {
            return Next::More;
        }
        state.driver = Some(cx.waker().clone());
        if is_full {
            return Next::Sleep(None); // and the socket wakes us
        }
        Next::Sleep(state.core.poll_timeout())
    }

    /// Sleeps until that time, or for ever, or less long; `Ready` when it has come.
    fn poll_sleep(&mut self, cx: &mut Context<'_>, until: Option<Time>) -> Poll<()> {
        let now = self.shared.clock.now();
        // Deadlines are moved back by all that happens: to put the alarm off as often costs more than an alarm that is too early. Where
        // little happens that costs more, for it wakes a processor that sleeps.
        let is_early = self.sleeps_until.is_some_and(|at| until.is_none_or(|until| at < until));
        if is_early && now.since(self.put_off_at) >= PUT_OFF_EACH {
            self.sleep.set(sleep(Duration::ZERO)); // a reset would leave the alarm in the timer
            (self.sleeps_until, self.put_off_at) = (None, now);
        }
        let Some(until) = until else { return Poll::Pending };
        if self.sleeps_until.is_none_or(|at| at > until) {
            let wait = until.since(now);
            if wait.is_zero() {
                return Poll::Ready(());
            }
            self.sleep.as_mut().reset(Instant::now() + wait);
            self.sleeps_until = Some(until);
        }
        ready!(self.sleep.as_mut().poll(cx));
        self.sleeps_until = None;
        Poll::Ready(())
    }

    fn fail(&mut self, error: &io::Error) {
        log::warn!("the socket on {} has failed: {error}", self.shared.local_addr);
        self.shared.lock().fail(error, &mut self.woken);
        self.woken.drain(..).for_each(Waker::wake);
    }
}

impl<C: Core> Future for Driver<C> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if std::mem::take(&mut self.has_behind) {
            let Self { shared, woken, .. } = &mut *self;
            shared.lock().wake_rest(woken);
            woken.drain(..).for_each(Waker::wake);
        }
        for _ in 0..ROUNDS {
            match self.round(cx) {
                Ok(Next::More) => {}
                Ok(Next::Later) => break,
                Ok(Next::Sleep(until)) => ready!(self.poll_sleep(cx, until)),
                Ok(Next::Over) => return Poll::Ready(()),
                Err(error) => {
                    self.fail(&error);
                    return Poll::Ready(());
                }
            }
        }
        cx.waker().wake_by_ref(); // after the other tasks
        Poll::Pending
    }
}

/// How often an alarm is put off at most.
const PUT_OFF_EACH: Duration = Duration::from_millis(2);
/// Batches that one poll reads and sends, before the other tasks have their turn.
const ROUNDS: usize = 2;

#[cfg(test)]
mod tests {
    use super::super::kcp::{KcpStream, drive};
    use crate::arq;
    use crate::seq::Conv;
    use crate::session::raw::Config;
    use ::tokio::runtime;
    use std::io;
    use std::net::UdpSocket;
    use std::task::Poll;
    use std::time::Duration;

    #[test]
    fn a_failed_read_ends_the_driver_after_what_was_due_is_sent() {
        let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let [here, there] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        let (peer, to) = (there.local_addr().unwrap(), here.local_addr().unwrap());
        there.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        runtime.block_on(async {
            let config = Config { kcp: arq::Config::turbo(), ..Config::registered() };
            let mut driver = drive(here, &config, false).unwrap();
            let stream = KcpStream::register(&driver.shared, peer, Conv(7)).unwrap();
            std::future::poll_fn(|cx| {
                assert!(std::pin::Pin::new(&mut driver).poll(cx).is_pending());
                Poll::Ready(())
            })
            .await;
            stream.with(|peer| peer.send(b"to the peer").map(drop)).unwrap().unwrap();
            driver.socket.fail(io::Error::other("no socket"));
            there.send_to(b"is never read", to).unwrap();
            driver.await;
        });
        let mut datagram = [0; 100];
        let len = there.recv(&mut datagram).unwrap();
        assert!(datagram[..len].ends_with(b"to the peer"));
    }
}
