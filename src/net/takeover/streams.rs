//! The streams between generations: to each older one, and from each newer one.

use super::super::shards::{STRAYS_MAX, Stray, Wake};
use super::claim::give_up;
use super::frames::{HEAD_LEN, HELLO, decode, encode};
use crate::machine::Arrival;
use std::io::{self, BufReader, ErrorKind, Read as _, Write as _};
use std::net::SocketAddr;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// Takes the socket over from these generations. Waits until each has stopped reading, or has shown that it hangs.
pub(super) fn take_over(older: Vec<Option<UnixStream>>) -> io::Result<Vec<Option<Older>>> {
    for mut stream in older.iter().flatten() {
        let _ = stream.write_all(&HELLO); // if it has just ended, the answer says so
    }
    let deadline = Instant::now() + ANSWER;
    let answered = |stream| await_answer(stream, deadline).transpose();
    older.into_iter().map(|stream| stream.and_then(answered).transpose()).collect()
}

/// `None`: that process has just ended.
fn await_answer(mut stream: UnixStream, deadline: Instant) -> io::Result<Option<Older>> {
    let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
    stream.set_read_timeout(Some(left))?;
    let mut answer = [0; HELLO.len()];
    match stream.read_exact(&mut answer) {
        Ok(()) if answer != HELLO => {
            let why = "the old process hands datagrams on in another format";
            return Err(io::Error::new(ErrorKind::Unsupported, why));
        }
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::WouldBlock => {
            // What it still reads cannot be of a new session, and it stops before it reads more.
            log::warn!("an old process has not answered for {ANSWER:?}; its socket is taken over anyway");
        }
        Err(_) => return Ok(None),
    }
    stream.set_nonblocking(true)?;
    Ok(Some(Older { stream, out: Vec::new(), is_alive: true }))
}

/// An older generation, and what waits to be sent to it.
#[derive(Debug)]
pub(super) struct Older {
    stream: UnixStream,
    out: Vec<u8>,
    is_alive: bool,
}

impl Older {
    pub(super) const fn is_alive(&self) -> bool {
        self.is_alive
    }

    /// Hands a datagram on; `false`: too many wait.
    pub(super) fn push(&mut self, from: Arrival, datagram: &[u8]) -> bool {
        let has_room = self.out.len() + HEAD_LEN + datagram.len() <= OUT_MAX;
        if !has_room || !encode(from, datagram, &mut self.out) {
            return false;
        }
        if self.out.len() >= FULL {
            self.flush();
        }
        true
    }

    /// Says that this process runs: a datagram without a byte, which belongs to no session. What waits says the same.
    pub(super) fn beat(&mut self) {
        if self.out.is_empty() {
            encode(SocketAddr::from(([0; 4], 0)).into(), &[], &mut self.out);
            self.flush();
            if self.out.len() == HEAD_LEN {
                self.out.clear(); // there was no room for a byte of it
            }
        }
    }

    /// Sends what waits, as far as there is room. Returns whether the process is still there.
    pub(super) fn flush(&mut self) -> bool {
        while self.is_alive && !self.out.is_empty() {
            match self.stream.write(&self.out) {
                Ok(sent) if sent > 0 => _ = self.out.drain(..sent),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                _ => self.is_alive = false,
            }
        }
        self.is_alive
    }

    pub(super) const fn is_clogged(&self) -> bool {
        !self.out.is_empty()
    }
}

/// What newer generations say.
#[derive(Debug)]
pub(super) enum Came {
    /// One takes the socket over, and waits for an answer here.
    Successor(UnixStream),
    Datagram(Stray),
    /// One runs.
    Beat,
    /// One that took it over has ended.
    End,
}

/// Where newer generations come in: a thread that accepts, and one for each of them.
#[derive(Debug)]
pub(super) struct Door {
    came: Receiver<Came>,
    path: PathBuf,
    is_closed: Arc<AtomicBool>,
}

impl Door {
    pub(super) fn open(listener: UnixListener, path: PathBuf, owner: Arc<dyn Wake>) -> io::Result<Self> {
        let (inside, came) = sync_channel(STRAYS_MAX);
        let hall = Hall { inside, owner };
        let door = Self { came, path, is_closed: Arc::default() };
        let is_closed = Arc::clone(&door.is_closed);
        thread::Builder::new().name("whitewater door".into()).spawn(move || {
            for stream in listener.incoming() {
                if is_closed.load(Ordering::Acquire) {
                    return;
                }
                let hall = hall.clone();
                let read = |stream| {
                    let name = "whitewater successor".into();
                    thread::Builder::new().name(name).spawn(move || hall.read(stream))
                };
                if let Err(error) = stream.and_then(read) {
                    log::warn!("cannot let a successor in: {error}");
                    thread::sleep(AGAIN); // no descriptor or thread is left: accepting fails at once
                }
            }
        })?;
        Ok(door)
    }

    pub(super) fn next(&self) -> Option<Came> {
        self.came.try_recv().ok()
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.is_closed.store(true, Ordering::Release);
        give_up(&self.path);
    }
}

/// The way from the threads to the driver.
#[derive(Clone, Debug)]
struct Hall {
    inside: SyncSender<Came>,
    owner: Arc<dyn Wake>,
}

impl Hall {
    /// Reads what a newer generation sends, until it or the driver has ended.
    fn read(&self, mut stream: UnixStream) {
        let mut hello = [0; HELLO.len()];
        if stream.read_exact(&mut hello).is_err() {
            return;
        }
        if hello != HELLO {
            let _ = stream.write_all(&HELLO); // tells it that the format is another one
            return;
        }
        let Ok(answer) = stream.try_clone() else { return };
        if self.give(Came::Successor(answer)) {
            self.owner.wake();
            self.read_datagrams(stream);
            self.give(Came::End);
            self.owner.wake();
        }
    }

    fn read_datagrams(&self, stream: UnixStream) {
        let mut stream = BufReader::with_capacity(BUFFER, stream);
        let mut head = [0; HEAD_LEN];
        while stream.read_exact(&mut head).is_ok() {
            let Some((from, len)) = decode(&head) else { return };
            let mut bytes = vec![0; len].into_boxed_slice();
            if stream.read_exact(&mut bytes).is_err() {
                return;
            }
            let came = if len == 0 { Came::Beat } else { Came::Datagram(Stray { from, bytes }) };
            if !self.give(came) {
                return;
            }
            if stream.buffer().is_empty() {
                self.owner.wake();
            }
        }
    }

    /// Waits while too many are inside, which holds up the sender. `false`: the driver has ended.
    fn give(&self, came: Came) -> bool {
        match self.inside.try_send(came) {
            Ok(()) => true,
            Err(TrySendError::Disconnected(_)) => false,
            Err(TrySendError::Full(came)) => {
                self.owner.wake();
                self.inside.send(came).is_ok()
            }
        }
    }
}

/// How long a successor waits for an old process to stop reading. A game pumps every frame.
const ANSWER: Duration = Duration::from_secs(1);
/// When the door is tried again after the system has refused.
const AGAIN: Duration = Duration::from_millis(100);
/// Bytes that make a write worth while, the most that wait, and the buffer of a reader.
const FULL: usize = 32 << 10;
const OUT_MAX: usize = 1 << 20;
const BUFFER: usize = 64 << 10;
