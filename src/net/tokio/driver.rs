//! The single task of a socket: datagrams in, time, datagrams out, and wakes waiting tasks.

use super::super::clock::Clock;
use super::super::line::Line;
use super::super::shards;
use super::super::transport::Waker;
use super::core::Core;
use super::shared::Shared;
use crate::time::Time;
use ::tokio::io::Interest;
use ::tokio::net::UdpSocket;
use ::tokio::task::yield_now;
use ::tokio::time::{Instant, Sleep, sleep};
use std::io;
use std::net::{self, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{self, Context, Poll, ready};
use std::time::Duration;
use whitewater_udp::Port;

/// Drives the machine in `shared` over a socket until nobody uses it any more or the socket fails.
pub(super) struct Driver<C: Core> {
    pub(super) shared: Arc<Shared<C>>,
    pub(super) line: Line<C, Socket>,
    /// Rung by the other drivers on this port.
    pub(super) doorbell: Arc<Doorbell>,
    sleep: Pin<Box<Sleep>>,
    /// When the sleep ends, if it is polled, and when it was last postponed.
    sleeps_until: Option<Time>,
    put_off_at: Time,
    /// Tasks to wake once the mutex is free.
    woken: Vec<task::Waker>,
    /// Whether the tasks woken last have had their turn.
    has_waited: bool,
    /// Whether more tasks wait behind some of them.
    has_behind: bool,
}

/// Wakes the driver of a shard for datagrams that another one has handed over.
pub(super) type Doorbell = Mutex<Option<task::Waker>>;

impl shards::Wake for Doorbell {
    fn wake(&self) {
        let driver = self.lock().unwrap_or_else(PoisonError::into_inner).take();
        driver.into_iter().for_each(task::Waker::wake);
    }
}

/// What is left to do after a round.
enum Next {
    More,
    /// More, but after the tasks that were woken: their answers can then leave together with the
    /// acknowledgements, and if some of them do not run, the tasks behind them must be woken.
    Later,
    /// Nothing before this time, or before a datagram or a call.
    Sleep(Option<Time>),
    Over,
}

impl<C: Core> Driver<C> {
    /// A driver of `core` over a port. Spawn it once there is a handle.
    pub(super) fn new(port: Port<Socket>, core: C, clock: Clock, is_accepting: bool) -> io::Result<Self> {
        let (local_addr, line) = (port.local_addr(), Line::new(port));
        Ok(Self {
            shared: Shared::new(core, clock, local_addr, is_accepting),
            line,
            doorbell: Arc::default(),
            sleep: Box::pin(sleep(Duration::ZERO)),
            sleeps_until: None,
            put_off_at: Time::ZERO,
            woken: Vec::new(),
            has_waited: false,
            has_behind: false,
        })
    }

    /// Reads a batch, does what is due, sends a batch.
    fn round(&mut self, cx: &mut Context<'_>) -> io::Result<Next> {
        let now = self.shared.clock.now();
        if self.shared.path_changed.swap(false, Relaxed) || self.line.has_moved(now) {
            self.line.path_changed(now, &mut self.shared.lock().core);
        }
        // While the socket is full, the machine's output waits, but not its input.
        let is_full = self.jams(cx)? && self.line.second.is_none();
        let received = poll_read(&mut self.line.port, cx);
        let received = self.line.forgive(received);
        let has_more_by_second = self.line.second.as_mut().is_some_and(|port| poll_second(port, cx));
        let now = self.shared.clock.now();
        // After the woken tasks have run, only read what came meanwhile; timers that became due wait for
        // another round.
        let has_waited = std::mem::take(&mut self.has_waited);
        if !has_waited || self.line.has_read() {
            self.take_in(now);
            let has_woken = !self.woken.is_empty();
            self.woken.drain(..).for_each(task::Waker::wake);
            if has_woken && !has_waited && received.is_ok() {
                self.has_waited = true;
                return Ok(Next::Later);
            }
        }
        let next = self.put_out(now, cx, is_full);
        self.woken.drain(..).for_each(task::Waker::wake);
        if !is_full {
            let _ = self.jams(cx)?;
        }
        if let Some(second) = &mut self.line.second {
            let _ = poll_write(second, cx);
        }
        let has_more = received? || has_more_by_second; // if it failed, what was due has still been done and sent
        Ok(match next {
            Next::Over => Next::Over,
            _ if self.has_behind => Next::Later,
            _ if has_more => Next::More,
            next => next,
        })
    }

    /// Sends what waits at the first network's port. Returns whether something still does, because its buffer is full; then the task will be woken.
    fn jams(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        match poll_write(&mut self.line.port, cx) {
            Poll::Pending => Ok(true),
            Poll::Ready(written) => self.line.forgive(written.map(|()| false)),
        }
    }

    fn take_in(&mut self, now: Time) {
        let mut state = self.shared.lock();
        self.line.tell_time(now, &mut state.core);
        while self.line.hand_in(now, &mut state.core) {}
        state.core.handle_timeout(now);
        state.tell(now, &mut self.woken);
        self.has_behind = !state.behind.is_empty();
    }

    /// Takes outgoing datagrams, as many as are sent at once.
    fn put_out(&mut self, now: Time, cx: &Context<'_>, is_full: bool) -> Next {
        let mut state = self.shared.lock();
        let (mut has_strays, mut is_replaced) = (false, false);
        if let Some(mut beside) = state.attached.take() {
            let doorbell = Arc::clone(&self.doorbell);
            beside.transport.attached(Waker::new(move || shards::Wake::wake(&*doorbell)));
            self.line.beside = Some(beside);
        }
        if let Some(second) = state.second.take() {
            self.line.second = second;
            is_replaced = true;
        }
        if self.line.has_others() {
            let mut doorbell = self.doorbell.lock().unwrap_or_else(PoisonError::into_inner);
            *doorbell = Some(cx.waker().clone()); // before checking what it would ring for
            drop(doorbell);
            has_strays = self.line.hand_in_strays(now, &mut state.core);
        }
        let mut no_end = usize::MAX;
        let is_all_out = !is_full && self.line.gather(now, &mut state.core, &mut no_end);
        state.tell(now, &mut self.woken);
        self.has_behind = !state.behind.is_empty();
        (state.socket_stats, state.socket_traffic) = (self.line.stats(), self.line.traffic());
        let local_addr = self.line.port.local_addr();
        if state.is_over() {
            return Next::Over;
        }
        // A socket that has replaced another one does not wake us before it was read once.
        is_replaced |= std::mem::replace(&mut state.local_addr, local_addr) != local_addr;
        if is_replaced || has_strays || (!is_all_out && !is_full) {
            return Next::More;
        }
        state.driver = Some(cx.waker().clone());
        if is_full {
            return Next::Sleep(None); // the socket will wake us
        }
        Next::Sleep(state.core.poll_timeout())
    }

    /// Sleeps until `until`; `None`: forever. `Ready` when the sleep has ended, which may be early.
    fn poll_sleep(&mut self, cx: &mut Context<'_>, until: Option<Time>) -> Poll<()> {
        let now = self.shared.clock.now();
        // Everything that happens moves deadlines back. Postponing the alarm each time costs more than a
        // premature alarm. When little happens, a premature alarm costs more, since it wakes a sleeping
        // processor.
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
        log::warn!("the socket on {} has failed: {error}", self.line.port.local_addr());
        self.shared.lock().fail(error, &mut self.woken);
        self.woken.drain(..).for_each(task::Waker::wake);
    }
}

impl<C: Core> Future for Driver<C> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if std::mem::take(&mut self.has_behind) {
            let Self { shared, woken, .. } = &mut *self;
            shared.lock().wake_rest(woken);
            woken.drain(..).for_each(task::Waker::wake);
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
        pin!(yield_now()).poll(cx) // after the other tasks, and after what `block_on` runs
    }
}

