//! The server: it owns the state of the game and sends each session what concerns it.

use crate::bot::Bot;
use crate::map;
use crate::protocol::{
    BYE, Inputs, LINES, Line, MAP, PICKUPS, POSITIONS, Pickup, Place, Positions, SAID, SECRET, session,
};
use std::collections::BTreeMap;
use std::error::Error;
use std::net::Ipv4Addr;
use whitewater::channel::SendError;
use whitewater::session::ConnectionStats;
use whitewater::{CloseReason, Event, Server, ServerConfig, SessionId};

pub(crate) struct Arena {
    pub(crate) server: Server,
    /// The map as it was at the start, and as it is.
    drawn: Vec<u8>,
    map: Vec<u8>,
    players: BTreeMap<SessionId, Player>,
    expected: usize,
    /// Sessions that ended properly, and those that did not.
    gone: usize,
    lost: usize,
}

#[derive(Default)]
struct Player {
    place: Place,
    /// The newest frame whose keys were applied.
    newest: u32,
    has_left: bool,
    /// What it was sent, to compare.
    lines: u32,
    pickups: u32,
}

impl Arena {
    /// A server for this many players.
    pub(crate) fn new(players: u8, seed: u64) -> Result<Self, Box<dyn Error>> {
        let many = u16::from(players);
        let config = ServerConfig {
            // All players have the same address here and arrive at once. The default limits are for strangers.
            sessions_per_address: many,
            half_open_per_address: many,
            accept_burst: u32::from(many) * 4,
            ..ServerConfig::secret(session(), SECRET)
        };
        let drawn = map::draw(seed);
        Ok(Self {
            server: Server::bind((Ipv4Addr::LOCALHOST, 0), &config)?,
            map: drawn.clone(),
            drawn,
            players: BTreeMap::new(),
            expected: players.into(),
            gone: 0,
            lost: 0,
        })
    }

    /// Receives what has arrived and sends what is due. A dedicated server calls this once per frame.
    pub(crate) fn pump(&mut self) -> Result<(), Box<dyn Error>> {
        self.server.pump()?;
        while let Some((id, event)) = self.server.poll_event() {
            match event {
                Event::Connected => self.welcome(id)?,
                Event::Readable => self.read(id)?,
                Event::Closed { reason, undelivered } => {
                    let is_well = matches!(reason, CloseReason::Local(0)) && undelivered.is_empty();
                    *(if is_well { &mut self.gone } else { &mut self.lost }) += 1;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Sends everybody what has happened, 20 times a second.
    pub(crate) fn tick(&mut self) -> Result<(), Box<dyn Error>> {
        let places: Vec<_> = self.players.values().map(|player| player.place).collect();
        for (you, id) in (0..).zip(self.players.keys()) {
            let positions = Positions { you, players: places.clone() };
            // It may be late or lost: the next one replaces it.
            let _ = self.server.send(*id, POSITIONS, &positions);
        }
        // Close only when everybody has said goodbye, because a closed session receives nothing more.
        let has_left = self.players.values().filter(|player| player.has_left).count();
        if has_left == self.expected {
            for id in self.players.keys() {
                self.server.close(*id, 0);
            }
        }
        Ok(())
    }

    /// Whether all players have come and gone.
    pub(crate) const fn is_over(&self) -> bool {
        self.gone + self.lost >= self.expected
    }

    fn welcome(&mut self, id: SessionId) -> Result<(), Box<dyn Error>> {
        let at = 30.0 + 3.0 * self.players.len() as f32;
        self.players.insert(id, Player { place: Place { x: at, y: 60.0 }, ..Player::default() });
        // Items taken before are missing from the map; items taken later are reported.
        Ok(self.server.send(id, MAP, &self.map)?)
    }

    fn read(&mut self, id: SessionId) -> Result<(), Box<dyn Error>> {
        while let Some(datagram) = self.server.recv_datagram(id) {
            if let Some(inputs) = Inputs::decode(&datagram) {
                self.play(id, &inputs)?;
            }
        }
        while let Some(text) = self.server.recv(id, SAID) {
            self.say(id, &text)?;
        }
        Ok(())
    }

    /// Moves a player by the new keys, the oldest first.
    fn play(&mut self, id: SessionId, inputs: &Inputs) -> Result<(), Box<dyn Error>> {
        let Some(player) = self.players.get_mut(&id) else { return Ok(()) };
        let fresh = usize::try_from(inputs.newest.saturating_sub(player.newest))?.min(inputs.keys.len());
        player.newest = player.newest.max(inputs.newest);
        let mut taken = Vec::new();
        for keys in inputs.keys.iter().take(fresh).rev() {
            player.place = map::step(player.place, *keys);
            let tile = map::tile(player.place);
            if map::take(&mut self.map, tile) {
                taken.push(tile);
            }
        }
        let by = u8::try_from(self.players.range(..id).count())?;
        for tile in taken {
            for (id, player) in &mut self.players {
                match self.server.send(*id, PICKUPS, &Pickup { tile, by }) {
                    Ok(()) => player.pickups += 1,
                    Err(SendError::Closed) => {} // it has just left, and its `Closed` event is still waiting
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(())
    }

    /// Sends a chat line to everybody.
    fn say(&mut self, id: SessionId, text: &str) -> Result<(), Box<dyn Error>> {
        if let Some(player) = self.players.get_mut(&id) {
            player.has_left |= text == BYE;
        }
        for (id, player) in &mut self.players {
            let line = Line { number: player.lines, text: text.to_owned() };
            match self.server.send(*id, LINES, &line) {
                Ok(()) => player.lines += 1,
                Err(SendError::Closed) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// The statistics of a bot's session at this end.
    pub(crate) fn stats(&self, bot: &Bot) -> Option<ConnectionStats> {
        let of_bot = |id: &SessionId| {
            Some(self.server.connection(*id)?).filter(|session| session.user() == [bot.number()])
        };
        Some(self.players.keys().find_map(of_bot)?.stats())
    }

    /// Compares what was sent with what the bots received. An error says what is missing.
    pub(crate) fn judge(&self, bots: &[Bot]) -> Result<(), String> {
        let mut sent: Vec<_> = self.players.values().map(|player| (player.lines, player.pickups)).collect();
        let mut got: Vec<_> = bots.iter().map(Bot::heard).collect();
        sent.sort_unstable();
        got.sort_unstable();
        if self.lost > 0 {
            return Err(format!("{} sessions did not end as they should", self.lost));
        }
        if sent != got {
            return Err(format!("lines and pickups sent: {sent:?}, arrived: {got:?}"));
        }
        if let Some(bot) = bots.iter().find(|bot| bot.map() != Some(&self.map)) {
            return Err(format!("player {} has another map", bot.number()));
        }
        let (lines, pickups) =
            sent.iter().fold((0, 0), |(lines, pickups), one| (lines + one.0, pickups + one.1));
        let took = self.drawn.iter().zip(&self.map).filter(|(was, is)| was != is).count();
        println!(
            "\n{} maps of {} KiB, {lines} lines of talk in order, {pickups} pickups of {took} things: all arrived, each once",
            bots.len(),
            self.map.len() >> 10,
        );
        Ok(())
    }
}
