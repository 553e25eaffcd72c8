//! The class that scripts see.

use crate::guest::Guest;
use crate::host::Host;
use crate::inbox::Inbox;
use crate::lane::{Lane, Mode, PACKET_MAX};
use crate::link::{Change, End, Link, Refused, SERVER};
use crate::settings::{self, Settings};
use godot::classes::multiplayer_peer::{ConnectionStatus, TransferMode};
use godot::classes::{IMultiplayerPeerExtension, MultiplayerPeerExtension};
use godot::global::Error;
use godot::prelude::*;
use std::mem;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use whitewater::CloseReason;

/// A multiplayer peer over encrypted sessions: what `ENetMultiplayerPeer` does, and what it leaves out. Set what protects the session, then
/// call `create_server` or `create_client`, and give it to `multiplayer.multiplayer_peer`.
#[derive(GodotClass)]
#[class(tool, base = MultiplayerPeerExtension)]
struct WhitewaterMultiplayerPeer {
    base: Base<MultiplayerPeerExtension>,

    /// The game and its version: the same at both ends.
    #[var]
    protocol_id: i64,
    /// Transfer channels, 1 to 10: the same at both ends.
    #[var]
    channel_count: i32,
    /// Silence after which a session is over, seconds, 2 to 120.
    #[var]
    timeout: f64,
    /// Goes without encryption: for local networks and tests.
    #[var]
    insecure: bool,
    /// 32 random bytes that both ends know.
    #[var]
    psk: PackedByteArray,
    /// 32 bytes: at a server its private key, at a client what `public_key` makes of it.
    #[var]
    server_key: PackedByteArray,
    /// At a client: a connect token from a matchmaker. It has the address of the server and what protects the session.
    #[var]
    token: PackedByteArray,
    /// At a server: 32 bytes with which the matchmaker seals connect tokens.
    #[var]
    token_key: PackedByteArray,
    /// With `token_key`: the number of this server in its tokens, not 0.
    #[var]
    server_id: i64,
    /// With `token_key`: distinguishes the keys of a server, 0 to 255.
    #[var]
    key_id: i32,
    /// At a client: what to tell the server, up to 256 bytes.
    #[var]
    user: PackedByteArray,

    link: Option<Link>,
    inbox: Inbox,
    /// What scripts hear in the next poll, because packets that came before wait to be read.
    later: Vec<Change>,
    transfer_mode: TransferMode,
    transfer_channel: i32,
    target: i32,
    bind_ip: GString,
    is_refusing: bool,
    is_flush_due: bool,
}

#[godot_api]
impl WhitewaterMultiplayerPeer {
    /// A session is over, or could not be established: with `code`, the number that it was closed with or 0; with `text`, what the other end
    /// said; and with `reason`, a sentence for the log. Comes right before `peer_disconnected`.
    #[signal]
    fn session_closed(peer: i64, code: i64, text: GString, reason: GString);

    /// The server sends this client to another one: give `token` to a new peer.
    #[signal]
    fn redirected(token: PackedByteArray);

    /// Serves on a port, for up to `max_clients`; port 0 takes any. Returns `ERR_UNCONFIGURED` if a setting is missing or wrong, which the
    /// log names, and `ERR_CANT_CREATE` if the port cannot be had.
    #[func]
    fn create_server(&mut self, port: i32, #[opt(default = 32)] max_clients: i32) -> Error {
        let (Ok(port), Ok(max_clients)) = (u16::try_from(port), u16::try_from(max_clients)) else {
            return complain(Error::ERR_INVALID_PARAMETER, "port or max_clients is out of range");
        };
        let ip = self.bind_ip.to_string();
        self.create(|settings| {
            let config = settings.server(max_clients).map_err(unconfigured)?;
            let host = match &*ip {
                "*" => Host::bind(&everywhere(port)[..], &config),
                ip => Host::bind((ip, port), &config),
            };
            let host = host.map_err(cannot_create)?;
            Ok(Link::Host(Box::new(host)))
        })
    }

    /// Begins to connect. Returns `ERR_UNCONFIGURED` if a setting is missing or wrong, which the log names, and `ERR_CANT_CREATE` if the
    /// address cannot be resolved or there is no socket. With `token`, the address is ignored.
    #[func]
    fn create_client(&mut self, address: GString, port: i32) -> Error {
        let Ok(port) = u16::try_from(port) else {
            return complain(Error::ERR_INVALID_PARAMETER, "port is out of range");
        };
        let address = address.to_string();
        self.create(|settings| {
            let config = settings.client().map_err(unconfigured)?;
            let guest = match &config.token {
                Some(token) => Guest::connect(&*token.addresses, &config),
                None => Guest::connect((&*address, port), &config),
            };
            Ok(Link::Guest(Box::new(guest.map_err(cannot_create)?)))
        })
    }