/// tokio's clock, so that sessions stand still while a test pauses it.
pub(super) fn clock() -> Clock {
    Clock::of(|| Instant::now().into_std())
}

/// The system calls without tokio's own readiness tracking, for use inside of `try_io`.
#[derive(Debug)]
pub(super) struct Socket(UdpSocket);

/// Reads what one system call returns. Returns whether there may be more; if not, the task is woken when
/// there is.
pub(super) fn poll_read(port: &mut Port<Socket>, cx: &mut Context<'_>) -> io::Result<bool> {
    while port.socket().0.poll_recv_ready(cx)?.is_ready() {
        if port.read(usize::MAX)? {
            return Ok(port.socket().0.poll_recv_ready(cx)?.is_ready());
        }
    }
    Ok(false)
}

/// The same for the port of the second network. One that fails is silent.
fn poll_second(port: &mut Port<Socket>, cx: &mut Context<'_>) -> bool {
    poll_read(port, cx).unwrap_or_else(|error| {
        log::debug!("the second network fails: {error}");
        false
    })
}

/// Sends everything gathered. `Pending` if the send buffer is full; the task is woken when it has room again.
pub(super) fn poll_write(port: &mut Port<Socket>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
    while !port.is_empty() {
        ready!(port.socket().0.poll_send_ready(cx))?;
        port.flush();
    }
    Poll::Ready(Ok(()))
}

