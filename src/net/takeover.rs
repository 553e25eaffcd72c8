//! One socket, several processes: a new version of a server takes it over, and the old one keeps its sessions.
//!
//! Each process is one *generation*, with a shard of its own. The newest one reads the socket. A datagram that names the shard of an older
//! one goes there over a stream between the two processes; the answer leaves from the older one's copy of the socket. It is what
//! [`shards`](super::shards) do between threads.
//!
//! A generation listens in a directory that only the user may enter, at a path named after its shard. Whoever takes the socket over connects
//! to all paths there, and each owner answers once it has stopped reading. While one of these streams is open, its owner has a successor.
//!
//! A process that runs says so on the streams to the older ones whenever it pumps. If none of the newer ones does while datagrams wait at the
//! socket, they hang, and the older one reads again until it hears from one.

mod claim;
mod frames;
mod streams;

pub(super) use claim::Claim;

use super::shards::{Give, Wake};
use crate::machine::{Arrival, Machine};
use crate::session::SHARDS_MAX;
use crate::time::Time;
use std::io::{self, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use streams::{Came, Door, Older};

/// What a process knows of the others that have its socket.
#[derive(Debug)]
pub(super) struct Generations<M> {
    give: Give<M>,
    older: Vec<Option<Older>>,
    /// Behind a lock that nobody waits for, so that a driver can be shared by reference.
    door: Mutex<Door>,
    /// Successors that have not ended, and those that have not heard yet that this process has stopped reading.
    successors: usize,
    unanswered: Vec<UnixStream>,
    /// Looks in a row that found a datagram waiting and nothing heard from a successor since the one before.
    unread: u32,
    looks_at: Time,
    beats_at: Time,
    /// Datagrams that were handed on, and those that were lost because too many wait for their process.
    pub(super) handed_on: u64,
    pub(super) not_handed_on: u64,
}

impl<M: Machine> Generations<M> {
    /// Takes the socket over: returns when no older generation reads it any more.
    pub(super) fn take_over(claim: Claim, owner: Arc<dyn Wake>, give: Give<M>) -> io::Result<Self> {
        let Claim { listener, path, older, lock, .. } = claim;
        let door = Mutex::new(Door::open(listener, path, owner)?);
        let older = streams::take_over(older)?;
        drop(lock);
        Ok(Self {
            give,
            older,
            door,
            successors: 0,
            unanswered: Vec::new(),
            unread: 0,
            looks_at: Time::ZERO,
            beats_at: Time::ZERO,
            handed_on: 0,
            not_handed_on: 0,
        })
    }

    /// Whether another process reads the socket.
    pub(super) const fn is_superseded(&self) -> bool {
        self.successors > 0 && !self.is_alone()
    }

    /// Whether its successors hang.
    const fn is_alone(&self) -> bool {
        self.unread >= UNREAD_MAX
    }

    /// Looks whether the successors read: a datagram that waits again and again, while nothing comes from them, says that they do not.
    pub(super) fn look(&mut self, now: Time, has_waiting: impl FnOnce() -> bool) {
        if now < self.looks_at {
            return;
        }
        self.looks_at = now + LOOK_EACH;
        self.unread = if has_waiting() { self.unread + 1 } else { 0 };
        if self.is_alone() {
            log::warn!("the process that took the socket over does not read it: serving it again");
        }
    }

    /// Gives a datagram to the machine, or hands it on to the process that owns its session. A session whose process has ended is one that
    /// the machine does not know.
    pub(super) fn hand_in(&mut self, now: Time, machine: &mut M, from: Arrival, datagram: &mut [u8]) {
        let Some(owner) = (self.give)(machine, now, from, datagram, SHARDS_MAX) else { return };
        let is_alone = self.is_alone();
        match self.older.get_mut(owner).and_then(Option::as_mut).filter(|older| older.is_alive()) {
            None if is_alone => self.not_handed_on += 1, // perhaps of a successor that goes on later: no reason to reset its session
            None => machine.handle_datagram(now, from, datagram),
            Some(older) => {
                let is_kept = older.push(from, datagram);
                self.handed_on += u64::from(is_kept);
                self.not_handed_on += u64::from(!is_kept);
            }
        }
    }

    /// Takes the next thing that newer generations say. `false`: there is none.
    pub(super) fn hand_in_stray(&mut self, now: Time, machine: &mut M) -> bool {
        let door = self.door.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Some(came) = door.next() else { return false };
        self.unread = 0;
        match came {
            Came::Datagram(mut stray) => machine.handle_datagram(now, stray.from, &mut stray.bytes),
            Came::Beat => {}
            Came::Successor(stream) => {
                self.successors += 1;
                self.unanswered.push(stream);
            }
            Came::End => self.successors = self.successors.saturating_sub(1),
        }
        true
    }

    /// This process has stopped reading.
    pub(super) fn answer(&mut self) {
        for mut stream in self.unanswered.drain(..) {
            let _ = stream.write_all(&frames::HELLO); // if it has ended, its stream says so
        }
    }

    /// Sends what was handed on, and now and then that this process runs.
    pub(super) fn flush(&mut self, now: Time) {
        let is_due = self.beats_at <= now;
        if is_due {
            self.beats_at = now + LOOK_EACH;
        }
        for place in &mut self.older {
            let Some(older) = place else { continue };
            if is_due {
                older.beat();
            }
            if !older.flush() {
                *place = None;
            }
        }
    }

    /// Whether something still waits to be sent.
    pub(super) fn is_clogged(&self) -> bool {
        self.older.iter().flatten().any(Older::is_clogged)
    }
}

/// How often a process looks whether its successors read, and says that it runs.
pub(super) const LOOK_EACH: Duration = Duration::from_millis(250);
/// After so many looks the successors hang: 2 s, for no game stands still for as long while it has players.
const UNREAD_MAX: u32 = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Transmit;
    use std::fs;
    use std::io::Read as _;
    use std::net::SocketAddr;
    use std::os::unix::net::UnixListener;
    use std::path::PathBuf;

    /// Counts what it takes. It has shard 7, and the first byte of a datagram names one.
    #[derive(Debug, Default)]
    struct Counter(usize);

    impl Machine for Counter {
        fn handle_datagram(&mut self, _: Time, _: Arrival, _: &mut [u8]) {
            self.0 += 1;
        }

        fn handle_timeout(&mut self, _: Time) {}

        fn poll_transmit(&mut self, _: Time, _: &mut Vec<u8>) -> Option<Transmit> {
            None
        }

        fn poll_timeout(&self) -> Option<Time> {
            None
        }

        fn shutdown(&mut self, _: Time, _: u16) -> bool {
            true
        }
    }

    #[derive(Debug)]
    struct Nobody;

    impl Wake for Nobody {
        fn wake(&self) {}
    }

    fn give(
        counter: &mut Counter,
        now: Time,
        from: Arrival,
        datagram: &mut [u8],
        shards: usize,
    ) -> Option<usize> {
        let owner = usize::from(datagram[0]);
        if owner < shards && owner != 7 {
            return Some(owner);
        }
        counter.handle_datagram(now, from, datagram);
        None
    }

    /// As the seventh generation after one with shard 3, whose end of the stream is returned.
    fn generations(name: &str) -> (Generations<Counter>, UnixStream, PathBuf) {
        let dir = std::env::temp_dir().join(format!("whitewater-{name}-{}", std::process::id()));
        fs::create_dir(&dir).unwrap();
        let (here, mut there) = UnixStream::pair().unwrap();
        there.write_all(&frames::HELLO).unwrap();
        let mut older: Vec<_> = (0..SHARDS_MAX).map(|_| None).collect();
        older[3] = Some(here);
        let path = dir.join("7");
        let listener = UnixListener::bind(&path).unwrap();
        let lock = fs::File::create(dir.join("lock")).unwrap();
        let claim = Claim { shard: 7, listener, path, older, lock };
        let generations = Generations::take_over(claim, Arc::new(Nobody), give).unwrap();
        let mut hello = [0; 4];
        there.read_exact(&mut hello).unwrap();
        assert_eq!(hello, frames::HELLO);
        (generations, there, dir)
    }

    #[test]
    fn what_is_of_a_running_process_goes_there_and_all_else_stays() {
        let (mut generations, mut old, dir) = generations("routing");
        let (mut counter, from) = (Counter::default(), Arrival::from(SocketAddr::from(([10, 0, 0, 1], 7))));
        for owner in [3, 7, 5, 200] {
            generations.hand_in(Time::ZERO, &mut counter, from, &mut [owner, 1, 2]);
        }
        generations.flush(Time::ZERO);
        assert_eq!((counter.0, generations.handed_on, generations.not_handed_on), (3, 1, 0));
        let mut frame = [0; frames::HEAD_LEN + 3];
        old.read_exact(&mut frame).unwrap();
        let (head, datagram) = frame.split_first_chunk().unwrap();
        assert_eq!((frames::decode(head), datagram), (Some((from, 3)), &[3, 1, 2][..]));
        drop(old);
        let mut hand_in = || {
            generations.hand_in(Time::ZERO, &mut counter, from, &mut [3]);
            generations.flush(Time::ZERO);
            (counter.0, generations.handed_on)
        };
        assert_eq!(hand_in(), (3, 2), "on its way when the process ended: lost");
        assert_eq!(hand_in(), (4, 2), "a session of a process that has ended is unknown");
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_process_that_does_not_read_costs_a_bounded_queue_and_hears_of_the_rest_later() {
        let (mut generations, mut old, dir) = generations("queue");
        let (mut counter, from) = (Counter::default(), Arrival::from(SocketAddr::from(([10, 0, 0, 1], 7))));
        for _ in 0..10_000 {
            generations.hand_in(Time::ZERO, &mut counter, from, &mut [3; 1000]);
        }
        assert!(generations.is_clogged() && generations.not_handed_on > 5000 && counter.0 == 0);
        assert_eq!(generations.handed_on + generations.not_handed_on, 10_000);
        let expected = usize::try_from(generations.handed_on).unwrap() * (frames::HEAD_LEN + 1000);
        let mut read = 0;
        while read < expected {
            generations.flush(Time::ZERO);
            read += old.read(&mut [0; 10_000]).unwrap();
        }
        assert!(read == expected && !generations.is_clogged());
        fs::remove_dir_all(dir).unwrap();
    }
}
