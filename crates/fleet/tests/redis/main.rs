//! Servers that share used tokens in a real Redis, which is killed, hangs and comes back. Without redis-server these tests print a note and pass,
//! unless `WHITEWATER_NO_SKIP` is set.

#![cfg(unix)]
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that panics has found something")]

mod garbage;
mod joins;
mod redis_server;
mod tasks;
mod waits;
mod world;

use redis_server::RedisServer;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};
use whitewater::session::token::TokenId;
use whitewater::{CloseReason, ServerConfig};
use whitewater_fleet::{ConfigError, LIMIT, Redis, Refusal, Store, StoreError, UsedTokens, WhenGone};
use world::{Member, PATIENCE, Player, config, join, mint, pair, run};

const USED: CloseReason = CloseReason::Rejected(0xfe01);
const UNKNOWN: CloseReason = CloseReason::Rejected(0xfe02);

#[test]
fn a_token_that_was_used_at_one_server_is_refused_at_the_other() {
    let Some(redis) = RedisServer::start() else { return };
    let mut members = pair(&redis.url(), PATIENCE, WhenGone::Refuse);
    for (client, first) in [(1, 0), (2, 1)] {
        let token = mint(client);
        let joined = join(&mut members, first, &token);
        let turned_away = join(&mut members, 1 - first, &token);
        assert_eq!((joined.closed, turned_away.closed), (None, Some(USED)));
        assert_eq!(turned_away.client.rejection(), Refusal::Used.text().as_bytes());
    }
    assert_eq!(redis.sets(), 4, "one command for each client that asks");
    let stats = members[0].used.stats();
    assert_eq!((stats.asked, stats.unused, stats.used, stats.gone + stats.late), (2, 1, 1, 0));
    // 45 s of validity and three times 5 s of tolerance.
    assert!(redis.lives().iter().all(|life| (45..=60).contains(life)), "{:?}", redis.lives());
}

#[test]
fn of_two_clients_that_bring_one_token_to_two_servers_at_once_one_joins() {
    let Some(redis) = RedisServer::start() else { return };
    let mut members = pair(&redis.url(), PATIENCE, WhenGone::Refuse);
    for client in 0..20 {
        let token = mint(client);
        let mut players = [0, 1].map(|at| Player::connect(members[at].addr(), &token));
        run(&mut members, &mut players, |_, players| players.iter().all(Player::is_decided));
        let joined = players.iter().filter(|player| player.client.is_connected()).count();
        let used = players.iter().filter(|player| player.closed == Some(USED)).count();
        assert_eq!((joined, used), (1, 1));
    }
}

#[test]
fn without_redis_clients_are_refused_and_sessions_stay_up() {
    let Some(mut redis) = RedisServer::start() else { return };
    let mut members = pair(&redis.url(), PATIENCE, WhenGone::Refuse);
    let mut player = join(&mut members, 0, &mint(1));
    redis.kill();
    let refused = join(&mut members, 0, &mint(2));
    assert_eq!(refused.closed, Some(UNKNOWN));
    assert_eq!(refused.client.rejection(), Refusal::Unknown.text().as_bytes());
    player.pump();
    assert!(player.client.is_connected() && members[0].up.len() == 1);
    let stats = members[0].used.stats();
    assert_eq!((stats.refused, stats.local, stats.gone + stats.late), (1, 0, 1));
}

#[test]
fn without_redis_clients_may_join_and_a_token_still_works_once_at_each_server() {
    let Some(mut redis) = RedisServer::start() else { return };
    let mut members = pair(&redis.url(), PATIENCE, WhenGone::Local);
    redis.kill();
    let token = mint(1);
    let [here, there] = [0, 1].map(|at| join(&mut members, at, &token));
    assert!(here.client.is_connected() && there.client.is_connected());
    let again = join(&mut members, 0, &token);
    assert!(matches!(again.closed, Some(CloseReason::Denied(_))), "{:?}", again.closed);
    let stats = members[0].used.stats();
    assert_eq!((stats.refused, stats.local), (0, 1), "the second time it is not even asked about");
}

#[test]
fn a_redis_that_hangs_is_given_up_and_used_again_when_it_goes_on() {
    let Some(redis) = RedisServer::start() else { return };
    let mut members = pair(&redis.url(), Duration::from_secs(1), WhenGone::Refuse);
    redis.hang();
    for client in 0..5 {
        assert_eq!(join(&mut members, 0, &mint(client)).closed, Some(UNKNOWN));
    }
    let stats = members[0].used.stats();
    assert_eq!((stats.asked, stats.gone + stats.late), (5, 5));
    assert!(!members[0].used.is_connected(), "the others did not wait");
    redis.resume();
    run(&mut members, &mut [], |members, _| members.iter().all(|member| member.used.is_connected()));
    check_shared(&mut members);
}

#[test]
fn a_redis_that_is_started_again_is_used_again() {
    let Some(mut redis) = RedisServer::start() else { return };
    let mut members = pair(&redis.url(), PATIENCE, WhenGone::Refuse);
    redis.kill();
    run(&mut members, &mut [], |members, _| members.iter().all(|member| !member.used.is_connected()));
    redis.restart();
    run(&mut members, &mut [], |members, _| members.iter().all(|member| member.used.is_connected()));
    check_shared(&mut members);
}

