//! Whether io_uring would serve many addresses for less than `recvmmsg` and `sendmmsg`. A server answers each datagram with the
//! same bytes. Its clients are in the same thread, and take turns with it, so its CPU time is counted alone. That of the process
//! counts, which includes threads of the kernel that work for a ring.
//!
//! On loopback, whoever sends a datagram also takes it through the stack to the socket of the receiver. So a send is dearer here
//! than on a card, and what a ring saves around it is a smaller share of all.

use super::bare::{BATCH, Mmsg};
use super::udp::Mover;
use crate::table::Spread;
use io_uring::types::{BufRingEntry, Fixed};
use io_uring::{IoUring, cqueue, opcode, squeue};
use std::mem;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;
use whitewater_udp::{Mode, Port};

/// Each load in each way `rounds` times. In each round the ways take turns.
pub(crate) fn table(rounds: usize) {
    println!(
        "A server that echoes datagrams: CPU ns of one, with receiving and sending; median of {rounds} interleaved rounds"
    );
    for load in [
        Load { addresses: 1000, run: 1, size: 64, burst: 100 },
        Load { addresses: 1000, run: 1, size: 1200, burst: 48 },
        Load { addresses: 1000, run: 8, size: 1200, burst: 48 },
    ] {
        load.table(rounds);
    }
}

/// What the clients send.
#[derive(Clone, Copy)]
struct Load {
    addresses: usize,
    /// Datagrams of each address in a row.
    run: usize,
    size: usize,
    /// Datagrams before the server has its turn: fewer than fit in a receive buffer of the usual size.
    burst: usize,
}

type RunFn = fn(Load) -> Cost;

/// ns per datagram.
struct Cost {
    /// In the server's turns.
    server: f64,
    /// In those of its clients, who wake it when they send.
    clients: f64,
}

const WAYS: [(&str, RunFn); 4] = [
    ("bare recvmmsg", run::<Bare>),
    ("ours, batched", run::<Ours>),
    ("io_uring", run::<Ring<false>>),
    ("io_uring, zero copy", run::<Ring<true>>),
];

impl Load {
    fn table(self, rounds: usize) {
        let Self { addresses, run, size, .. } = self;
        println!("{run} of {size} B from each of {addresses} addresses in turn");
        let mut costs: Vec<_> = WAYS.iter().map(|_| [const { Vec::new() }; 2]).collect();
        for _ in 0..rounds {
            for ((_, run), [server, clients]) in WAYS.iter().zip(&mut costs) {
                let cost = run(self);
                server.push(cost.server);
                clients.push(cost.clients);
            }
        }
        let costs: Vec<_> = costs.into_iter().map(|costs| costs.map(Spread::of)).collect();
        let [base, _] = &costs[1];
        for ((name, _), [server, clients]) in WAYS.iter().zip(&costs) {
            println!(
                "  {name:20} {:6.0} [{server}]  {:.3} million a second and core, {:.2} of ours; clients {:6.0}",
                server.median,
                1e3 / server.median,
                base.median / server.median,
                clients.median
            );
        }
    }
}

/// A way to serve.
trait Echo {
    fn new(socket: UdpSocket) -> Self;

    /// Answers what has arrived, at least one datagram. Returns how many there were.
    fn turn(&mut self) -> usize;
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
fn run<E: Echo>(load: Load) -> Cost {
    let bind = || UdpSocket::bind("127.0.0.1:0").unwrap();
    let socket = bind();
    let to = socket.local_addr().unwrap();
    let clients: Vec<_> = (0..load.addresses).map(|_| bind()).collect();
    for client in &clients {
        client.connect(to).unwrap();
        client.set_nonblocking(true).unwrap();
    }
    let mut server = E::new(socket);
    let (datagram, mut answer) = (vec![7; load.size], vec![0; 2048]);
    let (mut serving, mut rest) = (Duration::ZERO, Duration::ZERO);
    let mut order = clients.iter().cycle();
    for index in 0..BURSTS + WARM {
        if index == WARM {
            (serving, rest) = (Duration::ZERO, Duration::ZERO);
        }
        let senders: Vec<_> = order.by_ref().take(load.burst / load.run).collect();
        let begin = process_time();
        for sender in &senders {
            (0..load.run).for_each(|_| assert_eq!(sender.send(&datagram).unwrap(), load.size));
        }
        let sent = process_time();
        let mut left = load.burst;
        while left > 0 {
            left -= server.turn();
        }
        let served = process_time();
        for sender in &senders {
            (0..load.run).for_each(|_| assert_eq!(sender.recv(&mut answer).unwrap(), load.size));
        }
        serving += served - sent;
        rest += sent - begin + (process_time() - served);
    }
    let each = |time: Duration| time.as_secs_f64() * 1e9 / (BURSTS * load.burst) as f64;
    Cost { server: each(serving), clients: each(rest) }
}

const BURSTS: usize = 1000;
const WARM: usize = 100;

/// The library's sockets.
struct Ours {
    port: Port,
    answer: Vec<u8>,
}

impl Echo for Ours {
    fn new(socket: UdpSocket) -> Self {
        Self { port: Port::new(socket, Mode::Whole, BATCH).unwrap(), answer: Vec::new() }
    }

