//! The places of players. A place is kept for a minute while its player is away.

use super::PeerId;
use crate::sim::rules::{HZ, PLAYERS};
use crate::sim::{PlayerId, Role};
use crate::wire::{self, Hello, Message, NAME_MAX, Wish};
use std::collections::BTreeMap;
use std::iter::once;
use thiserror::Error;

#[derive(Debug, Default)]
pub(super) struct Seats {
    seats: BTreeMap<PlayerId, Seat>,
}

#[derive(Debug)]
struct Seat {
    /// The name that the player asked for, and the one that they got.
    said: String,
    name: String,
    ticket: u64,
    role: Role,
    /// The connection of the player, or since when there is none.
    by: Result<PeerId, u32>,
}

/// A place that was given to somebody.
pub(super) struct Taken {
    pub(super) player: PlayerId,
    pub(super) role: Role,
    /// Whether the player was here before.
    pub(super) is_back: bool,
    /// An older connection of the same player.
    pub(super) replaces: Option<PeerId>,
}

/// Why somebody is not let in.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum JoinError {
    /// The data in the handshake is not a hello of this game.
    #[error("not a player of this game")]
    Malformed,
    /// All places are taken.
    #[error("all places are taken")]
    Full,
}

impl Seats {
    /// Gives somebody a place. `None`: they only watch.
    pub(super) fn take(&mut self, hello: &Hello, by: PeerId) -> Result<Option<Taken>, JoinError> {
        if hello.wish == Wish::Watch {
            return Ok(None);
        }
        let is_same = |seat: &Seat| seat.ticket == hello.ticket && seat.said == hello.name;
        if let Some((player, seat)) = self.seats.iter_mut().find(|(_, seat)| is_same(seat)) {
            let replaces = std::mem::replace(&mut seat.by, Ok(by)).ok();
            return Ok(Some(Taken { player: *player, role: seat.role, is_back: true, replaces }));
        }
        let player =
            PlayerId::all().find(|player| !self.seats.contains_key(player)).ok_or(JoinError::Full)?;
        let role = self.role(hello.wish);
        let name = self.own_name(&hello.name, player);
        let said = hello.name.clone();
        self.seats.insert(player, Seat { said, name, ticket: hello.ticket, role, by: Ok(by) });
        Ok(Some(Taken { player, role, is_back: false, replaces: None }))
    }

    /// The places as another server needs them. Whoever has the ticket `host` will not come back at once.
    pub(super) fn will(&self, host: Option<u64>) -> Vec<wire::Seat> {
        let seat = |(player, seat): (&PlayerId, &Seat)| wire::Seat {
            player: *player,
            said: seat.said.clone(),
            name: seat.name.clone(),
            ticket: seat.ticket,
            role: seat.role,
            is_here: seat.by.is_ok() && host != Some(seat.ticket),
        };
        self.seats.iter().map(seat).collect()
    }

    /// The places of another server, whose players are all away since `now`.
    pub(super) fn resume(seats: Vec<wire::Seat>, now: u32) -> Self {
        let seat = |wire::Seat { player, said, name, ticket, role, .. }| {
            (player, Seat { said, name, ticket, role, by: Err(now) })
        };
        Self { seats: seats.into_iter().map(seat).collect() }
    }

    /// Whether the player in this place is connected.
    pub(super) fn is_here(&self, player: PlayerId) -> bool {
        self.seats.get(&player).is_some_and(|seat| seat.by.is_ok())
    }

    /// A connection is over. Returns whose it was.
    pub(super) fn leave(&mut self, peer: PeerId, now: u32) -> Option<PlayerId> {
        let (player, seat) = self.seats.iter_mut().find(|(_, seat)| seat.by == Ok(peer))?;
        seat.by = Err(now);
        Some(*player)
    }

    /// Frees the places of players who have been away for too long.
    pub(super) fn expired(&mut self, now: u32) -> Vec<PlayerId> {
        let is_over = |seat: &Seat| seat.by.is_err_and(|since| now >= since + KEPT);
        let over = self.seats.iter().filter(|(_, seat)| is_over(seat)).map(|(player, _)| *player);
        let over: Vec<PlayerId> = over.collect();
        self.seats.retain(|player, _| !over.contains(player));
        over
    }

    /// What everybody is told about a place.
    pub(super) fn message(&self, player: PlayerId) -> Option<Message> {
        let Seat { name, role, by, .. } = self.seats.get(&player)?;
        Some(Message::Player { player, role: *role, is_here: by.is_ok(), name: name.clone() })
    }

    /// The role that the player wants or that is needed: one builder for every three runners.
    fn role(&self, wish: Wish) -> Role {
        let count = |role| self.seats.values().filter(|seat| seat.role == role).count();
        match wish {
            Wish::Build => Role::Builder,
            Wish::Run => Role::Runner,
            _ if 3 * count(Role::Builder) <= count(Role::Runner) => Role::Builder,
            _ => Role::Runner,
        }
    }

    /// A name that no other player has, of visible letters.
    fn own_name(&self, name: &str, player: PlayerId) -> String {
        let said = wire::shown(name);
        let said = said.trim();
        let is_free = |name: &str| !name.is_empty() && self.seats.values().all(|seat| seat.name != name);
        // A few more than there are players, so one of them is free.
        let numbers = (1..=PLAYERS).map(|more| format!("#{player}.{more}"));
        let mut numbers = once(format!("#{player}")).chain(numbers);
        let mut name = said.to_owned();
        while !is_free(&name)
            && let Some(number) = numbers.next()
        {
            name = said.to_owned();
            while name.len() + number.len() > NAME_MAX {
                name.pop();
            }
            name.push_str(&number);
        }
        name
    }
}

/// Ticks for which a place is kept.
const KEPT: u32 = 60 * HZ;
