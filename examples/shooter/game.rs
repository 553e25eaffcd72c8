//! The game itself: a field, players who run and shoot, and bots. It knows nothing of the network, except how many bits its types take.

use std::collections::BTreeMap;
use whitewater::Message;

/// What a player does in one frame.
#[derive(Clone, Copy, Debug, Default, Message, PartialEq)]
pub(crate) struct Keys {
    /// Parts of full speed.
    #[float(-1.0..=1.0, 0.1)]
    pub(crate) right: f32,
    #[float(-1.0..=1.0, 0.1)]
    pub(crate) down: f32,
    /// Degrees, from the right, clockwise.
    #[float(-180.0..=180.0, 0.5)]
    pub(crate) aim: f32,
    pub(crate) fire: bool,
}

/// The last frames of a player: a lost message is in the next one.
#[derive(Clone, Copy, Debug, Default, Message)]
pub(crate) struct Inputs {
    /// The number of the newest frame.
    pub(crate) newest: u32,
    /// The newest first.
    pub(crate) keys: [Keys; REDUNDANCY as usize],
}

/// The world as one player is told it.
#[derive(Clone, Debug, Default, Message)]
pub(crate) struct Snapshot {
    /// The number of the world's frame.
    pub(crate) frame: u32,
    /// Which of the soldiers is theirs.
    pub(crate) you: u32,
    #[max_len(PLAYERS as usize)]
    pub(crate) soldiers: Vec<Soldier>,
}

#[derive(Clone, Copy, Debug, Message)]
pub(crate) struct Soldier {
    pub(crate) id: u32,
    #[float(0.0..=256.0, 0.05)]
    pub(crate) x: f32,
    #[float(0.0..=256.0, 0.05)]
    pub(crate) y: f32,
    #[bits(0..=100)]
    pub(crate) health: u8,
    pub(crate) score: u16,
}

/// What is true, at the server.
#[derive(Debug, Default)]
pub(crate) struct World {
    frame: u32,
    players: BTreeMap<u32, Player>,
}

#[derive(Debug)]
struct Player {
    name: String,
    soldier: Soldier,
    /// The newest frame of theirs that was played, and how many were in all.
    newest: u32,
    played: u32,
    /// The frame from which they may shoot again, and how often they did not wait.
    loaded_at: u32,
    cheated: u32,
}

impl World {
    pub(crate) fn join(&mut self, id: u32, name: String) {
        let (x, y) = (40.0 + 60.0 * (self.players.len() % 4) as f32, 100.0);
        let soldier = Soldier { id, x, y, health: 100, score: 0 };
        let player = Player { name, soldier, newest: 0, played: 0, loaded_at: 0, cheated: 0 };
        self.players.insert(id, player);
    }

    /// Returns the name of the one who has left.
    pub(crate) fn leave(&mut self, id: u32) -> String {
        self.players.remove(&id).map_or_else(String::new, |player| player.name)
    }

    pub(crate) fn name(&self, id: u32) -> &str {
        self.players.get(&id).map_or("", |player| &player.name)
    }

    /// Frames of a player that were played.
    pub(crate) fn played(&self, name: &str) -> u32 {
        self.players.values().find(|player| player.name == name).map_or(0, |player| player.played)
    }

    /// Plays what is new of the frames of a player, the oldest first.
    pub(crate) fn play(&mut self, id: u32, inputs: &Inputs) {
        let Some(player) = self.players.get_mut(&id) else { return };
        let fresh = inputs.newest.saturating_sub(player.newest);
        player.newest += fresh;
        for (age, keys) in (0..fresh.min(REDUNDANCY)).zip(&inputs.keys).rev() {
            let Some(player) = self.players.get_mut(&id) else { return };
            let go = |from: f32, by: f32| (from + SPEED * by).clamp(0.0, FIELD);
            player.soldier.x = go(player.soldier.x, keys.right);
            player.soldier.y = go(player.soldier.y, keys.down);
            player.played += 1;
            let frame = inputs.newest - age;
            if keys.fire && frame < player.loaded_at {
                player.cheated += 1;
            } else if keys.fire {
                player.loaded_at = frame.saturating_add(RELOAD);
                self.shoot(id, keys.aim);
            }
        }
    }

