//! The networks of a client: by which one datagrams leave, and what the second one is for.

use super::ways::Ways;
use super::{Client, State};
use crate::session::Suite;
use crate::time::Time;
use std::net::SocketAddr;

/// What the second network of a client is for: a phone has Wi-Fi and LTE.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum SecondNetwork {
    /// It is used while the server is silent by the first. Until then only a HELLO leaves by it now and then.
    Spare,
    /// The session uses the one by which the server answers sooner, and moves when that has changed for a second.
    Best,
    /// As `Best`, and what is urgent leaves by both networks, in both directions: unreliable datagrams, acknowledgements, and channels that
    /// have at most 16 segments under way or waiting. What arrives first counts. A full datagram is doubled if
    /// [`path_mtu`](crate::SessionConfig::path_mtu) allows a longer one, and no longer ones are looked for meanwhile.
    Double,
}

/// One way to the server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Hop {
    /// The network that it leaves by: 0 or 1.
    pub(super) network: u8,
    pub(super) address: SocketAddr,
}

impl Client {
    /// Says that another network leads to the server as well, and what for, or that it no longer does. Datagrams that leave by it have 1 as their
    /// [`Transmit::network`](crate::machine::Transmit::network), and those that come by it have to have that as their [`Arrival::network`](crate::machine::Arrival::network). It may be called at any time, and again. A session
    /// begins by the first network.
    ///
    /// The server notices by itself. It has one session, whatever leaves by which network: what arrives twice counts once, and the session has the numbers
    /// of its packets for both, so nothing waits when it moves. Returns whether a session can use it: one without encryption stays where it began.
    pub fn set_second_network(&mut self, now: Time, wanted: Option<SecondNetwork>) -> bool {
        let now = self.tick(now);
        let second = wanted.filter(|_| self.config.suite != Suite::Checked);
        let before = std::mem::replace(&mut self.second, second);
        if let State::Connected(connection) = &mut self.state
            && before.is_none()
            && second.is_some()
        {
            connection.renew_second(now);
        }
        self.use_networks(now);
        second == wanted
    }

    /// Uses the networks that there are, while a session is up.
    pub(super) fn use_networks(&mut self, now: Time) {
        let State::Connected(connection) = &mut self.state else { return };
        if connection.is_closed() || (self.second.is_none() && self.ways.is_none()) {
            return;
        }
        let here = connection.peer_addr();
        let ways = self.ways.get_or_insert_with(|| Box::new(Ways::new(now, std::iter::once(here), false)));
        if self.second.is_none() && ways.network != 0 {
            ways.moved(now, here, Hop { network: 0, address: here }, std::time::Duration::ZERO);
            connection.swap_paths(now, here, true);
        }
        ways.set_second(now, self.second);
        connection.double(now, Some(here).filter(|_| self.second == Some(SecondNetwork::Double)));
        if !ways.is_choice() {
            self.ways = None;
        }
    }

    /// The network that the session uses: 0, or 1 for the second.
    #[must_use]
    pub fn network(&self) -> u8 {
        self.ways.as_ref().map_or(0, |ways| ways.network)
    }
}

/// The other network.
pub(super) const fn other(network: u8) -> u8 {
    1 - network
}
