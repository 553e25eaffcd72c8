//! A game in a page. The server is a native program, which lets browsers in and prints where, as JSON. The client is the same program for wasm32.
//! It takes that JSON from the global `place` of its page, and writes what it sees of the world into the global `seen`. `tests/run.sh` plays it.

#[cfg(target_arch = "wasm32")]
mod client;
#[cfg(not(target_arch = "wasm32"))]
mod server;

use bevy::app::ScheduleRunnerPlugin;
use bevy::prelude::*;
use bevy::state::app::StatesPlugin;
use bevy_replicon::prelude::*;
use bevy_whitewater::WhitewaterPlugins;
use bevy_whitewater::replicon::RepliconBackend;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How often a player has clicked. A cookie belongs to the server, and everybody sees it.
#[derive(Component, Debug, Default, Deserialize, Serialize)]
struct Cookie {
    clicks: u32,
}

/// A player has clicked so often since the last frame.
#[derive(Debug, Deserialize, Event, Message, Serialize)]
struct Click(u32);

const SECRET: [u8; 32] = [7; 32]; // for this machine only

/// What both ends have to know of the game.
fn game() -> App {
    let mut app = App::new();
    app.add_plugins((
        MinimalPlugins.set(ScheduleRunnerPlugin::run_loop(Duration::from_millis(16))),
        StatesPlugin,
        RepliconPlugins,
        WhitewaterPlugins,
        RepliconBackend,
    ))
    .replicate::<Cookie>()
    .add_client_message::<Click>(Channel::Ordered);
    app
}

fn main() {
    #[cfg(not(target_arch = "wasm32"))]
    server::play(game());
    #[cfg(target_arch = "wasm32")]
    client::play(game());
}