    /// The address on which `create_server` serves: by default `*`, all.
    #[func]
    fn set_bind_ip(&mut self, ip: GString) {
        self.bind_ip = ip;
    }

    /// The public half of a server's private key, for `server_key` of clients; empty if that is not 32 bytes.
    #[func]
    fn public_key(private: PackedByteArray) -> PackedByteArray {
        match settings::public_key(private.as_slice()) {
            Ok(key) => PackedByteArray::from(&key[..]),
            Err(error) => {
                godot_error!("{error}");
                PackedByteArray::new()
            }
        }
    }

    /// Ends a session at once, and tells the peer a code, up to 65,023, and a text of up to 128 bytes.
    #[func]
    fn kick(&mut self, peer: i32, code: i32, text: GString) -> Error {
        let Ok(code) = u16::try_from(code) else {
            return complain(Error::ERR_INVALID_PARAMETER, "code is out of range");
        };
        let Some(link) = &mut self.link else { return Error::ERR_UNCONFIGURED };
        if link.connection(peer).is_none() {
            return complain(Error::ERR_INVALID_PARAMETER, "there is no such peer");
        }
        match link.kick(peer, code, &text.to_string()) {
            Ok(()) => Error::OK,
            Err(error) => complain(Error::ERR_INVALID_PARAMETER, error),
        }
    }

    /// Sends the client of a session to another server, by a connect token for that one.
    #[func]
    fn redirect(&mut self, peer: i32, token: PackedByteArray) -> Error {
        let Some(Link::Host(host)) = &mut self.link else { return Error::ERR_UNCONFIGURED };
        match host.redirect(peer, token.as_slice()) {
            Ok(()) => Error::OK,
            Err(error) => complain(Error::ERR_INVALID_PARAMETER, error),
        }
    }

    /// Closes, and blocks until everything that was sent has arrived, for 7 s at most. `close` does not wait.
    #[func]
    fn shutdown(&mut self) {
        if let Some(mut link) = self.link.take()
            && let Err(error) = link.shutdown()
        {
            godot_error!("the socket fails: {error}");
        }
        self.close();
    }

    /// The port of this end's socket; 0: there is none.
    #[func]
    fn get_local_port(&self) -> i32 {
        self.link.as_ref().and_then(|link| link.port().ok()).map_or(0, i32::from)
    }

    /// The address of a peer; empty: there is no such peer.
    #[func]
    fn get_peer_address(&self, peer: i32) -> GString {
        let address = self.address(peer).map(|address| address.ip().to_canonical().to_string());
        GString::from(&address.unwrap_or_default())
    }

    /// The port of a peer; 0: there is no such peer.
    #[func]
    fn get_peer_port(&self, peer: i32) -> i32 {
        self.address(peer).map_or(0, |address| address.port().into())
    }

    /// At a server: what the connect token of a client says of its player, or else what the client says.
    #[func]
    fn get_peer_user(&self, peer: i32) -> PackedByteArray {
        match &self.link {
            Some(Link::Host(host)) => host.user(peer).map(PackedByteArray::from).unwrap_or_default(),
            _ => PackedByteArray::new(),
        }
    }

    /// Figures of a session: `rtt` and `rtt_variance` in ms, `loss` from 0 to 1 or -1 if unknown, `packets_sent`, `packets_received`,
    /// `bytes_sent`, `bytes_received`. Empty: there is no such peer.
    #[func]
    fn get_peer_statistics(&self, peer: i32) -> VarDictionary {
        let Some(connection) = self.link.as_ref().and_then(|link| link.connection(peer)) else {
            return VarDictionary::new();
        };
        let stats = connection.stats();
        let count = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        vdict! {
            "rtt" => stats.rtt.as_secs_f64() * 1000.0,
            "rtt_variance" => stats.rttvar.as_secs_f64() * 1000.0,
            "loss" => stats.loss.unwrap_or(-1.0),
            "packets_sent" => count(stats.sent),
            "packets_received" => count(stats.received),
            "bytes_sent" => count(stats.bytes_sent),
            "bytes_received" => count(stats.bytes_received),
        }
    }

    /// Sends what waits. The peer does it by itself at the end of each frame in which something is sent.
    #[func]
    fn flush(&mut self) {
        self.is_flush_due = false;
        if let Some(link) = &mut self.link {
            link.flush();
        }
    }

