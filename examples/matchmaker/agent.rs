//! A server's connection to the matchmaker, on its own thread, because a game loop must not wait.

use crate::http;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

const BEAT: Duration = Duration::from_millis(500);

/// Requests from the game loop.
enum Request {
    Players(usize),
    /// A token for this player, for another server.
    Move(u64),
}

/// News for the game loop.
pub(crate) enum News {
    /// The matchmaker knows the server.
    Registered,
    /// All players must leave.
    Drain,
    /// Where to send this player. `None`: there is no other server now.
    Token { player: u64, token: Option<Vec<u8>> },
}

pub(crate) struct Agent {
    requests: Sender<Request>,
    news: Receiver<News>,
}

impl Agent {
    /// For the server `id`, which players reach at `address`.
    pub(crate) fn start(id: u64, address: SocketAddr, matchmaker: SocketAddr) -> Self {
        let (requests, to_do) = channel();
        let (tell, news) = channel();
        thread::spawn(move || run(id, address, matchmaker, &to_do, &tell));
        Self { requests, news }
    }

    pub(crate) fn players(&self, count: usize) {
        let _ = self.requests.send(Request::Players(count)); // fails if the thread is gone, and so are we
    }

    pub(crate) fn token(&self, player: u64) {
        let _ = self.requests.send(Request::Move(player));
    }

    pub(crate) fn news(&self) -> Option<News> {
        self.news.try_recv().ok()
    }
}

/// Runs until the game loop is gone. If the matchmaker does not answer, asks again: connected players do not need it.
fn run(id: u64, address: SocketAddr, matchmaker: SocketAddr, to_do: &Receiver<Request>, tell: &Sender<News>) {
    let (mut players, mut next) = (0, Instant::now());
    let (mut is_registered, mut drains) = (false, false);
    loop {
        match to_do.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Ok(Request::Players(count)) => players = count,
            Ok(Request::Move(player)) => {
                let token = http::post(matchmaker, "/move", format!("{id} {player}").as_bytes()).ok();
                let _ = tell.send(News::Token { player, token });
            }
            Err(RecvTimeoutError::Timeout) => {
                next = Instant::now() + BEAT;
                let Ok(answer) =
                    http::post(matchmaker, "/servers", format!("{id} {address} {players}").as_bytes())
                else {
                    continue;
                };
                if !std::mem::replace(&mut is_registered, true) {
                    let _ = tell.send(News::Registered);
                }
                if answer == b"drain" && !std::mem::replace(&mut drains, true) {
                    let _ = tell.send(News::Drain);
                }
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}
