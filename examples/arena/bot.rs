//! A player without a keyboard.

use crate::map;
use crate::protocol::{
    BYE, Inputs, LINES, MAP, PICKUPS, POSITIONS, Pickup, Place, REDUNDANCY, SAID, SECRET, session,
};
use std::collections::BTreeSet;
use std::error::Error;
use std::net::SocketAddr;
use whitewater::session::ConnectionStats;
use whitewater::{Client, ClientConfig, CloseReason, Event};

pub(crate) struct Bot {
    client: Client,
    number: u8,
    is_up: bool,
    is_gone: bool,
    /// `Some` once it has arrived; includes what was taken since.
    map: Option<Vec<u8>>,
    taken: BTreeSet<u16>,
    place: Option<Place>,
    inputs: Inputs,
    /// Positions received, for the table.
    pub(crate) positions: u32,
    lines: u32,
    has_left: bool,
}

impl Bot {
    /// Starts to connect to the server at `at`.
    pub(crate) fn new(at: SocketAddr, number: u8) -> Result<Self, Box<dyn Error>> {
        let config = ClientConfig { user: vec![number], ..ClientConfig::secret(session(), SECRET) };
        Ok(Self {
            client: Client::connect(at, &config)?,
            number,
            is_up: false,
            is_gone: false,
            map: None,
            taken: BTreeSet::new(),
            place: None,
            inputs: Inputs { newest: 0, keys: [0; REDUNDANCY] },
            positions: 0,
            lines: 0,
            has_left: false,
        })
    }

    /// Receives what has arrived and sends what is due.
    pub(crate) fn pump(&mut self) -> Result<(), Box<dyn Error>> {
        self.client.pump()?;
        while let Some(event) = self.client.poll_event() {
            match event {
                Event::Connected => self.is_up = true,
                Event::Readable => self.read()?,
                Event::Closed { reason: CloseReason::Peer(0), .. } => self.is_gone = true,
                // Every goodbye of the server was lost; it had nothing else to say.
                Event::Closed { reason: CloseReason::Timeout, .. } if self.has_left => self.is_gone = true,
                Event::Closed { reason, .. } => {
                    return Err(format!("player {}: {reason}", self.number).into());
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Plays one frame: keys, and chat now and then.
    pub(crate) fn frame(&mut self, frame: u32, is_last: bool) -> Result<(), Box<dyn Error>> {
        if !self.is_up || self.has_left {
            return Ok(());
        }
        if let (Some(map), Some(place), false) = (&self.map, self.place, is_last) {
            self.inputs.keys.rotate_right(1);
            let [newest, ..] = &mut self.inputs.keys;
            (*newest, self.inputs.newest) = (map::way(map, place), frame);
            // If the queue is full or the datagram is lost, the next one contains these keys as well.
            let _ = self.client.send_datagram(&self.inputs.encode());
        }
        if is_last && self.map.is_some() {
            self.has_left = true;
            self.client.send(SAID, &BYE.to_owned())?;
        } else if frame % TALK == u32::from(self.number) % TALK {
            let line = format!("player {} in frame {frame}: {}", self.number, "mine! ".repeat(5));
            self.client.send(SAID, &line)?;
        }
        self.client.flush(); // keys do not wait for the next pump
        Ok(())
    }

    fn read(&mut self) -> Result<(), Box<dyn Error>> {
        while let Some(positions) = self.client.recv(POSITIONS) {
            self.place = positions.players.get(usize::from(positions.you)).copied();
            self.positions += 1;
        }
        while let Some(map) = self.client.recv(MAP) {
            self.map = Some(map.into());
        }
        while let Some(Pickup { tile, .. }) = self.client.recv(PICKUPS) {
            if !self.taken.insert(tile) {
                return Err(format!("player {} is told of tile {tile} twice", self.number).into());
            }
        }
        if let Some(map) = &mut self.map {
            for tile in &self.taken {
                map::take(map, *tile); // received before the map was there, or now
            }
        }
        while let Some(line) = self.client.recv(LINES) {
            if line.number != self.lines {
                return Err(format!("player {} has missed line {}", self.number, self.lines).into());
            }
            self.lines += 1;
        }
        Ok(())
    }

    /// Lines and pickups received.
    pub(crate) fn heard(&self) -> (u32, u32) {
        (self.lines, u32::try_from(self.taken.len()).unwrap_or(u32::MAX))
    }

    pub(crate) const fn map(&self) -> Option<&Vec<u8>> {
        self.map.as_ref()
    }

    pub(crate) const fn number(&self) -> u8 {
        self.number
    }

    /// Whether the server has said goodbye.
    pub(crate) const fn is_gone(&self) -> bool {
        self.is_gone
    }

    /// The statistics of its session.
    pub(crate) fn stats(&self) -> Option<ConnectionStats> {
        Some(self.client.connection()?.stats())
    }
}

/// Frames between two chat lines of a bot.
const TALK: u32 = 45;