    fn create(&mut self, link: impl FnOnce(Settings) -> Result<Link, Error>) -> Error {
        if self.link.is_some() {
            return complain(Error::ERR_ALREADY_IN_USE, "close the peer first");
        }
        match self.settings().and_then(link) {
            Ok(mut link) => {
                if let Link::Host(host) = &mut link {
                    host.is_refusing = self.is_refusing;
                }
                self.link = Some(link);
                Error::OK
            }
            Err(error) => error,
        }
    }

    fn settings(&self) -> Result<Settings, Error> {
        let Ok(key_id) = u8::try_from(self.key_id) else {
            return Err(unconfigured("key_id is out of range"));
        };
        Ok(Settings {
            protocol_id: self.protocol_id.cast_unsigned(),
            channel_count: self.channel_count,
            timeout: self.timeout,
            is_insecure: self.insecure,
            psk: self.psk.to_vec(),
            server_key: self.server_key.to_vec(),
            token: self.token.to_vec(),
            token_key: self.token_key.to_vec(),
            server_id: self.server_id.cast_unsigned(),
            key_id,
            user: self.user.to_vec(),
        })
    }

    fn address(&self, peer: i32) -> Option<SocketAddr> {
        Some(self.link.as_ref()?.connection(peer)?.peer_addr())
    }

    /// Tells scripts what has happened. They may call anything meanwhile; once they close, there is nothing to tell.
    fn tell_all(&mut self, changes: Vec<Change>) {
        for change in changes {
            if self.link.is_some() {
                self.tell(change);
            }
        }
    }

    fn tell(&mut self, change: Change) {
        match change {
            Change::Joined(peer) => {
                self.base_mut().emit_signal("peer_connected", &[peer.to_variant()]);
            }
            Change::Left(peer, end) => self.tell_end(peer, &end),
            Change::Redirected(token) => {
                let token = PackedByteArray::from(token);
                self.signals().redirected().emit(&token);
            }
        }
    }

    fn tell_end(&mut self, peer: i32, end: &End) {
        let code = match end.reason {
            CloseReason::Local(code) | CloseReason::Peer(code) | CloseReason::Rejected(code) => code,
            _ => 0,
        };
        let (text, reason) = (GString::from(&end.text), GString::from(&end.reason.to_string()));
        self.signals().session_closed().emit(i64::from(peer), i64::from(code), &text, &reason);
        if end.had_joined {
            self.base_mut().emit_signal("peer_disconnected", &[peer.to_variant()]);
        }
        if self.link.as_ref().is_some_and(|link| !link.is_host()) {
            self.close();
        }
    }
}

#[godot_api]
impl IMultiplayerPeerExtension for WhitewaterMultiplayerPeer {
    fn init(base: Base<MultiplayerPeerExtension>) -> Self {
        Self {
            base,
            protocol_id: 0,
            channel_count: 4,
            timeout: 20.0,
            insecure: false,
            psk: PackedByteArray::new(),
            server_key: PackedByteArray::new(),
            token: PackedByteArray::new(),
            token_key: PackedByteArray::new(),
            server_id: 0,
            key_id: 0,
            user: PackedByteArray::new(),
            link: None,
            inbox: Inbox::default(),
            later: Vec::new(),
            transfer_mode: TransferMode::RELIABLE,
            transfer_channel: 0,
            target: 0,
            bind_ip: "*".into(),
            is_refusing: false,
            is_flush_due: false,
        }
    }

    fn poll(&mut self) {
        let later = mem::take(&mut self.later);
        self.tell_all(later);
        let Some(link) = &mut self.link else { return };
        let mut changes = Vec::new();
        if let Err(error) = link.poll(&mut self.inbox, &mut changes) {
            godot_error!("the socket fails: {error}");
        }
        // Packets that came before the end are read before scripts hear of it.
        let is_later =
            |change: &mut Change| matches!(change, Change::Left(peer, _) if self.inbox.has_from(*peer));
        self.later = changes.extract_if(.., is_later).collect();
        self.tell_all(changes);
    }