    /// Those who shoot faster than they reload.
    pub(crate) fn cheaters(&self) -> Vec<u32> {
        let cheaters = self.players.iter().filter(|(_, player)| player.cheated > PATIENCE);
        cheaters.map(|(id, _)| *id).collect()
    }

    fn shoot(&mut self, id: u32, aim: f32) {
        let Some(Soldier { x, y, .. }) = self.players.get(&id).map(|player| player.soldier) else { return };
        let (down, right) = aim.to_radians().sin_cos();
        let mut score = 0;
        for (_, player) in self.players.iter_mut().filter(|(other, _)| **other != id) {
            let (to_x, to_y) = (player.soldier.x - x, player.soldier.y - y);
            let (along, beside) = (to_x * right + to_y * down, to_x * down - to_y * right);
            if along > 0.0 && along < RANGE && beside.abs() < 1.0 {
                player.soldier.health = player.soldier.health.saturating_sub(DAMAGE);
                if player.soldier.health == 0 {
                    player.soldier.health = 100;
                    score += 1;
                }
            }
        }
        if let Some(player) = self.players.get_mut(&id) {
            player.soldier.score += score;
        }
    }

    /// Ends a frame, and returns its number.
    pub(crate) const fn step(&mut self) -> u32 {
        self.frame += 1;
        self.frame
    }

    pub(crate) fn seen_by(&self, you: u32) -> Snapshot {
        let soldiers = self.players.values().map(|player| player.soldier).collect();
        Snapshot { frame: self.frame, you, soldiers }
    }
}

/// What a player knows, at a client; and what a bot does about it.
#[derive(Debug, Default)]
pub(crate) struct View {
    pub(crate) snapshot: Snapshot,
    inputs: Inputs,
    /// What has come: snapshots, levels that are whole, and what was said.
    pub(crate) snapshots: u32,
    pub(crate) levels: u32,
    pub(crate) heard: Vec<String>,
    /// Whether it shoots in each frame.
    pub(crate) cheats: bool,
}

impl View {
    pub(crate) fn see(&mut self, snapshot: Snapshot) {
        self.snapshot = snapshot;
        self.snapshots += 1;
    }

    pub(crate) fn load(&mut self, tiles: &[u8]) {
        self.levels += u32::from(tiles == level());
    }

    pub(crate) fn hear(&mut self, line: String) {
        println!("{}", line.replace(char::is_control, " ")); // nobody shall move the cursor of others
        self.heard.push(line);
    }

    /// The next frame of a bot: it runs to the nearest of the others, and shoots.
    pub(crate) fn play(&mut self) -> &Inputs {
        let Snapshot { you, ref soldiers, .. } = self.snapshot;
        let mut keys = Keys::default();
        if let Some(me) = soldiers.iter().find(|soldier| soldier.id == you) {
            let others = soldiers.iter().filter(|soldier| soldier.id != you);
            let ways = others.map(|other| (other.x - me.x, other.y - me.y));
            if let Some((x, y)) = ways.min_by(|a, b| a.0.hypot(a.1).total_cmp(&b.0.hypot(b.1))) {
                let step = |way: f32| if way.abs() < 4.0 { 0.0 } else { way.signum() };
                let aim = y.atan2(x).to_degrees();
                let fire = self.cheats || self.inputs.newest.is_multiple_of(RELOAD);
                keys = Keys { right: step(x), down: step(y), aim, fire };
            }
        }
        self.inputs.newest += 1;
        self.inputs.keys.rotate_right(1);
        self.inputs.keys[0] = keys;
        &self.inputs
    }
}

/// The level: as many tiles as 300 KB are.
pub(crate) fn level() -> Vec<u8> {
    (0..300_000_u32).map(|tile| (tile.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

/// Most players: so many fit into a snapshot of one packet.
pub(crate) const PLAYERS: u16 = 64;
/// Frames in each message of inputs: so many in a row have to get lost before one is missing.
const REDUNDANCY: u32 = 6;
/// The length of the field's sides, and how far bullets fly.
const FIELD: f32 = 256.0;
const RANGE: f32 = 60.0;
/// A frame at full speed.
const SPEED: f32 = 0.4;
/// Frames from one shot to the next, and how often somebody may try before.
const RELOAD: u32 = 20;
const PATIENCE: u32 = 10;
/// Of a health of 100.
const DAMAGE: u8 = 20;
