//! Server, one player and bots in this process, with a simulated network between them, in real time.

use crate::client::{Command, Game, View};
use crate::lab::{Lab, LinkSpec, Transport};
use crate::wire::{Hello, Wish};
use std::io;
use std::time::Instant;
use whitewater::Time;

/// A local game.
pub struct Local {
    lab: Lab,
    start: Instant,
    first: Time,
}

impl Local {
    /// A player and this many bots, each with such a path to the server.
    #[must_use]
    pub fn new(name: &str, wish: Wish, bots: u8, link: &LinkSpec, seed: u64) -> Self {
        let mut lab = Lab::new(Transport::Sessions, link, seed);
        lab.join(Hello { name: name.to_owned(), wish, ticket: 0 }, false);
        for number in 1..=bots {
            let name = format!("bot {number}");
            lab.join(Hello { name, wish: Wish::Any, ticket: number.into() }, true);
        }
        let first = lab.now();
        Self { lab, start: Instant::now(), first }
    }
}

impl Game for Local {
    fn pump(&mut self) -> io::Result<()> {
        self.lab.run_to(self.first + self.start.elapsed());
        Ok(())
    }

    fn view(&self) -> Option<View> {
        self.lab.client(0)?.view()
    }

    fn command(&mut self, command: Command) {
        self.lab.command(0, command);
    }
}
