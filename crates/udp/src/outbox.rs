//! Gathers datagrams so that few system calls send them.

use crate::counts::{Fault, Tally};
use crate::offload::Offload;
use crate::{NOWHERE, SLOT, Socket};
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::net::SocketAddr;

/// Datagrams waiting to be sent, in order. Consecutive datagrams of one size to one address leave as one
/// batch; the last of them may be shorter. What the socket does not accept stays and leaves first later.
///
/// The buffers grow to the largest batch and are kept.
#[derive(Default)]
pub(crate) struct Outbox {
    /// The datagrams of all runs, one after another; they stay until all have left. After them comes what is
    /// on the [stage](Self::stage).
    bytes: Vec<u8>,
    /// Where the last datagram ends.
    end: usize,
    runs: VecDeque<Run>,
}

/// Without the bytes, which are many.
impl fmt::Debug for Outbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbox")
            .field("end", &self.end)
            .field("runs", &self.runs.len())
            .finish_non_exhaustive()
    }
}

/// Datagrams that can leave as one batch.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Run {
    to: SocketAddr,
    start: usize,
    end: usize,
    /// The length of each datagram but the last.
    size: usize,
    count: usize,
    ecn: u8,
}

impl Outbox {
    pub(crate) fn stage(&mut self) -> &mut Vec<u8> {
        self.bytes.truncate(self.end);
        &mut self.bytes
    }

    pub(crate) fn staged(&self) -> &[u8] {
        self.bytes.get(self.end..).unwrap_or_default()
    }

