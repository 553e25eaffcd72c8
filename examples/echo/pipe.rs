//! Connects stdin and stdout to a session, as a stream of bytes in each direction.
//!
//! Bare KCP has no end of a stream. Here it is an empty message, sent after everything before it was acknowledged.
//! Programs that do not know this convention ignore it.

use crate::args::Args;
use crate::gone;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use whitewater::kcp::wire::{Command, segments};
use whitewater::kcp::{self, Config, Conv, Sn};

pub(crate) fn connect(args: &Args, to: SocketAddr) -> Result<(), String> {
    let conv = args.conv.unwrap_or(Conv(1));
    let socket = kcp::Socket::connect(to, conv, &args.config()).map_err(|error| format!("{to}: {error}"))?;
    run(args, socket, false)
}

pub(crate) fn listen(args: &Args, at: SocketAddr) -> Result<(), String> {
    let socket = UdpSocket::bind(at).map_err(|error| format!("cannot listen on {at}: {error}"))?;
    let socket = first_peer(args, socket).map_err(|error| format!("{at}: {error}"))?;
    run(args, socket, true)
}

/// Waits for the datagram that opens a session, and leaves it for the session to read.
fn first_peer(args: &Args, socket: UdpSocket) -> io::Result<kcp::Socket> {
    let mut buf = vec![0; 1 << 16];
    loop {
        let (len, peer) = socket.peek_from(&mut buf)?;
        let mut segments = segments(buf.get(..len).unwrap_or_default());
        if let Some(Ok(first)) = segments.next()
            && args.conv.is_none_or(|conv| conv == first.header.conv)
            && (first.header.cmd, first.header.una) == (Command::Push, Sn(0))
        {
            return kcp::Socket::from_socket(socket, peer, first.header.conv, &args.config());
        }
        socket.recv_from(&mut buf)?; // not the datagram that we wait for
    }
}

fn run(args: &Args, mut socket: kcp::Socket, listening: bool) -> Result<(), String> {
    socket.set_peer_timeout(Some(args.timeout));
    socket.set_eager(args.eager);
    let (stdin, (stdout, writer)) = (read_stdin(&socket), write_stdout());
    let mut pipe = Pipe {
        listening,
        linger: args.linger,
        timeout: args.timeout,
        socket,
        stdin,
        stdout,
        received: 0,
        unsent: Vec::new(),
        unwritten: Vec::new(),
        input_ended: false,
        end_sent: false,
        peer_ended: false,
        moved: Instant::now(),
    };
    let done = pipe.run();
    let Pipe { socket, stdout, .. } = pipe;
    drop(stdout); // the writer ends when it has written everything
    let written = writer.join().unwrap_or_else(|_| Err(io::Error::other("the writer panicked")));
    written.map_err(|error| format!("stdout: {error}"))?;
    done.map_err(|error| gone(&socket, &error))
}

struct Pipe {
    listening: bool,
    linger: Duration,
    timeout: Duration,
    socket: kcp::Socket,
    stdin: Receiver<io::Result<Vec<u8>>>,
    stdout: SyncSender<Vec<u8>>,
    /// Read from stdin, but not yet accepted by the send queue.
    unsent: Vec<u8>,
    /// Received, but not yet accepted by the writer.
    unwritten: Vec<u8>,
    input_ended: bool,
    end_sent: bool,
    peer_ended: bool,
    /// Segments received so far, of any kind.
    received: u64,
    /// When there was last a sign of life from stdin or the peer.
    moved: Instant,
}

impl Pipe {
    fn run(&mut self) -> io::Result<()> {
        loop {
            self.send()?;
            match self.receive() {
                // Everything has arrived. Only the end mark or its answer has no receiver.
                Err(error) if error.kind() == ErrorKind::TimedOut && self.end_sent => return Ok(()),
                received => received?,
            }
            let received = self.socket.stats().segments_received;
            if std::mem::replace(&mut self.received, received) != received {
                self.moved = Instant::now();
            }
            if self.patience().is_some_and(|patience| self.moved.elapsed() >= patience) {
                break;
            }
        }
        if self.peer_ended || self.silent_peer() {
            return Ok(());
        }
        Err(io::Error::other("the peer went silent and never said that it was done"))
    }