    fn turn(&mut self) -> usize {
        let mut count = 0;
        while self.port.has_next(usize::MAX).unwrap()
            && let Some(datagram) = self.port.pop()
        {
            self.answer.clear();
            self.answer.extend_from_slice(datagram.bytes);
            let to = datagram.from;
            self.port.stage().extend_from_slice(&self.answer);
            self.port.commit(to, 0);
            if self.port.is_due() {
                self.port.flush();
            }
            count += 1;
        }
        self.port.flush();
        count
    }
}

/// The system's calls with nothing around them.
struct Bare {
    socket: UdpSocket,
    calls: Mmsg,
}

impl Echo for Bare {
    fn new(socket: UdpSocket) -> Self {
        socket.set_nonblocking(true).unwrap();
        Self { calls: Mmsg::new(&socket, &socket), socket }
    }

    fn turn(&mut self) -> usize {
        let count = self.calls.recv(&self.socket);
        self.calls.echo(&self.socket, count);
        count
    }
}

/// A ring that receives without being asked again, into buffers that it was given, and sends all answers from there by one
/// call: the best that can be reached. A server has to encrypt, so it would copy as well. Sends that are linked would not leave
/// within the call: each is started by the end of the one before it.
struct Ring<const ZERO_COPY: bool> {
    ring: IoUring,
    /// The memory of all buffers, each with what arrived, behind its address.
    bytes: Vec<u8>,
    /// The buffers that the kernel may fill.
    free: FreeBuffers,
    /// What of each arrival is asked for.
    header: Box<libc::msghdr>,
    is_receiving: bool,
    /// Buffers whose answer is about to be sent.
    sending: Vec<u16>,
    _socket: UdpSocket,
}

impl<const ZERO_COPY: bool> Echo for Ring<ZERO_COPY> {
    fn new(socket: UdpSocket) -> Self {
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_submit_all()
            .setup_cqsize(4 * u32::from(BUFFERS))
            .build(u32::from(BUFFERS))
            .expect("the system has io_uring");
        let mut bytes = vec![0; usize::from(BUFFERS) * BUFFER];
        let mut free = FreeBuffers::new();
        (0..BUFFERS).for_each(|id| free.push(id, &mut bytes));
        let whole = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
        // SAFETY: the buffers live as long as the ring. All zeros is a valid header.
        let header = unsafe {
            ring.submitter().register_buf_ring_with_flags(free.address(), BUFFERS, GROUP, 0).unwrap();
            ring.submitter().register_buffers(&[whole]).unwrap();
            let mut header: libc::msghdr = mem::zeroed();
            header.msg_namelen = NAME as u32;
            Box::new(header)
        };
        ring.submitter().register_files(&[socket.as_raw_fd()]).unwrap();
        Self { ring, bytes, free, header, is_receiving: false, sending: Vec::new(), _socket: socket }
    }