    pub(crate) fn commit(&mut self, to: SocketAddr, ecn: u8) {
        let (start, end) = (self.end, self.bytes.len());
        self.end = end;
        if let Some(run) = self.runs.back_mut().filter(|run| run.ecn == ecn && run.takes(to, end - start)) {
            run.end = end;
            run.count += 1;
        } else {
            self.runs.push_back(Run { to, start, end, size: end - start, count: 1, ecn });
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    pub(crate) fn is_due(&self) -> bool {
        self.end >= MOST_BYTES || self.runs.len() >= MOST_RUNS
    }

    /// Drops everything that waits, except what is on the [stage](Self::stage).
    pub(crate) fn clear(&mut self) {
        self.bytes.drain(..self.end);
        self.end = 0;
        self.runs.clear();
    }

    /// Sends everything that waits. A datagram that cannot be sent is lost and counted.
    ///
    /// # Errors
    ///
    /// Only `WouldBlock`: the socket has no room for the rest, which stays.
    pub(crate) fn flush(
        &mut self,
        offload: &mut Offload,
        socket: &impl Socket,
        tally: &mut Tally,
    ) -> io::Result<()> {
        offload.moves(socket, self.runs.iter().map(|run| run.count).sum());
        while let Some(run) = self.runs.front_mut() {
            let joined = run.count.min(offload.most_joined());
            if joined > 1 {
                let len = run.len_of(joined);
                let datagrams = self.bytes.get(run.start..run.start + len).unwrap_or_default();
                match offload.send_joined(socket, datagrams, run.size, run.to, run.ecn) {
                    Ok(()) => tally.sent(joined),
                    Err(error) if Fault::of(&error) == Fault::Nothing => {
                        return tally.sending(&error, run.to);
                    }
                    // The card or the interface may not support it, or one datagram is too long: sending them
                    // one by one shows which.
                    Err(error) => {
                        log::debug!("{joined} datagrams to {} are sent one by one: {error}", run.to);
                        tally.not_joined(&error);
                        for _ in 0..joined {
                            self.flush_one(offload, socket, tally)?;
                        }
                        continue;
                    }
                }
                self.remove(joined);
            } else if run.ecn != 0 || !offload.sends_each() || self.next_is_alone() {
                self.flush_one(offload, socket, tally)?;
            } else {
                self.flush_some(offload, socket, tally)?;
            }
        }
        self.clear();
        Ok(())
    }

    fn flush_one(&mut self, offload: &Offload, socket: &impl Socket, tally: &mut Tally) -> io::Result<()> {
        let Some(run) = self.runs.front() else { return Ok(()) };
        let datagram = self.bytes.get(run.start..run.start + run.len_of(1)).unwrap_or_default();
        let sent = if run.ecn != 0 && offload.many.is_some() {
            offload.send_joined(socket, datagram, datagram.len(), run.to, run.ecn)
        } else {
            offload.send(socket, datagram, run.to)
        };
        match sent {
            Ok(()) => tally.sent(1),
            Err(error) => tally.sending(&error, run.to)?,
        }
        self.remove(1);
        Ok(())
    }

    /// Sends as many datagrams as fit in one call that does not join them.
    fn flush_some(&mut self, offload: &Offload, socket: &impl Socket, tally: &mut Tally) -> io::Result<()> {
        let mut datagrams = [(NOWHERE, &[][..]); MOST_EACH];
        let most_joined = offload.most_joined();
        let mut waiting = self
            .runs
            .iter()
            .take_while(|run| run.count.min(most_joined) <= 1 && (run.ecn == 0 || offload.many.is_none()))
            .flat_map(|run| {
                let bytes = self.bytes.get(run.start..run.end).unwrap_or_default();
                // A run of one datagram may be empty.
                let datagrams = bytes.chunks(run.size.max(1)).map(|datagram| (run.to, datagram));
                datagrams.chain(bytes.is_empty().then_some((run.to, bytes)))
            });
        let mut count = 0;
        for (slot, datagram) in datagrams.iter_mut().zip(&mut waiting) {
            *slot = datagram;
            count += 1;
        }
        let to = datagrams.first().map_or(NOWHERE, |(to, _)| *to);
        match offload.send_each(socket, datagrams.get(..count).unwrap_or_default()) {
            Ok(sent) => {
                tally.sent(sent);
                (0..sent).for_each(|_| self.remove(1));
            }
            Err(error) => {
                tally.sending(&error, to)?;
                self.remove(1);
            }
        }
        Ok(())
    }

    /// Whether exactly one datagram waits.
    fn next_is_alone(&self) -> bool {
        self.runs.len() == 1 && self.runs.front().is_some_and(|run| run.count == 1)
    }

    /// Removes the first `count` datagrams of the first run, which were sent or lost.
    fn remove(&mut self, count: usize) {
        let Some(run) = self.runs.front_mut() else { return };
        if count >= run.count {
            self.runs.pop_front();
        } else {
            run.start += run.size * count;
            run.count -= count;
        }
    }
}

impl Run {
    /// Whether a datagram of `len` bytes to `to` can join the run.
    fn takes(&self, to: SocketAddr, len: usize) -> bool {
        let is_open = self.end - self.start == self.size * self.count;
        self.to == to
            && is_open
            && (1..=self.size).contains(&len)
            && self.count < MOST_JOINED
            && self.end - self.start + len <= MOST_JOINED_BYTES
    }

    /// The size of the first `count` datagrams of the run, bytes.
    const fn len_of(&self, count: usize) -> usize {
        if count < self.count { self.size * count } else { self.end - self.start }
    }
}

/// Most datagrams that leave as one batch: UDP_MAX_SEGMENTS of Linux before 6.9, and enough.
const MOST_JOINED: usize = 64;
/// Most bytes in a batch: as much as one IPv4 datagram carries, which the batch is until it leaves.
const MOST_JOINED_BYTES: usize = 65_507;
/// Most datagrams in one call that does not join them. At this number the call itself is a small part of the
/// cost.
pub(crate) const MOST_EACH: usize = 32;
/// How much is gathered before it is sent: two of the longest runs, or as much as two calls take.
const MOST_BYTES: usize = 2 * SLOT;
const MOST_RUNS: usize = 2 * MOST_EACH;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::{Just, Strategy, prop_oneof, proptest};

    fn address(host: u8) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, host], 1000))
    }

    fn push(outbox: &mut Outbox, host: u8, len: usize) {
        outbox.stage().extend(std::iter::repeat_n(7, len));
        outbox.commit(address(host), 0);
    }

    /// The contents of an outbox, datagram by datagram.
    fn datagrams(outbox: &Outbox) -> Vec<(SocketAddr, Vec<u8>)> {
        let mut found = Vec::new();
        for run in &outbox.runs {
            let bytes = &outbox.bytes[run.start..run.end];
            assert!(run.count <= MOST_JOINED && bytes.len() <= MOST_JOINED_BYTES.max(run.size));
            assert_eq!(bytes.len().div_ceil(run.size.max(1)).max(1), run.count, "{run:?}");
            for at in 0..run.count {
                let (start, end) = (run.len_of(at), run.len_of(at + 1));
                found.push((run.to, bytes[start..end].to_vec()));
            }
        }
        found
    }

    /// A length, and how many datagrams of it follow each other.
    fn lengths() -> impl Strategy<Value = (usize, usize)> {
        prop_oneof![
            (Just(0), 1..3usize),
            (1..4usize, 1..150usize),
            (Just(1200), 1..70usize),
            (1100..1300usize, 1..3usize),
            (Just(40_000), 1..3usize)
        ]
    }

    proptest! {
        #[test]
        fn every_datagram_leaves_in_order(
            pushed in vec((0..3u8, lengths()), 0..12),
            sent in 0..200usize,
        ) {
            let (mut outbox, mut expected) = (Outbox::default(), Vec::new());
            for (host, (len, times)) in pushed {
                for _ in 0..times {
                    let datagram: Vec<u8> = (0..len).map(|at| [0, 1, 9, 200][(at + expected.len()) % 4]).collect();
                    outbox.stage().extend_from_slice(&datagram);
                    outbox.commit(address(host), 0);
                    expected.push((address(host), datagram));
                }
            }
            assert!(datagrams(&outbox) == expected);
            (0..sent).for_each(|_| outbox.remove(1));
            assert!(datagrams(&outbox) == expected[sent.min(expected.len())..]);
        }
    }

    #[test]
    fn neighbours_of_one_size_and_address_are_joined_and_a_shorter_one_ends_the_run() {
        let mut outbox = Outbox::default();
        for (host, len) in [(1, 5), (1, 5), (1, 3), (1, 5), (2, 5), (2, 6), (2, 0), (2, 6), (2, 6)] {
            push(&mut outbox, host, len);
        }
        let runs: Vec<_> = outbox.runs.iter().map(|run| (run.size, run.count)).collect();
        assert_eq!(runs, [(5, 3), (5, 1), (5, 1), (6, 1), (0, 1), (6, 2)]);
    }

    #[test]
    fn a_run_never_exceeds_one_call() {
        let mut outbox = Outbox::default();
        for (len, times) in [(10, 130), (1200, 60)] {
            (0..times).for_each(|_| push(&mut outbox, 1, len));
        }
        let counts: Vec<_> = outbox.runs.iter().map(|run| run.count).collect();
        assert_eq!(counts, [64, 64, 2, 54, 6]);
    }

    #[test]
    fn the_outbox_is_due_from_128_kib_or_64_runs_on() {
        let (mut long, mut many) = (Outbox::default(), Outbox::default());
        (0..64).for_each(|_| push(&mut long, 1, 2047));
        push(&mut long, 1, 63);
        (0..63).for_each(|host| push(&mut many, host, 0));
        assert!(!long.is_due() && !many.is_due());
        push(&mut long, 1, 1);
        push(&mut many, 63, 0);
        assert!(long.is_due() && many.is_due());
    }

    #[test]
    fn staged_datagrams_are_not_copied() {
        let mut outbox = Outbox::default();
        outbox.stage().reserve(100);
        for datagram in [b"written once", b"behind that."] {
            outbox.stage().extend_from_slice(b"given up");
            outbox.stage().extend_from_slice(datagram);
            let written = outbox.bytes.as_ptr();
            outbox.commit(address(1), 0);
            assert_eq!(outbox.bytes.as_ptr(), written);
        }
        assert_eq!(outbox.bytes, b"written oncebehind that.");
        assert_eq!(outbox.runs.len(), 1);
    }
}
