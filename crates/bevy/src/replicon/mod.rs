//! A messaging backend for [`bevy_replicon`].
//!
//! Add `RepliconPlugins`, [`WhitewaterPlugins`](crate::WhitewaterPlugins) and [`RepliconBackend`], register everything that is replicated, and make
//! sessions with the channels that replicon wants, by [`RepliconSession`]:
//!
//! ```no_run
//! use bevy::{prelude::*, state::app::StatesPlugin};
//! use bevy_replicon::prelude::*;
//! use bevy_whitewater::replicon::{RepliconBackend, RepliconSession};
//! use bevy_whitewater::{WhitewaterPlugins, WhitewaterServer};
//! use whitewater::ServerConfig;
//!
//! App::new()
//!     .add_plugins((MinimalPlugins, StatesPlugin, RepliconPlugins, WhitewaterPlugins, RepliconBackend))
//!     .add_systems(Startup, host)
//!     .run();
//!
//! fn host(mut commands: Commands, channels: Res<RepliconChannels>) -> Result {
//!     let config = ServerConfig::secret(channels.session(), [7; 32]);
//!     commands.insert_resource(WhitewaterServer::bind("0.0.0.0:4000", &config)?);
//!     Ok(())
//! }
//! ```
//!
//! # What is where
//!
//! - `ServerState` and `ClientState` follow the resources [`WhitewaterServer`](crate::WhitewaterServer) and
//!   [`WhitewaterClient`](crate::WhitewaterClient). While a client connects again, its state is `Connecting`.
//! - The entity of a client has `ConnectedClient`, beside [`ClientSession`](crate::ClientSession). Its `NetworkId` is the client id in its connect token,
//!   and without tokens the number of its session.
//! - `DisconnectRequest`, or despawning the entity, closes a session once everything sent has arrived.
//! - `ClientStats` and `ConnectedClientStats` have the round trip, the loss in percent and bytes a second.
//!
//! # Channels
//!
//! A session has at most 32 channels, and replicon wants one for each event. Two of the same kind, one for each direction, share a channel of
//! the session. Where that is not enough, those that come last share one for each kind. Its messages begin with the number of replicon's channel,
//! and those that are ordered wait for each other.
//!
//! Replicon may ask for an unreliable message that no datagram holds, such as the mutations of one large entity. It is sent reliably instead.

mod backlog;
#[cfg(feature = "client")]
mod client;
mod routes;
#[cfg(all(feature = "server", not(target_arch = "wasm32")))]
mod server;

use crate::rate::Traffic;
use bevy::prelude::*;
use bevy_replicon::prelude::ClientStats;
pub use routes::RepliconSession;
use whitewater::session::ConnectionStats;

/// Connects replicon with the sessions of the app.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "a plugin without settings")]
pub struct RepliconBackend;

impl Plugin for RepliconBackend {
    fn build(&self, app: &mut App) {
        app.init_resource::<RefusedMessages>();
        #[cfg(feature = "client")]
        client::build(app);
        #[cfg(all(feature = "server", not(target_arch = "wasm32")))]
        server::build(app);
    }
}

/// How many messages a peer has sent on a shared channel with the number of no channel of replicon, or of one that does not use it. They are
/// dropped.
#[derive(Clone, Copy, Debug, Default, Deref, Eq, PartialEq, Resource)]
#[expect(clippy::exhaustive_structs, reason = "a counter")]
pub struct RefusedMessages(pub u64);

/// The code that a peer is told when a session ends because replication cannot go on: a message is longer than 16 MiB, or 64 MiB wait.
pub const CANNOT_REPLICATE: u16 = 0xfe00;

/// As replicon wants them: seconds, percent, bytes a second.
fn stats(stats: &ConnectionStats, traffic: Traffic) -> ClientStats {
    ClientStats {
        rtt: stats.rtt.as_secs_f64(),
        packet_loss: stats.loss.unwrap_or_default() * 1e2,
        sent_bps: traffic.sent,
        received_bps: traffic.received,
    }
}