    fn put_packet_script(&mut self, packet: PackedByteArray) -> Error {
        let Some(link) = &mut self.link else { return Error::ERR_UNCONFIGURED };
        let channel = u8::try_from(self.transfer_channel)
            .ok()
            .filter(|channel| i32::from(*channel) < self.channel_count);
        let Some(channel) = channel else {
            return complain(Error::ERR_INVALID_PARAMETER, "the transfer channel is not below channel_count");
        };
        let mode = match self.transfer_mode {
            TransferMode::UNRELIABLE => Mode::Unreliable,
            TransferMode::UNRELIABLE_ORDERED => Mode::UnreliableOrdered,
            _ => Mode::Reliable,
        };
        let sent = link.send(self.target, Lane { mode, channel }, packet.as_slice());
        if !mem::replace(&mut self.is_flush_due, true) {
            self.to_gd().call_deferred("flush", &[]);
        }
        match sent {
            Ok(()) => Error::OK,
            Err(Refused::NoPeer) => complain(Error::ERR_INVALID_PARAMETER, "there is no such target peer"),
            Err(Refused::Send(error)) => complain(Error::FAILED, error),
        }
    }

    fn get_packet_script(&mut self) -> PackedByteArray {
        self.inbox.pop().map(|packet| PackedByteArray::from(&*packet.bytes)).unwrap_or_default()
    }

    fn get_available_packet_count(&self) -> i32 {
        i32::try_from(self.inbox.len()).unwrap_or(i32::MAX)
    }

    fn get_max_packet_size(&self) -> i32 {
        PACKET_MAX.cast_signed()
    }

    fn get_packet_peer(&self) -> i32 {
        self.inbox.next().map_or(0, |packet| packet.peer)
    }

    fn get_packet_channel(&self) -> i32 {
        self.inbox.next().map_or(0, |packet| packet.lane.channel.into())
    }

    fn get_packet_mode(&self) -> TransferMode {
        match self.inbox.next().map(|packet| packet.lane.mode) {
            Some(Mode::Unreliable) => TransferMode::UNRELIABLE,
            Some(Mode::UnreliableOrdered) => TransferMode::UNRELIABLE_ORDERED,
            Some(Mode::Reliable) | None => TransferMode::RELIABLE,
        }
    }

    fn set_transfer_channel(&mut self, channel: i32) {
        self.transfer_channel = channel;
    }

    fn get_transfer_channel(&self) -> i32 {
        self.transfer_channel
    }

    fn set_transfer_mode(&mut self, mode: TransferMode) {
        self.transfer_mode = mode;
    }

    fn get_transfer_mode(&self) -> TransferMode {
        self.transfer_mode
    }

    fn set_target_peer(&mut self, peer: i32) {
        self.target = peer;
    }

    fn is_server(&self) -> bool {
        self.link.as_ref().is_some_and(Link::is_host)
    }

    fn is_server_relay_supported(&self) -> bool {
        true
    }

    fn close(&mut self) {
        self.link = None; // says goodbye
        self.inbox = Inbox::default();
        self.later.clear();
    }

    fn disconnect_peer(&mut self, peer: i32, by_force: bool) {
        match &mut self.link {
            Some(Link::Host(host)) => host.disconnect(peer, by_force, &mut self.inbox),
            Some(Link::Guest(guest)) if peer == SERVER && !by_force => guest.disconnect(),
            Some(Link::Guest(_)) if peer == SERVER => self.close(),
            _ => {}
        }
    }

    fn get_unique_id(&self) -> i32 {
        self.link.as_ref().and_then(Link::id).unwrap_or(0)
    }

    fn set_refuse_new_connections(&mut self, is_refusing: bool) {
        self.is_refusing = is_refusing;
        if let Some(Link::Host(host)) = &mut self.link {
            host.is_refusing = is_refusing;
        }
    }

    fn is_refusing_new_connections(&self) -> bool {
        self.is_refusing
    }

    fn get_connection_status(&self) -> ConnectionStatus {
        match self.link.as_ref().map(Link::id) {
            None => ConnectionStatus::DISCONNECTED,
            Some(None) => ConnectionStatus::CONNECTING,
            Some(Some(_)) => ConnectionStatus::CONNECTED,
        }
    }
}

/// Both families, or IPv4 on systems that have only that.
fn everywhere(port: u16) -> [SocketAddr; 2] {
    [(Ipv6Addr::UNSPECIFIED, port).into(), (Ipv4Addr::UNSPECIFIED, port).into()]
}

fn unconfigured(error: impl std::fmt::Display) -> Error {
    complain(Error::ERR_UNCONFIGURED, error)
}

fn cannot_create(error: std::io::Error) -> Error {
    // The settings are checked where the socket is made.
    let is_setting = error.kind() == std::io::ErrorKind::InvalidInput;
    complain(if is_setting { Error::ERR_UNCONFIGURED } else { Error::ERR_CANT_CREATE }, error)
}

fn complain(error: Error, why: impl std::fmt::Display) -> Error {
    godot_error!("{why}");
    error
}
