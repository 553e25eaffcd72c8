//! A game on a server. When its session ends, it connects again and gets its place back.

use tower_defence::carry::{Guest, session};
use tower_defence::client::{Command, View};
use tower_defence::wire::{Hello, shown};
use whitewater::session::DenyReason;
use whitewater::{ClientConfig, CloseReason, Event};
use whitewater_web::{Client, Target, Transport};

pub(crate) struct There {
    target: Target,
    config: ClientConfig,
    session: Client,
    guest: Guest,
    /// When to connect again, by the browser's time in ms.
    again: Option<f64>,
    /// Why the last session ended. It is told until the next one is up.
    ended: Option<String>,
    /// Whether to ask again how to join: a server that was started anew has another certificate.
    asks: bool,
}

impl There {
    pub(crate) fn join(target: Target, secret: [u8; 32], hello: &Hello) -> Result<Self, String> {
        let user = hello.encode().map_err(|error| error.to_string())?;
        let config = ClientConfig { user, ..ClientConfig::secret(session(), secret) };
        let session = Client::connect(&target, &config).map_err(|error| error.to_string())?;
        Ok(Self { target, config, session, guest: Guest::default(), again: None, ended: None, asks: false })
    }

    /// Receives, does what is due, and sends. An error tells why the game is over for us.
    pub(crate) fn pump(&mut self, now: f64) -> Result<(), String> {
        if self.again.is_some_and(|at| now >= at) {
            self.again = None;
            self.session = Client::connect(&self.target, &self.config).map_err(|error| error.to_string())?;
            self.guest = Guest::default();
        }
        self.session.pump();
        while let Some(event) = self.session.poll_event() {
            self.on_event(now, event)?;
        }
        let time = self.session.now();
        if let Some(mut connection) = self.session.connection_mut() {
            self.guest.advance(&mut connection, time);
        }
        self.session.flush();
        Ok(())
    }

    pub(crate) fn view(&self) -> Option<View> {
        self.guest.game.view()
    }

    pub(crate) fn command(&mut self, command: Command) {
        self.guest.game.command(command);
    }

    /// What carries the session.
    pub(crate) fn carrier(&self) -> &'static str {
        match self.session.transport_stats().transport {
            Some(Transport::WebTransport) => "WebTransport",
            Some(Transport::WebSocket) => "WebSocket",
            None => "connecting",
        }
    }

    /// Whether the page should ask the server once more how to join.
    pub(crate) fn take_question(&mut self) -> bool {
        std::mem::take(&mut self.asks)
    }

    /// Where to connect next time.
    pub(crate) fn set_target(&mut self, target: Target) {
        self.target = target;
    }

    /// Why there is no session now. `None`: there is one, or this is the first attempt.
    pub(crate) fn trouble(&self) -> Option<&str> {
        self.ended.as_deref()
    }

    fn on_event(&mut self, now: f64, event: Event) -> Result<(), String> {
        match event {
            Event::Connected => self.ended = None,
            Event::Readable => {
                let time = self.session.now();
                if let Some(mut connection) = self.session.connection_mut() {
                    self.guest.read(&mut connection, time);
                }
            }
            Event::Closed { reason, .. } => {
                let told = format!("{reason} {}", shown(&self.session.close_text()));
                let told = told.trim_end().to_owned();
                match reason {
                    CloseReason::Peer(_) | CloseReason::Rejected(_) => return Err(told),
                    CloseReason::Denied(reason) if reason != DenyReason::Busy => return Err(told),
                    _ => {}
                }
                // A server that has forgotten us is there, so there is nothing to wait for.
                let wait = if reason == CloseReason::ServerForgot { 0.0 } else { AGAIN };
                (self.ended, self.again, self.asks) = (Some(told), Some(now + wait), true);
            }
            _ => {}
        }
        Ok(())
    }
}

/// How long to wait before connecting again, ms.
const AGAIN: f64 = 1000.0;
