//! A transport, whichever it is.

use super::shared::{LinkId, Shared};
use super::{web_socket, web_transport};
use crate::target::{Target, Transport};
use std::rc::{Rc, Weak};
use wasm_bindgen::JsValue;

#[derive(Clone)]
pub(super) enum Link {
    WebTransport(Rc<web_transport::Line>),
    WebSocket(Rc<web_socket::Line>),
}

/// What became of a datagram.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Sent {
    /// The browser has it.
    Away,
    /// The browser takes none now. It is lost, and the session sends again what must arrive.
    Full,
    /// It is longer than the path carries, and lost.
    TooLong,
}

impl Link {
    /// Starts to open one.
    pub(super) fn open(
        transport: Transport,
        target: &Target,
        id: LinkId,
        shared: &Weak<Shared>,
    ) -> Result<Self, JsValue> {
        let url = target.url_for(transport).unwrap_or_default(); // without one it would not be tried
        match transport {
            Transport::WebTransport => {
                let hashes = &target.certificate_hashes;
                web_transport::Line::open(&url, hashes, id, shared).map(Self::WebTransport)
            }
            Transport::WebSocket => web_socket::Line::open(&url, id, shared).map(Self::WebSocket),
        }
    }

    /// Whether the browser has 64 KiB to send already: more would only get older there.
    pub(super) fn is_full(&self) -> bool {
        match self {
            Self::WebTransport(line) => line.is_full(),
            Self::WebSocket(line) => line.is_full(),
        }
    }

    pub(super) fn send(&self, datagram: &[u8]) -> Sent {
        match self {
            Self::WebTransport(line) => line.send(datagram),
            Self::WebSocket(line) => line.send(datagram),
        }
    }

    /// Ends it, after what was sent has left.
    pub(super) fn close(self) {
        match self {
            Self::WebTransport(line) => line.close(),
            Self::WebSocket(line) => line.close(),
        }
    }
}