#[test]
fn servers_start_without_redis_and_use_it_once_it_is_there() {
    let Some(mut redis) = RedisServer::start() else { return };
    redis.kill();
    let mut members = pair(&redis.url(), PATIENCE, WhenGone::Refuse);
    assert_eq!(join(&mut members, 0, &mint(1)).closed, Some(UNKNOWN));
    redis.restart();
    run(&mut members, &mut [], |members, _| members.iter().all(|member| member.used.is_connected()));
    check_shared(&mut members);
}

/// A token works at one server, and then not at the other.
fn check_shared(members: &mut [Member]) {
    let token = mint(1000);
    assert!(join(members, 0, &token).client.is_connected());
    assert_eq!(join(members, 1, &token).closed, Some(USED));
}

#[test]
fn the_same_server_may_claim_a_token_again() {
    let Some(redis) = RedisServer::start() else { return };
    let [mut here, mut there] = [(); 2].map(|()| Redis::open(redis.url()).unwrap());
    here.connect().unwrap();
    there.connect().unwrap();
    let (limit, tokens) = (Duration::from_secs(60), [id_of(1), id_of(2)]);
    assert_eq!(here.claim(&tokens[..1], limit).unwrap(), [true]);
    assert_eq!(there.claim(&tokens, limit).unwrap(), [false, true]);
    // Its client was given up before it had joined, and tries again.
    assert_eq!(here.claim(&tokens, limit).unwrap(), [true, false]);
}

/// The id of a token as a server sees it.
fn id_of(client: u64) -> TokenId {
    let (stuck, _release) = Stuck::new();
    let mut members = [Member::start(stuck, PATIENCE, WhenGone::Local)];
    let mut players = [Player::connect(members[0].addr(), &mint(client))];
    let mut id = None;
    while id.is_none() {
        let Member { server, .. } = &mut members[0];
        server.pump().unwrap();
        players[0].pump();
        id = server.poll_event().and_then(|(id, _)| server.request(id)?.token);
    }
    id.unwrap()
}

/// A store that answers when the test says so, or fails when it is over.
struct Stuck(Mutex<Receiver<()>>);

impl Stuck {
    fn new() -> (Self, Sender<()>) {
        let (release, released) = channel();
        (Self(Mutex::new(released)), release)
    }
}

impl Store for Stuck {
    fn connect(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    fn claim(&mut self, tokens: &[TokenId], _: Duration) -> Result<Vec<bool>, StoreError> {
        self.0.lock().unwrap().recv()?;
        Ok(vec![true; tokens.len()])
    }

    fn ping(&mut self, _: Duration) -> Result<(), StoreError> {
        Ok(())
    }
}

/// The loop goes on beside a store that ignores the limit, however long that takes.
#[test]
fn a_store_that_never_answers_blocks_no_loop_and_no_client() {
    let (stuck, release) = Stuck::new();
    let mut members = [Member::start(stuck, LIMIT, WhenGone::Refuse)];
    for client in 0..20 {
        assert_eq!(join(&mut members, 0, &mint(client)).closed, Some(UNKNOWN));
    }
    let stats = members[0].used.stats();
    assert_eq!((stats.asked, stats.late, stats.refused), (20, 20, 20));
    drop(release);
}

#[test]
fn a_client_that_repeats_itself_is_asked_about_once() {
    let (stuck, release) = Stuck::new();
    let mut members = [Member::start(stuck, PATIENCE, WhenGone::Refuse)];
    let mut players = [Player::connect(members[0].addr(), &mint(1))];
    run(&mut members, &mut players, |members, _| members[0].server.stats().rejected.repeated >= 2);
    release.send(()).unwrap();
    run(&mut members, &mut players, |_, players| players[0].client.is_connected());
    let stats = members[0].used.stats();
    assert_eq!((stats.asked, stats.unused), (1, 1));
}

/// The application hears neither of the request nor of its end.
#[test]
fn a_client_that_is_given_up_before_the_answer_is_forgotten() {
    let (stuck, release) = Stuck::new();
    let mut member = Member::start(stuck, PATIENCE, WhenGone::Refuse);
    let mut player = Player::connect(member.addr(), &mint(1));
    let end = Instant::now() + PATIENCE;
    while player.closed.is_none() || member.server.stats().sessions > 0 {
        assert!(Instant::now() < end, "waited for too long");
        member.server.pump().unwrap();
        assert_eq!(member.used.poll_event(&mut member.server), None);
        player.pump();
    }
    release.send(()).unwrap();
    member.pump();
    assert_eq!((member.used.stats().asked, member.used.stats().unused), (1, 0));
}

#[test]
fn questions_that_nobody_takes_are_bounded() {
    let (stuck, release) = Stuck::new();
    let Member { used, .. } = Member::start(stuck, PATIENCE, WhenGone::Local);
    let token = id_of(1);
    let questions: Vec<_> = (0..5000).map(|_| used.ask(token)).collect();
    let overflow = questions.iter().filter(|question| question.poll().is_some()).count();
    assert!(overflow >= 5000 - 1024 - 256, "{overflow}");
    drop(release);
}

/// Otherwise each client would join without a question.
#[test]
fn a_server_that_does_not_ask_is_refused() {
    let refuse = |config: &ServerConfig| {
        let (stuck, _release) = Stuck::new();
        UsedTokens::new(config, stuck, LIMIT, WhenGone::Refuse).unwrap_err()
    };
    assert!(matches!(refuse(&ServerConfig { ask: false, ..config() }), ConfigError::Ask));
    assert!(matches!(refuse(&ServerConfig { tokens: None, ..config() }), ConfigError::Tokens));
}
