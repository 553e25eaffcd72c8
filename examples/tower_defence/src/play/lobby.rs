//! A lobby for players who host, over a socket.

use super::Key;
use crate::peers::{Lobby, session};
use getrandom::SysRng;
use rand::rand_core::UnwrapErr;
use std::io;
use std::net::SocketAddr;
use std::time::UNIX_EPOCH;
use whitewater::{Server, ServerConfig};
use whitewater_relay::RelayKey;

/// A lobby.
pub struct Lobbying {
    server: Server,
    lobby: Lobby,
}

impl Lobbying {
    /// Starts to listen. `relay` and `relay_key`: the relay of the players' hosts, as all reach it.
    ///
    /// # Errors
    ///
    /// The address is not available, or the system has no random bytes.
    pub fn bind(at: SocketAddr, key: &Key, relay: SocketAddr, relay_key: [u8; 32]) -> io::Result<Self> {
        getrandom::u32().map_err(io::Error::other)?; // if there are some now, there are some later
        let config = ServerConfig {
            sessions_per_address: 64, // all players of a test are on one machine
            half_open_per_address: 64,
            accept_burst: 64,
            reset_key: Some(key.reset()),
            ..ServerConfig::secret(session(), key.bytes())
        };
        let lobby = Lobby::new(RelayKey::new(relay_key), relay, UnwrapErr(SysRng));
        Ok(Self { server: Server::bind(at, &config)?, lobby })
    }

    /// Receives what has arrived and does what is due. Call it every few milliseconds.
    ///
    /// # Errors
    ///
    /// The socket has failed.
    pub fn pump(&mut self) -> io::Result<()> {
        self.server.pump()?;
        let now = self.server.now();
        while let Some((id, event)) = self.server.poll_event() {
            self.lobby.on_event(self.server.machine_mut(), now, id, event);
        }
        let unix = UNIX_EPOCH.elapsed().unwrap_or_default().as_secs();
        self.lobby.tick(self.server.machine_mut(), now, unix);
        self.server.flush();
        Ok(())
    }

    /// The address of the lobby.
    ///
    /// # Errors
    ///
    /// The system does not know it.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.server.local_addr()
    }

    /// Who is here, and who hosts.
    #[must_use]
    pub const fn lobby(&self) -> &Lobby {
        &self.lobby
    }
}