impl whitewater_udp::Socket for Socket {
    type Handle = UdpSocket;

    fn over(socket: net::UdpSocket) -> io::Result<Self> {
        Ok(Self(UdpSocket::from_std(socket)?))
    }

    fn handle(&self) -> &UdpSocket {
        &self.0
    }

    fn recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.0.try_recv_from(buf)
    }

    fn send_to(&self, datagram: &[u8], to: SocketAddr) -> io::Result<usize> {
        self.0.try_send_to(datagram, to)
    }

    fn send(&self, datagram: &[u8]) -> io::Result<usize> {
        self.0.try_send(datagram)
    }

    fn reading<T>(&self, calls: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        self.0.try_io(Interest::READABLE, calls)
    }

    fn writing<T>(&self, calls: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        self.0.try_io(Interest::WRITABLE, calls)
    }
}

/// Least time between two postponements of an alarm.
const PUT_OFF_EACH: Duration = Duration::from_millis(2);
/// Batches that one poll reads and sends before other tasks get their turn.
const ROUNDS: usize = 2;

#[cfg(test)]
mod tests {
    use super::super::kcp::{KcpStream, drive};
    use crate::kcp;
    use crate::seq::Conv;
    use crate::session::peers::PeersConfig;
    use std::io;
    use std::net::UdpSocket;
    use std::task::Poll;
    use std::time::Duration;

    #[::tokio::test]
    async fn a_failed_read_ends_the_driver_after_due_datagrams_are_sent() {
        let [here, there] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        let (peer, to) = (there.local_addr().unwrap(), here.local_addr().unwrap());
        there.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let config = PeersConfig { kcp: kcp::Config::default(), ..PeersConfig::registered() };
        let mut driver = drive(here, &config, false).unwrap();
        let stream = KcpStream::register(&driver.shared, peer, Conv(7)).unwrap();
        std::future::poll_fn(|cx| {
            assert!(std::pin::Pin::new(&mut driver).poll(cx).is_pending());
            Poll::Ready(())
        })
        .await;
        stream.with(|peer| peer.send(b"to the peer").map(drop)).unwrap().unwrap();
        driver.line.port.fail(io::Error::other("no socket"));
        there.send_to(b"is never read", to).unwrap();
        driver.await;
        let mut datagram = [0; 100];
        let len = there.recv(&mut datagram).unwrap();
        assert!(datagram[..len].ends_with(b"to the peer"));
    }
}