    fn turn(&mut self) -> usize {
        if !self.is_receiving {
            let receive = opcode::RecvMsgMulti::new(Fixed(0), &raw const *self.header, GROUP).build();
            self.push(&receive.user_data(RECEIVING));
            self.is_receiving = true;
        }
        self.ring.submit_and_wait(1).unwrap();
        self.take_completions();
        let mut sending = mem::take(&mut self.sending);
        for id in &sending {
            let answer = self.answer(*id);
            self.push(&answer);
        }
        self.ring.submit().unwrap();
        if !ZERO_COPY {
            // All answers have left within the call, or a completion would say so.
            sending.iter().for_each(|id| self.free.push(*id, &mut self.bytes));
        }
        let count = sending.len();
        sending.clear();
        self.sending = sending;
        count
    }
}

impl<const ZERO_COPY: bool> Ring<ZERO_COPY> {
    fn take_completions(&mut self) {
        for completion in self.ring.completion() {
            let flags = completion.flags();
            if completion.user_data() != RECEIVING {
                assert!(completion.result() >= 0, "an answer did not leave: {}", completion.result());
                if ZERO_COPY && cqueue::notif(flags) {
                    self.free.push(completion.user_data() as u16, &mut self.bytes);
                }
                continue;
            }
            self.is_receiving = cqueue::more(flags);
            match cqueue::buffer_select(flags) {
                Some(id) => self.sending.push(id),
                None => assert_eq!(completion.result(), -libc::ENOBUFS),
            }
        }
    }

    /// The answer to what is in a buffer: sent from there.
    fn answer(&self, id: u16) -> squeue::Entry {
        let buffer = &self.bytes[usize::from(id) * BUFFER..][..BUFFER];
        let [len, to, bytes] = [LEN_AT, NAME_AT, NAME_AT + NAME].map(|at| &buffer[at..]);
        let len = u32::from_ne_bytes(*len.first_chunk().unwrap());
        let to = to.as_ptr().cast();
        if ZERO_COPY {
            let send = opcode::SendZc::new(Fixed(0), bytes.as_ptr(), len).buf_index(Some(0));
            send.dest_addr(to).dest_addr_len(NAME as u32).build().user_data(id.into())
        } else {
            let send =
                opcode::Send::new(Fixed(0), bytes.as_ptr(), len).dest_addr(to).dest_addr_len(NAME as u32);
            send.build().user_data(id.into()).flags(squeue::Flags::SKIP_SUCCESS)
        }
    }

    fn push(&mut self, entry: &squeue::Entry) {
        // SAFETY: what it points to lives as long as the ring.
        unsafe { self.ring.submission().push(entry) }.expect("there is room for all buffers");
    }
}

/// Buffers, and what each holds: the kernel's header of an arrival, its address, its bytes.
const BUFFERS: u16 = 256;
const BUFFER: usize = 2048;
const GROUP: u16 = 0;
/// Within `struct io_uring_recvmsg_out`, four numbers of 32 bits: the third is the length of the datagram.
const LEN_AT: usize = 8;
const NAME_AT: usize = 16;
const NAME: usize = mem::size_of::<libc::sockaddr_in>();
/// No number of a buffer.
const RECEIVING: u64 = u64::MAX;

/// The ring of buffers that both ends read.
struct FreeBuffers {
    /// In pages of its own, as the kernel wants them.
    entries: Vec<u8>,
    start: usize,
    tail: u16,
}

impl FreeBuffers {
    fn new() -> Self {
        let entries = vec![0; usize::from(BUFFERS) * mem::size_of::<BufRingEntry>() + PAGE];
        let start = entries.as_ptr().align_offset(PAGE);
        Self { entries, start, tail: 0 }
    }

    fn address(&self) -> u64 {
        self.entries[self.start..].as_ptr() as u64
    }

    fn push(&mut self, id: u16, bytes: &mut [u8]) {
        let first: *mut BufRingEntry = self.entries[self.start..].as_mut_ptr().cast();
        // SAFETY: there are that many entries, and only the kernel looks at them, up to the tail.
        unsafe {
            let entry = &mut *first.add(usize::from(self.tail % BUFFERS));
            entry.set_addr(bytes[usize::from(id) * BUFFER..].as_mut_ptr() as u64);
            entry.set_len(BUFFER as u32);
            entry.set_bid(id);
            self.tail = self.tail.wrapping_add(1);
            let tail = BufRingEntry::tail(first).cast::<AtomicU16>();
            (*tail).store(self.tail, Ordering::Release);
        }
    }
}

const PAGE: usize = 4096;

/// CPU time of all threads of the process.
fn process_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: it writes the time to `time` and nothing else.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) }, 0);
    Duration::new(time.tv_sec.cast_unsigned(), u32::try_from(time.tv_nsec).unwrap_or(0))
}
