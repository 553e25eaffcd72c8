//! A client.

use crate::{SAID, Said, TOLD, Told, session};
use std::io;
use std::net::ToSocketAddrs;
use std::time::Duration;
use whitewater::channel::SendError;
use whitewater::{Client, ClientConfig, Event};

pub(crate) struct Member {
    client: Client,
    end: Option<String>,
}

impl Member {
    pub(crate) fn join(at: impl ToSocketAddrs, name: &str, secret: [u8; 32]) -> io::Result<Self> {
        // The server sees the name before the session is up.
        let config = ClientConfig { user: name.into(), ..ClientConfig::secret(session(), secret) };
        Ok(Self { client: Client::connect(at, &config)?, end: None })
    }

    /// Waits until something happens, at most for `wait`, and returns what was told.
    pub(crate) fn turn(&mut self, wait: Duration) -> io::Result<Vec<Told>> {
        self.client.poll(Some(wait))?;
        while let Some(event) = self.client.poll_event() {
            if let Event::Closed { reason, .. } = event {
                // Whoever kicks somebody says why.
                let text = self.client.close_text();
                let why = if text.is_empty() { reason.to_string() } else { text.to_owned() };
                self.end = Some(why);
            }
        }
        // Also after the end: what had arrived before can still be read.
        Ok(std::iter::from_fn(|| self.client.recv(TOLD)).collect())
    }

    pub(crate) fn is_in(&self) -> bool {
        self.client.is_connected()
    }

    pub(crate) fn say(&mut self, text: &str) -> Result<(), SendError> {
        self.client.send(SAID, &Said { text: text.to_owned() })
    }

    /// Why it is over, if it is.
    pub(crate) fn end(&self) -> Option<&str> {
        self.end.as_deref()
    }

    /// Says goodbye when what was said has arrived. The turns do that; the end tells when.
    pub(crate) fn leave(&mut self) {
        self.client.close(0);
    }
}
