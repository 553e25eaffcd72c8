//! The stand-in as a process, on the SDK's port: prints each change. The line `allocate` on its input does what a `GameServerAllocation` does.

use agones_stand_in::{Counter, GameServer, Health, StandIn};
use std::error::Error;
use std::io::stdin;
use std::thread;
use std::time::Duration;

const PORT: u16 = 9357;
/// What the server binds unless it is told otherwise.
const GAME: u16 = 4000;
/// Longer than Agones' default: people start the server.
const DELAY: Duration = Duration::from_secs(600);
const PERIOD: Duration = Duration::from_secs(5);

fn main() -> Result<(), Box<dyn Error>> {
    let health = Health::new(DELAY, PERIOD, 3);
    let players = Some(Counter { count: 0, capacity: 2 });
    let uid = "7a1c9f04-5b0e-4d6f-8a52-3f1f6c0d9e21";
    let game_server = GameServer::scheduled("arena-x2c4v-8kq5t", uid, GAME, players, health);
    let mut stand_in = StandIn::new(PORT, game_server)?;
    stand_in.start()?;
    println!("a stand-in for the sidecar, on port {PORT}");
    let mut changes = stand_in.changes();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build();
        let Ok(runtime) = runtime else { return };
        while runtime.block_on(changes.changed()).is_ok() {
            let now = changes.borrow_and_update().clone();
            println!("{:?}, {:?}, {:?}", now.state, now.players, now.labels);
        }
    });
    for line in stdin().lines() {
        if line?.trim() == "allocate" {
            stand_in.allocate()?;
        }
    }
    Ok(())
}
