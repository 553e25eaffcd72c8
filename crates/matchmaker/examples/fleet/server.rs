//! A server: echoes with its name, sends its players away when told to, and ends when the last is gone.

use crate::Done;
use crate::agent::{Agent, Known, News, Request};
use crate::game::{self, TALK};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use whitewater::{Event, Server, ServerConfig, SessionId};
use whitewater_matchmaker::messages::{Hex, Id, Report};

pub(crate) struct Config<'a> {
    pub(crate) name: &'a str,
    pub(crate) at: SocketAddr,
    pub(crate) matchmaker: SocketAddr,
    /// Files: the certificate of the matchmaker, and the secret of servers.
    pub(crate) root: &'a str,
    pub(crate) token: &'a str,
}

/// How long to wait before closing a player who was redirected but has not left.
const LINGER: Duration = Duration::from_secs(10);
/// The code for that.
const DRAINED: u16 = 1;
const TICK: Duration = Duration::from_millis(20);
const CAPACITY: u32 = 16;

pub(crate) fn run(config: &Config<'_>) -> Done {
    let name = config.name;
    let (known, key) = Known::ask(config.matchmaker, config.root, config.token)?;
    let mut server = Server::bind(config.at, &ServerConfig::tokens(game::session_config(), key))?;
    let agent = Agent::start(known, report(&server, name, Vec::new())?);
    let mut end = None;
    loop {
        server.poll(Some(TICK))?;
        let mut arrived = Vec::new();
        while let Some((id, event)) = server.poll_event() {
            match event {
                Event::Connected => {
                    println!("server {name}: player {} is in", player(&server, id));
                    arrived.push(Id(player(&server, id)));
                }
                Event::Readable => echo(&mut server, id, name),
                Event::Closed { reason, .. } => {
                    println!("server {name}: player {} is gone: {reason}", player(&server, id));
                }
                _ => {}
            }
        }
        let up: Vec<_> = server.clients().collect();
        agent.send(Request::Report(report(&server, name, arrived)?));
        while let Some(news) = agent.news() {
            match news {
                News::Registered => println!("server {name}: registered"),
                News::Drain => {
                    println!("server {name}: draining");
                    end = Some(Instant::now() + LINGER);
                    for pass in up.iter().filter_map(|id| server.pass(*id)) {
                        agent.send(Request::Move { player: pass.client_id, pass: pass.user.clone() });
                    }
                }
                News::Token { player: number, token } => {
                    let id = up.iter().find(|id| player(&server, **id) == number);
                    if let (Some(&id), Some(token)) = (id, token) {
                        server.redirect(id, &token)?;
                    }
                }
            }
        }
        if end.is_some_and(|end| up.is_empty() || Instant::now() >= end) {
            server.shutdown(DRAINED)?;
            agent.end();
            println!("server {name}: empty, so it ends");
            return Ok(());
        }
    }
}

/// What the matchmaker should know now.
fn report(server: &Server, name: &str, arrived: Vec<Id>) -> Result<Report, Box<dyn std::error::Error>> {
    let ids = server.clients();
    let players = u32::try_from(ids.len())?;
    let stats: Vec<_> = ids.filter_map(|id| Some(server.connection(id)?.stats())).collect();
    let mut rtts: Vec<_> = stats.iter().map(|stats| stats.rtt.as_secs_f32() * 1000.0).collect();
    rtts.sort_by(f32::total_cmp);
    let (lost, judged) = stats
        .iter()
        .fold((0, 0), |(lost, judged), stats| (lost + stats.packets_lost, judged + stats.packets_judged));
    let per_mille = u16::try_from(lost * 1000 / judged.max(1)).unwrap_or(1000);
    Ok(Report {
        name: name.to_owned(),
        addresses: vec![server.local_addr()?],
        region: "here".to_owned(),
        capacity: CAPACITY,
        players,
        arrived,
        rtt_ms: rtts.get(rtts.len() / 2).copied().unwrap_or_default(),
        loss: f32::from(per_mille) / 1000.0,
        routing_token: Hex::default(),
        draining: false,
    })
}

/// The number of the player, which the backend chose.
fn player(server: &Server, id: SessionId) -> u64 {
    server.pass(id).map_or(0, |pass| pass.client_id)
}

fn echo(server: &mut Server, id: SessionId, name: &str) {
    while let Some(text) = server.recv(id, TALK) {
        if server.send(id, TALK, &format!("{name} {text}")).is_err() {
            server.close(id, DRAINED); // it sends and does not read
        }
    }
}