    fn silent_peer(&self) -> bool {
        self.socket.stats().rcv_nxt == Sn(0)
    }

    /// How much silence ends the pipe in its current state.
    fn patience(&self) -> Option<Duration> {
        let all_there = self.unwritten.is_empty() && self.socket.kcp().wait_snd() == 0;
        match (self.end_sent, self.peer_ended) {
            (true, true) => self.unwritten.is_empty().then_some(FAREWELL),
            (true, false) if self.silent_peer() => Some(self.linger), // it has nothing to say
            (true, false) => Some(self.timeout),                      // it may not know the end mark
            (false, true) if self.listening && all_there => Some(self.linger),
            (false, _) => None,
        }
    }

    /// Sends from stdin, as far as there is room; at the end, the end mark.
    fn send(&mut self) -> io::Result<()> {
        while !self.input_ended {
            if self.unsent.is_empty() {
                match self.stdin.try_recv() {
                    Ok(bytes) => self.unsent = bytes?,
                    Err(TryRecvError::Empty) => return Ok(()),
                    Err(TryRecvError::Disconnected) => self.input_ended = true,
                }
                continue;
            }
            self.moved = Instant::now();
            match self.socket.send(&self.unsent) {
                Ok(len) => drop(self.unsent.drain(..len)),
                Err(error) if error.is_full() => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        if self.socket.kcp().wait_snd() > 0 && !self.end_sent {
            self.moved = Instant::now();
        } else if !self.end_sent {
            // In a stream an empty message adds nothing, so it is not sent as part of the stream.
            let messages = Config { stream: false, ..*self.socket.kcp().config() };
            self.socket.kcp_mut().configure(&messages).map_err(io::Error::other)?;
            self.socket.send(b"")?;
            self.end_sent = true;
        }
        Ok(())
    }

    /// Writes from the session to stdout. If the writer is behind, this stops reading, and the window closes.
    fn receive(&mut self) -> io::Result<()> {
        if self.unwritten.is_empty() {
            let mut buf = [0; 1 << 16];
            self.socket.set_read_timeout(Some(STDIN_EVERY));
            match self.socket.recv_blocking(&mut buf) {
                Ok(0) => self.peer_ended = true,
                Ok(len) => self.unwritten.extend_from_slice(buf.get(..len).unwrap_or_default()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
            self.moved = Instant::now();
        } else {
            self.socket.pump()?;
            thread::sleep(STDIN_EVERY);
        }
        match self.stdout.try_send(std::mem::take(&mut self.unwritten)) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(bytes)) => {
                self.unwritten = bytes;
                Ok(())
            }
            Err(TrySendError::Disconnected(_)) => Err(io::Error::other("nobody takes what is received")),
        }
    }
}

/// Reads stdin on its own thread, which may block forever, so nothing waits for it.
fn read_stdin(socket: &kcp::Socket) -> Receiver<io::Result<Vec<u8>>> {
    let most = usize::from(socket.kcp().config().mss()) * 64; // one send takes at most 127 segments
    let (sender, receiver) = sync_channel(4);
    thread::spawn(move || {
        let mut stdin = io::stdin().lock();
        loop {
            let mut buf = vec![0; most.min(1 << 16)];
            let read = match stdin.read(&mut buf) {
                Ok(0) => return,
                Ok(len) => {
                    buf.truncate(len);
                    Ok(buf)
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => Err(error),
            };
            let failed = read.is_err();
            if sender.send(read).is_err() || failed {
                return;
            }
        }
    });
    receiver
}

/// Writes stdout on its own thread, which ends with the sender.
fn write_stdout() -> (SyncSender<Vec<u8>>, JoinHandle<io::Result<()>>) {
    let (sender, receiver) = sync_channel::<Vec<u8>>(64);
    let writer = thread::spawn(move || {
        let mut stdout = io::stdout().lock();
        for bytes in receiver {
            stdout.write_all(&bytes)?;
            stdout.flush()?;
        }
        Ok(())
    });
    (sender, writer)
}

/// How often to check stdin while nothing is received.
const STDIN_EVERY: Duration = Duration::from_millis(10);

/// Silence after both ends have ended: time to acknowledge again what the peer missed.
const FAREWELL: Duration = Duration::from_millis(700);
