//! The matchmaker, on a thread of its own: the loop of the game must not wait for it. It may start later than the server, and it may be started
//! again while players play.

use crate::server::News;
use std::error::Error;
use std::io;
use std::net::ToSocketAddrs;
use std::sync::mpsc::Sender;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use whitewater::SessionId;
use whitewater::session::token::ServerKey;
use whitewater_matchmaker::Bearer;
use whitewater_matchmaker::client::{Client, ClientError, Method};
use whitewater_matchmaker::messages::{Allocation, Id, Identity, Lease, Move, Report};

/// How long to wait before a question that has failed is asked again, and for its answer.
const RETRY: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(2);
/// Most arrivals that a report may have. Reservations of others lapse by themselves.
const ARRIVED_MAX: usize = 1024;

/// Where the matchmaker is, and what it wants to see.
pub(crate) struct Config {
    /// Its host and port.
    pub(crate) at: String,
    /// Whose certificates it may show, in PEM. `None`: plain HTTP, which is for this machine.
    pub(crate) root: Option<Vec<u8>>,
    /// The secret of all servers.
    pub(crate) token: Bearer,
}

pub(crate) enum Request {
    /// What the server is like now. It renews the lease, so a loop that hangs loses it.
    Report(Report),
    /// These players look for places on another server.
    Move(Vec<SessionId>, Move),
}

pub(crate) struct Matchmaker {
    requests: UnboundedSender<Request>,
    thread: JoinHandle<()>,
}

impl Matchmaker {
    /// Asks for a number and a key, and tells the loop of them.
    pub(crate) fn start(config: Config, news: Sender<News>) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (requests, asked) = unbounded_channel();
        let thread =
            thread::spawn(move || runtime.block_on(run(Link { config, client: None }, asked, &news)));
        Ok(Self { requests, thread })
    }

    /// Does not wait.
    pub(crate) fn ask(&self, request: Request) {
        let _ = self.requests.send(request); // the thread has panicked, which has been printed
    }

    /// Gives the lease back, and waits for that for a few times [`PATIENCE`].
    pub(crate) fn end(self) {
        drop(self.requests);
        let _ = self.thread.join(); // a panic has been printed
    }
}

/// Runs until the loop is gone.
async fn run(mut link: Link, mut requests: UnboundedReceiver<Request>, news: &Sender<News>) {
    let Some(own) = link.register(&mut requests, news).await else { return };
    let (mut unsent, mut next): (Option<Report>, _) = (None, Instant::now());
    loop {
        tokio::select! {
            biased; // what has come meanwhile is in the next report
            request = requests.recv() => match request {
                Some(Request::Report(newer)) => unsent = Some(merged(unsent, newer)),
                Some(Request::Move(players, to_move)) => {
                    let tokens = link.tokens(&own, &to_move).await;
                    let tokens = link.noted(tokens).unwrap_or_default();
                    let _ = news.send(News::Tokens(players.into_iter().zip(tokens).collect()));
                }
                None => break,
            },
            () = sleep_until(next), if unsent.is_some() => {
                let Some(report) = &unsent else { continue };
                let lease = link.report(&own, report).await;
                match link.noted(lease) {
                    Some(lease) => {
                        unsent = None;
                        if lease.drain {
                            let _ = news.send(News::Drain);
                        }
                    }
                    None => next = Instant::now() + RETRY,
                }
            }
        }
    }
    let gone = link.remove(&own).await;
    link.noted(gone); // if it did not hear it, the lease lapses
}

/// The newer report, with those whom the older one has not told of.
fn merged(older: Option<Report>, mut newer: Report) -> Report {
    newer.arrived.splice(..0, older.map(|older| older.arrived).unwrap_or_default());
    newer.arrived.drain(..newer.arrived.len().saturating_sub(ARRIVED_MAX));
    newer
}

/// What the matchmaker gave to this server alone.
struct Own {
    path: String,
    secret: Bearer,
}

struct Link {
    config: Config,
    client: Option<Client>,
}

type Answer<T> = Result<T, Box<dyn Error>>;

impl Link {
    /// Asks until there is an answer. `None`: the loop is gone.
    async fn register(
        &mut self,
        requests: &mut UnboundedReceiver<Request>,
        news: &Sender<News>,
    ) -> Option<Own> {
        loop {
            let answer = self.identity().await;
            if let Some((own, key)) = self.noted(answer) {
                let _ = news.send(News::Registered(key)); // the loop is gone
                return Some(own);
            }
            if let Ok(None) = timeout_at(Instant::now() + RETRY, requests.recv()).await {
                return None;
            }
        }
    }

    async fn identity(&mut self) -> Answer<(Own, ServerKey)> {
        let token = self.config.token.clone();
        let Identity { server, key_id, key, secret } =
            within(self.client()?.ask((Method::POST, "/servers"), &token, &())).await?;
        let key = key.0.try_into().map_err(|_| "a key that is not 32 bytes")?;
        let secret = Bearer::new(&secret).ok_or("a secret that is too short")?;
        let Id(number) = server;
        Ok((Own { path: format!("/servers/{number}"), secret }, ServerKey::new(number, key_id, key)))
    }

    async fn report(&mut self, Own { path, secret }: &Own, report: &Report) -> Answer<Lease> {
        within(self.client()?.ask((Method::PUT, path), secret, report)).await
    }

    /// Tokens for another server, one for each pass.
    async fn tokens(&mut self, Own { path, secret }: &Own, to_move: &Move) -> Answer<Vec<Vec<u8>>> {
        let path = format!("{path}/move");
        let place: Allocation = within(self.client()?.ask((Method::POST, &path), secret, to_move)).await?;
        Ok(place.tokens.into_iter().map(|token| token.0).collect())
    }

    async fn remove(&mut self, Own { path, secret }: &Own) -> Answer<()> {
        within(self.client()?.ask((Method::DELETE, path), secret, &())).await
    }

    /// Connects again with the next question.
    fn noted<T>(&mut self, answer: Answer<T>) -> Option<T> {
        answer
            .inspect_err(|error| {
                eprintln!("the matchmaker: {error}");
                self.client = None; // its name may lead elsewhere by now
            })
            .ok()
    }

    fn client(&mut self) -> Answer<&mut Client> {
        let client = match self.client.take() {
            Some(client) => client,
            None => self.config.client()?,
        };
        Ok(self.client.insert(client))
    }
}

impl Config {
    fn client(&self) -> Answer<Client> {
        let address = self.at.to_socket_addrs()?.next().ok_or("its name has no address")?;
        let (name, _) = self.at.rsplit_once(':').ok_or("a host and a port")?;
        match &self.root {
            Some(root) => Ok(Client::tls(address, name, root)?),
            None if address.ip().is_loopback() => Ok(Client::plain(address)),
            None => Err("plain HTTP would show the keys of servers to whoever reads along".into()),
        }
    }
}

async fn within<T>(answer: impl Future<Output = Result<T, ClientError>>) -> Answer<T> {
    Ok(timeout(PATIENCE, answer).await??)
}
