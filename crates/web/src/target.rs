//! Where a browser's client connects to, and how.

use std::time::Duration;

/// Where a client connects to, and by which transports.
///
/// ```ignore
/// let target = Target { patience: Duration::from_secs(1), ..Target::new("https://game.example.org:4433/") };
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "plain fields, made with `..Target::new(url)`")]
pub struct Target {
    /// Where the server takes WebTransport: `https://host:port/`.
    pub url: String,
    /// SHA-256 of each certificate that is accepted besides those that browsers trust: for development, with a certificate that the server
    /// made for itself. Browsers take only such as are valid for at most 14 days, with a key on P-256. WebSockets have no such list.
    pub certificate_hashes: Vec<[u8; 32]>,
    /// Where it takes WebSockets: `wss://` or, on this machine, `ws://`. `None`: at the same host and port, by `wss://`.
    pub websocket: Option<String>,
    /// How long WebTransport may take until the WebSocket is tried as well.
    pub patience: Duration,
    /// Which of them to use.
    pub transports: Transports,
}

impl Target {
    /// The server at this URL, `https://host:port/`. A WebSocket is tried 2 s after WebTransport, or as soon as that has failed.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            certificate_hashes: Vec::new(),
            websocket: None,
            patience: Duration::from_secs(2),
            transports: Transports::Any,
        }
    }

    /// Where to open a transport. `None`: the URL is for something else.
    pub(crate) fn url_for(&self, transport: Transport) -> Option<String> {
        match (transport, &self.websocket) {
            (Transport::WebTransport, _) => after(&self.url, "https://").map(|_| self.url.clone()),
            (Transport::WebSocket, Some(url)) => {
                after(url, "wss://").or_else(|| after(url, "ws://")).map(|_| url.clone())
            }
            (Transport::WebSocket, None) => after(&self.url, "https://").map(|rest| format!("wss://{rest}")),
        }
    }
}

/// What follows the scheme of a URL, unless that is another one or nothing follows.
fn after<'a>(url: &'a str, scheme: &str) -> Option<&'a str> {
    let (start, rest) = url.split_at_checked(scheme.len())?;
    (start.eq_ignore_ascii_case(scheme) && !rest.is_empty()).then_some(rest)
}

/// Which transports a client may use.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "there are two transports")]
pub enum Transports {
    /// WebTransport, and a WebSocket where that is not to be had.
    #[default]
    Any,
    /// Only WebTransport: rather no session than one over TCP.
    WebTransport,
    /// Only WebSockets.
    WebSocket,
}

impl Transports {
    /// Those that are allowed, the better one first.
    pub(crate) const fn in_order(self) -> &'static [Transport] {
        match self {
            Self::Any => &[Transport::WebTransport, Transport::WebSocket],
            Self::WebTransport => &[Transport::WebTransport],
            Self::WebSocket => &[Transport::WebSocket],
        }
    }
}

/// What carries the datagrams of a session.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "browsers have two")]
pub enum Transport {
    /// Datagrams of QUIC: one that is lost delays no other.
    WebTransport,
    /// Messages over TCP: what is lost delays all that follows.
    WebSocket,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_websocket_is_at_the_same_place_unless_said_otherwise() {
        let mut target = Target::new("HTTPS://game.example.org:4433/play");
        assert_eq!(target.url_for(Transport::WebTransport).unwrap(), "HTTPS://game.example.org:4433/play");
        assert_eq!(target.url_for(Transport::WebSocket).unwrap(), "wss://game.example.org:4433/play");
        target.websocket = Some("ws://127.0.0.1:8080/".into());
        assert_eq!(target.url_for(Transport::WebSocket).unwrap(), "ws://127.0.0.1:8080/");
    }

    #[test]
    fn a_url_for_something_else_is_refused() {
        for url in ["", "https://", "http://host/", "wss://host/", "häßlich"] {
            let target = Target { websocket: Some(url.replace("wss", "http")), ..Target::new(url) };
            assert_eq!(target.url_for(Transport::WebTransport), None, "{url}");
            assert_eq!(target.url_for(Transport::WebSocket), None, "{url}");
        }
    }
}
