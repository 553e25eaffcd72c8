//! A server's word with the matchmaker, in a thread of its own: a game loop waits for nobody.

use crate::http;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

const BEAT: Duration = Duration::from_millis(500);

/// What the game loop says.
enum Request {
    Players(usize),
    /// A token for this player, for another server.
    Move(u64),
}

/// What it hears.
pub(crate) enum News {
    /// The matchmaker knows the server.
    Registered,
    /// All players have to go.
    Drain,
    /// Where this player goes; `None`: there is no other server now.
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
        let _ = self.requests.send(Request::Players(count)); // fails when the thread is gone, and so are we
    }

    pub(crate) fn token(&self, player: u64) {
        let _ = self.requests.send(Request::Move(player));
    }

    pub(crate) fn news(&self) -> Option<News> {
        self.news.try_recv().ok()
    }
}

/// Until the game loop is gone. A matchmaker that does not answer is asked again: the players who are here do not need it.
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
