//! Who waits for an answer, and for how long: loops that sleep, and questions that were asked at different times.

use crate::Stuck;
use crate::world::{Member, PATIENCE, Player, mint};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};
use whitewater::Event;
use whitewater::session::token::TokenId;
use whitewater_fleet::{Refusal, Store, StoreError, WhenGone};

/// The loop of a server that sleeps until something happens, and ends when its player has left.
fn serve(mut member: Member) {
    let Member { server, used, .. } = &mut member;
    while used.poll(server, None).unwrap() {
        while let Some((id, event)) = used.poll_event(server) {
            match event {
                Event::Requested => server.admit(id, b"").unwrap(),
                Event::Closed { .. } => return,
                _ => {}
            }
        }
    }
}

fn pump_until(player: &mut Player, is_over: impl Fn(&Player) -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_over(player) {
        assert!(Instant::now() < end, "waited for too long");
        player.pump();
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn an_answer_wakes_a_loop_that_sleeps() {
    let (stuck, release) = Stuck::new();
    let member = Member::start(stuck, PATIENCE, WhenGone::Refuse);
    let mut player = Player::connect(member.addr(), &mint(1));
    let server = thread::spawn(|| serve(member));
    let asleep = Instant::now() + Duration::from_millis(500);
    pump_until(&mut player, |_| Instant::now() > asleep);
    release.send(()).unwrap();
    pump_until(&mut player, Player::is_decided);
    assert_eq!(player.closed, None);
    player.client.close(0);
    pump_until(&mut player, |player| player.closed.is_some());
    server.join().unwrap();
}

#[test]
fn the_end_of_the_time_for_an_answer_wakes_a_loop_that_sleeps() {
    let (stuck, _release) = Stuck::new();
    let member = Member::start(stuck, Duration::from_millis(300), WhenGone::Local);
    let mut player = Player::connect(member.addr(), &mint(1));
    let server = thread::spawn(|| serve(member));
    pump_until(&mut player, Player::is_decided);
    assert_eq!(player.closed, None);
    player.client.close(0);
    pump_until(&mut player, |player| player.closed.is_some());
    server.join().unwrap();
}

/// A store that tells of each claim, and answers it when the test says so, unless it is too late then.
struct Slow {
    claims: Sender<usize>,
    answer: Mutex<Receiver<()>>,
}

impl Store for Slow {
    fn connect(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    fn claim(&mut self, tokens: &[TokenId], limit: Duration) -> Result<Vec<bool>, StoreError> {
        let start = Instant::now();
        self.claims.send(tokens.len())?;
        self.answer.lock().unwrap().recv()?;
        if start.elapsed() < limit { Ok(vec![true; tokens.len()]) } else { Err("late".into()) }
    }

    fn ping(&mut self, _: Duration) -> Result<(), StoreError> {
        Ok(())
    }
}

#[test]
fn a_late_answer_costs_only_the_questions_that_are_late() {
    let ((claims, claimed), (go_on, answer)) = (channel(), channel());
    let slow = Slow { claims, answer: Mutex::new(answer) };
    let Member { used, .. } = Member::start(slow, Duration::from_secs(2), WhenGone::Refuse);
    let token = crate::id_of(1);
    let first = used.ask(token);
    assert_eq!(claimed.recv_timeout(PATIENCE).unwrap(), 1);
    assert_eq!(first.wait(), Err(Refusal::Unknown));
    let older = used.ask(token);
    thread::sleep(Duration::from_secs(1));
    let younger = used.ask(token);
    go_on.send(()).unwrap(); // too late for the first one
    assert_eq!(claimed.recv_timeout(PATIENCE).unwrap(), 2);
    assert_eq!(older.wait(), Err(Refusal::Unknown));
    go_on.send(()).unwrap();
    assert_eq!(younger.wait(), Ok(()));
    let stats = used.stats();
    assert_eq!((stats.asked, stats.unused, stats.late, stats.gone), (3, 1, 2, 0));
    assert!(used.is_connected());
}
