//! A server's connection to the matchmaker, on its own thread, because a game loop must not wait.

use axum::http::Method;
use std::error::Error;
use std::fs;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use whitewater::session::token::ServerKey;
use whitewater_matchmaker::Bearer;
use whitewater_matchmaker::client::{Client, ClientError};
use whitewater_matchmaker::messages::{Allocation, Hex, Id, Identity, Lease, Move, Report};

/// Sooner than a third of the lease, because the demo waits for it.
const BEAT: Duration = Duration::from_millis(500);

/// Requests from the game loop.
pub(crate) enum Request {
    /// What to report from now on.
    Report(Report),
    /// A token for the player with this pass, for another server.
    Move { player: u64, pass: Vec<u8> },
}

/// News for the game loop.
pub(crate) enum News {
    /// The matchmaker sends players from now on.
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

/// A server that the matchmaker knows: it has a number and a key, but no players before its first report.
pub(crate) struct Known {
    runtime: Runtime,
    client: Client,
    server: Id,
    secret: Bearer,
}

impl Known {
    /// Asks for a number and a key.
    pub(crate) fn ask(
        matchmaker: SocketAddr,
        root: &str,
        token: &str,
    ) -> Result<(Self, ServerKey), Box<dyn Error>> {
        let token = Bearer::new(fs::read_to_string(token)?.trim()).ok_or("a token that is too short")?;
        let mut client = Client::tls(matchmaker, "localhost", &fs::read(root)?)?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let asked = client.ask::<Identity>((Method::POST, "/servers"), &token, &());
        let Identity { server, key_id, key, secret } = runtime.block_on(asked)?;
        let key = key.0.try_into().map_err(|_| "a key that is not 32 bytes")?;
        let secret = Bearer::new(&secret).ok_or("a secret that is too short")?;
        Ok((Self { runtime, client, server, secret }, ServerKey::new(server.0, key_id, key)))
    }

    fn report(&mut self, report: &Report) -> Result<Lease, ClientError> {
        let path = format!("/servers/{}", self.server.0);
        self.runtime.block_on(self.client.ask((Method::PUT, &path), &self.secret, report))
    }

    fn move_player(&mut self, pass: Vec<u8>) -> Result<Vec<u8>, ClientError> {
        let path = format!("/servers/{}/move", self.server.0);
        let players = Move { passes: vec![Hex(pass)], regions: Vec::new(), match_id: Hex::default() };
        let asked = self.client.ask::<Allocation>((Method::POST, &path), &self.secret, &players);
        let tokens = self.runtime.block_on(asked)?.tokens;
        Ok(tokens.into_iter().next().unwrap_or_default().0)
    }

    /// It has ended. If the matchmaker does not hear it, the lease lapses.
    fn end(&mut self) {
        let path = format!("/servers/{}", self.server.0);
        let asked = self.client.ask::<()>((Method::DELETE, &path), &self.secret, &());
        let _: Result<(), _> = self.runtime.block_on(asked);
    }
}

impl Agent {
    /// Reports from now on.
    pub(crate) fn start(known: Known, first: Report) -> Self {
        let (requests, to_do) = channel();
        let (tell, news) = channel();
        thread::spawn(move || run(known, first, &to_do, &tell));
        Self { requests, news }
    }

    pub(crate) fn send(&self, request: Request) {
        let _ = self.requests.send(request); // fails if the thread is gone, and so are we
    }

    pub(crate) fn news(&self) -> Option<News> {
        self.news.try_recv().ok()
    }

    /// Tells the matchmaker, and waits for it.
    pub(crate) fn end(self) {
        drop(self.requests);
        while self.news.recv().is_ok() {}
    }
}

/// Runs until the game loop is gone. If the matchmaker does not answer, asks again: connected players do not need it.
fn run(mut known: Known, mut report: Report, to_do: &Receiver<Request>, tell: &Sender<News>) {
    let mut next = Instant::now();
    let (mut is_registered, mut drains) = (false, false);
    loop {
        match to_do.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Ok(Request::Report(mut newer)) => {
                newer.arrived.splice(..0, report.arrived);
                report = newer;
            }
            Ok(Request::Move { player, pass }) => {
                let token = known.move_player(pass).ok();
                let _ = tell.send(News::Token { player, token });
            }
            Err(RecvTimeoutError::Timeout) => {
                next = Instant::now() + BEAT;
                let Ok(Lease { drain, .. }) = known.report(&report) else { continue };
                report.arrived.clear();
                if !std::mem::replace(&mut is_registered, true) {
                    let _ = tell.send(News::Registered);
                }
                if drain && !std::mem::replace(&mut drains, true) {
                    let _ = tell.send(News::Drain);
                }
            }
            Err(RecvTimeoutError::Disconnected) => return known.end(),
        }
    }
}
