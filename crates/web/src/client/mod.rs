//! The client of a browser.

mod error;
mod js;
mod link;
mod shared;
mod stats;
mod system;
mod verbs;
mod web_socket;
mod web_transport;

pub use error::ConnectError;
pub use stats::TransportStats;

use crate::target::Target;
use shared::Shared;
use std::cell::{Ref, RefMut};
use std::fmt;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;
use whitewater::session::{ClientState, CloseTextError, Connection};
use whitewater::{ClientConfig, Event, Time};

/// A client in a browser: one session over WebTransport, or over a WebSocket where that is not to be had. It has the methods of the client
/// on a UDP socket, `whitewater::Client`, and they mean the same.
///
/// It starts to connect when it is made. [`Event::Connected`] says that the session is up, and [`Event::Closed`] that it is over, or that
/// connecting failed. For another session, make another client.
///
/// Call [`pump`](Self::pump) in each `requestAnimationFrame`, after you have sent what belongs to the frame. Between frames, and in a tab in
/// the background that has none, datagrams are still handed in and answered when they arrive, so the session stays up. If a transport is
/// lost, it is opened again; an encrypted session goes on.
///
/// ```ignore
/// use whitewater::{Channel, ClientConfig, Event, SessionConfig};
/// use whitewater_web::{Client, Target};
///
/// const CHAT: Channel = Channel::ordered(0);
///
/// let config = ClientConfig::secret(SessionConfig::default(), [7; 32]);
/// let mut client = Client::connect(&Target::new("https://game.example.org:4433/"), &config)?;
/// // in each frame:
/// while let Some(event) = client.poll_event() {
///     if event == Event::Connected {
///         client.send(CHAT, b"all of this arrives")?;
///     }
/// }
/// client.pump();
/// ```
///
/// A client that is dropped says goodbye without waiting: what has not arrived is lost.
pub struct Client {
    shared: Rc<Shared>,
}

impl Client {
    /// Starts to connect. The longest datagrams are of 1150 bytes, or of what the transport carries, if `config` does not set less: QUIC carries
    /// no more on every path.
    ///
    /// # Errors
    ///
    /// See [`ConnectError`]. That nobody answers, or that no transport can be had, is an event.
    pub fn connect(target: &Target, config: &ClientConfig) -> Result<Self, ConnectError> {
        let shared = Shared::new(target, config)?;
        shared.drive();
        Ok(Self { shared })
    }

    /// Does what is due, and sends. Returns how long nothing else is due; `None` means until a datagram arrives or you send something. A timer
    /// calls it then, so nothing depends on your calls but how soon what you have sent leaves.
    pub fn pump(&mut self) -> Option<Duration> {
        self.shared.drive()
    }

    /// Sends what was queued since the last pump.
    pub fn flush(&mut self) {
        self.shared.transmit();
    }

    /// Takes the next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.shared.state.borrow_mut().machine.poll_event()
    }

    /// Waits until there is an event to take, or a lost transport was replaced. Dropping the future does no harm; only the last one is woken.
    pub fn changed(&mut self) -> impl Future<Output = ()> + use<> {
        let shared = Rc::clone(&self.shared);
        let reconnects = shared.state.borrow().stats.reconnects;
        poll_fn(move |context| {
            let mut state = shared.state.borrow_mut();
            if state.machine.has_events() || state.stats.reconnects != reconnects {
                return Poll::Ready(());
            }
            state.waker = Some(context.waker().clone());
            Poll::Pending
        })
    }

    /// The session, once it has been up. Let go of it before you await something: while you keep it, what arrives is dropped.
    #[must_use]
    pub fn connection(&self) -> Option<Ref<'_, Connection>> {
        Ref::filter_map(self.shared.state.borrow(), |state| state.machine.connection()).ok()
    }

    /// The same, to send and to receive.
    pub fn connection_mut(&mut self) -> Option<RefMut<'_, Connection>> {
        RefMut::filter_map(self.shared.state.borrow_mut(), |state| state.machine.connection_mut()).ok()
    }

    /// Whether the session is up and takes what is sent.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.state() == ClientState::Up
    }

    /// What [`ClientConfig::ticket`] takes for the next session with this server; see [`Connection::ticket`]. Empty until the session has been
    /// up.
    #[must_use]
    pub fn ticket(&self) -> Vec<u8> {
        self.connection().map_or_else(Vec::new, |connection| connection.ticket().to_vec())
    }

    /// What the server's application said when it rejected this client; see `session::Client::rejection`.
    #[must_use]
    pub fn rejection(&self) -> Vec<u8> {
        self.shared.state.borrow().machine.rejection().to_vec()
    }

    /// How far the session has got.
    #[must_use]
    pub fn state(&self) -> ClientState {
        self.shared.state.borrow().machine.state()
    }

    /// Closes the session once everything sent has arrived; see [`Connection::close`]. [`Event::Closed`] says when it is done.
    pub fn close(&mut self, code: u16) {
        self.shared.state.borrow_mut().machine.close(self.now(), code);
        self.shared.drive();
    }

    /// The same with a text for the server.
    ///
    /// # Errors
    ///
    /// Those of [`Connection::close_with`].
    pub fn close_with(&mut self, code: u16, text: &str) -> Result<(), CloseTextError> {
        self.shared.state.borrow_mut().machine.close_with(self.now(), code, text)?;
        self.shared.drive();
        Ok(())
    }

    /// Ends the session, or the attempt to connect, at once.
    ///
    /// # Errors
    ///
    /// Those of [`Connection::kick`].
    pub fn kick(&mut self, code: u16, text: &str) -> Result<(), CloseTextError> {
        self.shared.state.borrow_mut().machine.kick(self.now(), code, text)?;
        self.shared.drive();
        Ok(())
    }

    /// Takes the token of another server, after [`Event::Redirected`]. The URL of that server is not in it: your page has to know it.
    pub fn take_redirect(&mut self) -> Option<Vec<u8>> {
        self.shared.state.borrow_mut().machine.take_redirect().map(|token| token.to_vec())
    }

    /// The current time by the browser's clock, for the methods of [`connection_mut`](Self::connection_mut) that need it.
    #[must_use]
    pub fn now(&self) -> Time {
        system::now()
    }

    /// What the transports have carried.
    #[must_use]
    pub fn transport_stats(&self) -> TransportStats {
        self.shared.state.borrow().stats
    }

    /// The last error of a transport, in the browser's words, which say little; empty if there was none.
    #[must_use]
    pub fn transport_error(&self) -> String {
        self.shared.state.borrow().error.clone()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.shared.abandon();
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut printed = f.debug_struct("Client");
        if let Ok(state) = self.shared.state.try_borrow() {
            printed
                .field("machine", &state.machine)
                .field("stats", &state.stats)
                .field("error", &state.error);
        }
        printed.finish_non_exhaustive()
    }
}
