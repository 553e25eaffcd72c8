//! Bevy over [`whitewater`]: encrypted sessions on UDP, and in browsers, as resources of an app.
//!
//! There are two ways to use it. Games that replicate by hand send and read messages on channels:
//!
//! ```no_run
//! use bevy::prelude::*;
//! use bevy_whitewater::{ReceiveAppExt, Received, WhitewaterPlugins, WhitewaterServer};
//! use whitewater::{Channel, ServerConfig, SessionConfig};
//!
//! const CHAT: Channel = Channel::ordered(0);
//!
//! App::new()
//!     .add_plugins((MinimalPlugins, WhitewaterPlugins))
//!     .receive(CHAT)
//!     .add_systems(Startup, host)
//!     .add_systems(Update, echo)
//!     .run();
//!
//! fn host(mut commands: Commands) -> Result {
//!     let config = ServerConfig::secret(SessionConfig::default(), [7; 32]);
//!     commands.insert_resource(WhitewaterServer::bind("0.0.0.0:4000", &config)?);
//!     Ok(())
//! }
//!
//! fn echo(mut server: ResMut<WhitewaterServer>, mut chat: MessageReader<Received>) -> Result {
//!     for Received { client, message, .. } in chat.read() {
//!         if let Some(client) = *client {
//!             server.send(client, CHAT, message)?;
//!         }
//!     }
//!     Ok(())
//! }
//! ```
//!
//! Games with [bevy_replicon](https://docs.rs/bevy_replicon) replicate entities and events: the module `replicon` has the backend.
//!
//! # Frames
//!
//! Datagrams are read in [`WhitewaterSystems::Receive`], in `PreUpdate`. What has happened is there as a [`SessionEvent`] and as [`Received`]
//! messages in the same frame. What was sent leaves in [`WhitewaterSystems::Send`], in `PostUpdate`. So a client's input takes effect in the
//! frame in which it reaches the server. Acknowledgements and resends leave then as well: run at least 30 frames a second, even on a server
//! without a screen.
//!
//! # The end
//!
//! [`SessionEvent`] reports the end of a session, and why. To stop, remove the resource: the peers are told, and what has
//! not arrived yet is lost. To let everything arrive, call `close` and wait for the event.

/// The code of the page is a doc test.
#[cfg(all(doctest, feature = "replicon", not(target_arch = "wasm32")))]
#[doc = include_str!("../../../docs/engines/BEVY.md")]
mod book {}

#[cfg(feature = "client")]
mod client;
mod diagnostics;
mod event;
mod rate;
#[cfg(feature = "replicon")]
pub mod replicon;
#[cfg(all(feature = "server", not(target_arch = "wasm32")))]
mod server;

use bevy::app::PluginGroupBuilder;
use bevy::prelude::*;
#[cfg(feature = "client")]
pub use client::{Reconnect, TokenWanted, Tokens, WhitewaterClient, WhitewaterClientPlugin};
pub use diagnostics::{
    BYTES_RECEIVED, BYTES_SENT, CLIENTS, LOSS, REPAIRED, RESENT, RTT, WhitewaterDiagnosticsPlugin,
};
pub use event::{ReceiveAppExt, Received, SessionEvent};
pub use rate::Traffic;
#[cfg(all(feature = "server", not(target_arch = "wasm32")))]
pub use server::{ClientEntities, ClientPass, ClientSession, WhitewaterServer, WhitewaterServerPlugin};

/// How often a server looks at the statistics of all of its clients.
#[cfg(all(feature = "server", not(target_arch = "wasm32")))]
const STATS_EACH: std::time::Duration = std::time::Duration::from_millis(250);

/// When datagrams are read and sent.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, SystemSet)]
#[expect(clippy::exhaustive_enums, reason = "a frame has two ends")]
pub enum WhitewaterSystems {
    /// In `PreUpdate`: reads, and reports what has happened.
    Receive,
    /// In `PostUpdate`: sends.
    Send,
}

/// Clients and servers, as far as the features are on.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "a group has no settings")]
pub struct WhitewaterPlugins;

/// The part of [`WhitewaterSystems::Receive`] in which messages are taken from sessions.
#[derive(Clone, Debug, Eq, Hash, PartialEq, SystemSet)]
struct Reading;

impl PluginGroup for WhitewaterPlugins {
    fn build(self) -> PluginGroupBuilder {
        let group = PluginGroupBuilder::start::<Self>();
        #[cfg(feature = "client")]
        let group = group.add(WhitewaterClientPlugin);
        #[cfg(all(feature = "server", not(target_arch = "wasm32")))]
        let group = group.add(WhitewaterServerPlugin);
        group
    }
}
