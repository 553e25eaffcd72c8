//! A game of [lightyear](https://docs.rs/lightyear) over encrypted sessions, without a window: a server that returns messages, and clients that
//! count what comes back.
//!
//! [`io::AeronetOverWhitewater`] carries packets of `aeronet_io`, and [`link::LightyearOverWhitewater`] makes links of them. Games take these
//! two files.

mod io;
mod link;
#[cfg(test)]
mod tests;

use bevy::app::ScheduleRunnerPlugin;
use bevy::log::LogPlugin;
use bevy::prelude::*;
use bevy_whitewater::WhitewaterPlugins;
use clap::Parser;
use io::AeronetOverWhitewater;
use lightyear::prelude::client::{ClientPlugins, Disconnected, RawClient};
use lightyear::prelude::server::{ClientOf, RawServer, ServerPlugins};
use lightyear::prelude::{
    AppChannelExt, AppMessageExt, ChannelMode, ChannelSettings, LinkStart, MessageReceiver, MessageSender,
    NetworkDirection, ReliableSettings,
};
use link::LightyearOverWhitewater;
use serde::{Deserialize, Serialize};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use whitewater::{ClientConfig, ServerConfig};

/// Both know it. A game has connect tokens, or 32 random bytes.
const SECRET: [u8; 32] = [7; 32];
const PROTOCOL_ID: u64 = 22;
const FRAME: Duration = Duration::from_nanos(1_000_000_000 / 60);

/// What a client sends and the server returns.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
struct Ping {
    number: u32,
    filling: Vec<u8>,
}

/// Lightyear resends what is lost on it.
struct Reliable;

/// Messages of lightyear that are returned.
#[derive(Parser)]
enum Cli {
    /// Return messages.
    Server {
        #[arg(default_value_t = (Ipv4Addr::UNSPECIFIED, 5000).into())]
        at: SocketAddr,
    },
    /// Send messages to a server.
    Client {
        #[arg(default_value_t = (Ipv4Addr::LOCALHOST, 5000).into())]
        to: SocketAddr,
    },
}

fn main() {
    let end = Cli::parse();
    let mut app = App::new();
    app.add_plugins((MinimalPlugins.set(ScheduleRunnerPlugin::run_loop(FRAME)), LogPlugin::default()));
    match end {
        Cli::Server { at } => serve(&mut app, at),
        Cli::Client { to } => play(&mut app, to),
    };
    app.add_observer(|at: On<Add, Disconnected>, all: Query<&Disconnected>| {
        info!("{:?}", all.get(at.entity))
    });
    app.run();
}

fn serve(app: &mut App, at: SocketAddr) -> Entity {
    app.add_plugins((WhitewaterPlugins, AeronetOverWhitewater))
        .add_plugins((ServerPlugins { tick_duration: FRAME }, LightyearOverWhitewater));
    protocol(app);
    app.add_systems(Update, answer);
    let config = ServerConfig::secret(io::session(PROTOCOL_ID), SECRET);
    start(app, (RawServer, link::server(at, config)))
}

fn play(app: &mut App, to: SocketAddr) -> Entity {
    app.add_plugins((WhitewaterPlugins, AeronetOverWhitewater))
        .add_plugins((ClientPlugins { tick_duration: FRAME }, LightyearOverWhitewater));
    protocol(app);
    app.init_resource::<Returned>().add_systems(Update, (ask, count).chain());
    let config = ClientConfig::secret(io::session(PROTOCOL_ID), SECRET);
    start(app, (RawClient, link::client(to, config)))
}

fn protocol(app: &mut App) {
    let reliable = ChannelMode::OrderedReliable(ReliableSettings::default());
    app.add_channel::<Reliable>(ChannelSettings { mode: reliable, ..ChannelSettings::default() })
        .add_direction(NetworkDirection::Bidirectional);
    app.register_message::<Ping>().add_direction(NetworkDirection::Bidirectional);
}

fn start(app: &mut App, link: impl Bundle) -> Entity {
    let entity = app.world_mut().spawn(link).id();
    app.world_mut().trigger(LinkStart { entity });
    entity
}

/// At the server.
fn answer(mut clients: Query<(&mut MessageReceiver<Ping>, &mut MessageSender<Ping>), With<ClientOf>>) {
    for (mut asked, mut answers) in &mut clients {
        asked.receive().for_each(|ping| answers.send::<Reliable>(ping));
    }
}

/// What has come back to a client.
#[derive(Default, Resource)]
struct Returned(Vec<Ping>);

/// At a client: a message in each frame.
fn ask(mut server: Query<&mut MessageSender<Ping>>, mut next: Local<u32>) {
    for mut sender in &mut server {
        sender.send::<Reliable>(Ping { number: *next, ..Ping::default() });
        *next += 1;
    }
}

fn count(mut server: Query<&mut MessageReceiver<Ping>>, mut returned: ResMut<Returned>) {
    let before = returned.0.len();
    returned.0.extend(server.iter_mut().flat_map(|mut receiver| receiver.receive().collect::<Vec<_>>()));
    if before / 60 < returned.0.len() / 60 {
        info!("{} returned", returned.0.len());
    }
}
