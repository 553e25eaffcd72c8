//! Players, events and chat.

use super::view::{Line, PlayerView, View};
use crate::wire::{Message, shown};
use std::collections::VecDeque;

#[derive(Debug, Default)]
pub(super) struct News {
    pub(super) players: Vec<PlayerView>,
    pub(super) lines: VecDeque<Line>,
}

impl News {
    /// Takes a message of the server.
    pub(super) fn take(&mut self, message: Message) {
        match message {
            Message::Event(event) => self.push(Line::Event(event)),
            Message::Chat { from, text } => {
                self.push(Line::Chat { from, text: shown(&text) });
            }
            Message::Player { player, role, is_here, name } => {
                let name = shown(&name);
                self.players.retain(|known| known.player != player);
                self.players.push(PlayerView { player, name, role, is_here });
                self.players.sort_by_key(|known| known.player);
            }
            Message::Order { .. } => {} // no server sends this
        }
    }

    fn push(&mut self, line: Line) {
        if self.lines.len() >= View::LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }
}
