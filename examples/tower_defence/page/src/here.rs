//! A game in this page: server, player and bots, with a simulated network between them.

use std::time::Duration;
use tower_defence::client::{Command, View};
use tower_defence::lab::{Lab, LinkSpec, Transport};
use tower_defence::wire::{Hello, Wish};

pub(crate) struct Here {
    lab: Lab,
    /// The browser's time of the last pump, ms.
    last: f64,
}

impl Here {
    pub(crate) fn new(now: f64, name: &str, wish: Wish, bots: u8, link: &LinkSpec, seed: u64) -> Self {
        let mut lab = Lab::new(Transport::Sessions, link, seed);
        lab.join(Hello { name: name.to_owned(), wish, ticket: 0 }, false);
        for number in 1..=bots {
            let name = format!("bot {number}");
            lab.join(Hello { name, wish: Wish::Any, ticket: number.into() }, true);
        }
        Self { lab, last: now }
    }

    pub(crate) fn set_link(&mut self, link: &LinkSpec) {
        self.lab.set_link(link);
    }

    pub(crate) fn skip(&mut self, time: Duration) {
        self.lab.run_for(time);
    }

    pub(crate) fn pump(&mut self, now: f64) {
        // A tab in the background has no frames. The game waits for it instead of catching up.
        let passed = (now - self.last).clamp(0.0, 250.0);
        self.last = now;
        self.lab.run_for(Duration::from_secs_f64(passed / 1000.0));
        let now = self.lab.now();
        if let Some(client) = self.lab.client_mut(0) {
            client.advance(now); // to this moment, instead of the last frame of the lab
        }
    }

    pub(crate) fn view(&self) -> Option<View> {
        self.lab.client(0)?.view()
    }

    pub(crate) fn command(&mut self, command: Command) {
        self.lab.command(0, command);
    }
}
