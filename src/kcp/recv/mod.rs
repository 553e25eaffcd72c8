//! The receiving half: takes segments in any order and returns messages in order.

mod read;
mod room;

use super::send::SHARE_MIN;
use crate::ring::{BYTES_MAX, ByteRing, Ring};
use crate::seq::Sn;
use crate::time::Millis;
use crate::wire::RawHeader;
use bytes::Bytes;
use room::Room;
use std::num::NonZeroU32;

/// The segments from the oldest unread one to the newest that arrived. Up to `nxt` there is no gap (KCP's `rcv_queue`);
/// from there on some are missing (`rcv_buf`).
///
/// They are stored in a log in the order of arrival, each with its header. A segment that arrived in order is at the
/// front of the log when it is read. The index locates the others.
#[derive(Debug)]
pub(super) struct Receiver {
    /// Starts at the oldest unread segment.
    index: Ring<Place>,
    /// The number expected next.
    pub(super) nxt: Sn,
    /// Segments held from `nxt` on.
    pub(super) parked: u32,
    log: ByteRing,
    /// Segments that have been read but are still in the log, behind an older one that has not been read.
    read_early: u32,
    /// `frg` of the segment before `nxt`.
    last_frg: u8,
    /// The queue was full since the last read, so complete segments may still be parked.
    was_full: bool,
    /// Whether the peer's window is known. Until then the smallest window of ikcp.c is assumed.
    pub(super) hears_wnd: bool,
    /// Whether the peer knows that acknowledgements may wait for a segment of ours.
    pub(super) rides: bool,
    rare: Option<Box<Rare>>,
}

/// What few receivers need.
#[derive(Debug)]
struct Rare {
    /// Payloads that share a datagram's buffer.
    shared: Ring<Bytes>,
    /// A limit on the bytes held. `None`: only the window limits them.
    room: Option<Room>,
}

/// Segments stored together.
#[derive(Clone, Copy, Default)]
pub(super) struct Row {
    pub(super) count: usize,
    /// Their bytes, headers included.
    pub(super) bytes: usize,
}

/// What happened to a segment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Stored {
    New,
    Duplicate,
    /// Beyond the window, or no room is left.
    Beyond,
    /// Its `frg` does not continue that of its neighbour. No honest peer sends that.
    BrokenChain,
}

impl Receiver {
    pub(super) fn new(start: Sn) -> Self {
        let (index, log) = (Ring::new(start), ByteRing::default());
        Self {
            index,
            nxt: start,
            parked: 0,
            log,
            read_early: 0,
            last_frg: 0,
            was_full: false,
            hears_wnd: false,
            rides: false,
            rare: None,
        }
    }

    /// Segments that can be read, of complete messages or not.
    #[inline]
    pub(super) fn queued(&self) -> u32 {
        self.nxt.0.wrapping_sub(self.index.start().0)
    }

    /// Number of segments that there is room for. Source: ikcp.c `ikcp_wnd_unused`.
    #[inline]
    pub(super) fn window(&self, rcv_wnd: u16) -> u16 {
        let left = rcv_wnd.saturating_sub(u16::try_from(self.queued()).unwrap_or(u16::MAX));
        left.min(self.room_for_full())
    }

    /// Stores a segment that is next in order, is a whole message and has room. `false`: it is not such a segment.
    #[inline]
    pub(super) fn store_next(&mut self, head: RawHeader<'_>, segment: &[u8], rcv_wnd: u16) -> bool {
        let in_turn = head.sn() == self.nxt && self.parked == 0;
        let queued = self.queued() + 1;
        if !in_turn
            || head.frg() != 0
            || self.last_frg != 0
            || queued > rcv_wnd.into()
            || !self.has_room_in_turn(segment.len())
        {
            return false;
        }
        let Some((_, room)) = self.log.extend(segment.len()) else { return false };
        self.nxt = self.nxt.add(1);
        room.copy_from_slice(segment);
        self.was_full = queued == rcv_wnd.into() || self.room_for_full() == 0;
        true
    }

    /// Stores the row of segments at the front of `datagram`, at most `most` of them. A row consists of new,
    /// consecutive segments that are whole messages and differ only in their times; `each` gets numbers and times. The
    /// row is empty if the first segment does not start one; then call [`store`](Self::store).
    #[inline]
    pub(super) fn store_row(
        &mut self,
        datagram: &[u8],
        most: usize,
        rcv_wnd: u16,
        mut each: impl FnMut(Sn, Millis),
    ) -> Row {
        let Some((first, _)) = RawHeader::split(datagram) else { return Row::default() };
        let in_turn = first.sn() == self.nxt && self.parked == 0;
        let end = if in_turn { self.index.start() } else { self.nxt }.add(rcv_wnd.into());
        if first.frg() != 0
            || first.sn().is_before(self.nxt)
            || self.frg_before(first.sn()) != 0
            || self.log.len() as usize + datagram.len() > BYTES_MAX
            || (self.room().is_some() && !(in_turn && self.has_room_in_turn(datagram.len())))
        {
            return Row::default();
        }
        let most = most.min(usize::try_from(end.distance(first.sn())).unwrap_or(0));
        let (mut sn, mut rest, mut count) = (first.sn(), datagram, 0);
        while count < most
            && let Some((head, data)) = RawHeader::split(rest)
            && head.sn() == sn
            && head.common() == first.common()
            && let Some(after) = data.get(head.len() as usize..)
        {
            let place = Place::in_log(self.log.end(), datagram.len() - rest.len());
            if !in_turn && !self.index.insert_new(sn, place) {
                break;
            }
            each(sn, head.ts());
            sn = sn.add(1);
            rest = after;
            count += 1;
        }
        if count == 0 {
            return Row::default();
        }
        let bytes = datagram.len() - rest.len();
        self.log.push(datagram.get(..bytes).unwrap_or_default());
        if in_turn {
            self.nxt = sn;
            self.was_full = !sn.is_before(end) || self.room_for_full() == 0;
        } else {
            self.parked += sn.0.wrapping_sub(first.sn().0);
            self.deliver(rcv_wnd);
        }
        Row { count, bytes }
    }

    /// Stores a segment, and queues what it completes. Source: ikcp.c `ikcp_input`, `ikcp_parse_data`.
    ///
    /// `backing` is the buffer that holds `data`, if it can be shared. It is shared instead of copied if `data` makes
    /// up much of it.
    #[inline(never)]
    pub(super) fn store(&mut self, segment: &[u8], backing: Option<&Bytes>, rcv_wnd: u16) -> Stored {
        let Some((head, data)) = RawHeader::split(segment) else {
            return Stored::BrokenChain;
        };
        let (sn, frg) = (head.sn(), head.frg());
        if !sn.is_before(self.nxt.add(rcv_wnd.into())) {
            return Stored::Beyond;
        }
        if sn.is_before(self.nxt) || self.index.get(sn).is_some() {
            return Stored::Duplicate;
        }
        if !self.continues_chain(sn, frg) {
            return Stored::BrokenChain;
        }
        if !self.reserve(sn, frg, segment.len()) {
            return Stored::Beyond;
        }
        let place = match backing {
            Some(backing) if data.len() >= SHARE_MIN.max(backing.len() / 4) => {
                self.share(sn, backing.slice_ref(data));
                Place::shared(frg)
            }
            _ => match self.log.push(segment) {
                Some(position) => Place::in_log(position, 0),
                None => return Stored::Beyond,
            },
        };
        self.index.insert(sn, place);
        self.parked += 1;
        self.deliver(rcv_wnd);
        Stored::New
    }

    /// Queues what has become complete, up to the window. Source: ikcp.c `ikcp_parse_data`, `ikcp_recv`.
    pub(super) fn deliver(&mut self, rcv_wnd: u16) {
        let before = self.nxt;
        let end = self.index.start().add(rcv_wnd.into());
        while self.parked > 0 && self.nxt.is_before(end) && self.index.get(self.nxt).is_some() {
            self.nxt = self.nxt.add(1);
            self.parked -= 1;
        }
        if self.nxt != before {
            self.last_frg = self.frg_of(self.nxt.sub(1)).unwrap_or(0);
        }
        if self.parked == 0 && self.last_frg == 0 {
            self.keep_promises();
        }
        self.was_full = !self.nxt.is_before(end) || self.room_for_full() == 0;
    }

    /// Bytes of memory held, used or not, without shared datagram buffers.
    pub(super) fn memory(&self) -> usize {
        self.index.memory() + self.log.memory()
    }

    pub(super) fn set_window(&mut self, rcv_wnd: u16) {
        self.was_full |= self.queued() >= rcv_wnd.into();
    }

    /// Frees the memory if nothing is held.
    pub(super) fn shrink(&mut self) {
        self.index.shrink();
        self.log.shrink();
        if self.queued() == 0 && self.parked == 0 {
            match &mut self.rare {
                Some(rare) if rare.room.is_some() => rare.shared = Ring::new(self.nxt),
                rare => *rare = None,
            }
        }
    }

    /// Within a message, `frg` falls by one from segment to segment. Checking against the neighbours that are present
    /// is enough for all segments that are.
    fn continues_chain(&self, sn: Sn, frg: u8) -> bool {
        let before = self.frg_before(sn);
        (before == 0 || frg == before - 1)
            && (frg == 0 || self.frg_of(sn.add(1)).is_none_or(|after| after == frg - 1))
    }

    /// `frg` of the segment before `sn`, which is not before `nxt`; 0 if that has not arrived. The segment before `nxt`
    /// may have been read.
    #[inline]
    fn frg_before(&self, sn: Sn) -> u8 {
        if sn == self.nxt { self.last_frg } else { self.frg_of(sn.sub(1)).unwrap_or(0) }
    }

    /// `frg` of a segment in the index.
    #[inline]
    fn frg_of(&self, sn: Sn) -> Option<u8> {
        Some(match self.index.get(sn)?.find() {
            Found::InLog(position) => RawHeader::of(&self.log.reader(position).next_chunk()).frg(),
            Found::Shared { frg } => frg,
        })
    }

    fn shared(&self) -> Option<&Ring<Bytes>> {
        Some(&self.rare.as_deref()?.shared)
    }

    fn shared_mut(&mut self) -> Option<&mut Ring<Bytes>> {
        Some(&mut self.rare.as_deref_mut()?.shared)
    }

    #[inline]
    fn room(&self) -> Option<&Room> {
        self.rare.as_deref()?.room.as_ref()
    }

    fn rare(&mut self) -> &mut Rare {
        let start = self.index.start();
        self.rare.get_or_insert_with(|| Box::new(Rare { shared: Ring::new(start), room: None }))
    }

    /// Takes a shared segment that has just been read. Numbers that were read leave the ring at once: after 2^31 segments
    /// they would seem to lie ahead.
    fn unshare(&mut self, sn: Sn) -> Option<Bytes> {
        let start = self.index.start();
        let shared = self.shared_mut()?;
        let data = shared.remove(sn);
        while shared.span() > 0 && shared.start().is_before(start) {
            shared.pop_front();
        }
        data
    }

    #[cold]
    fn share(&mut self, sn: Sn, data: Bytes) {
        let start = self.index.start();
        let shared = &mut self.rare().shared;
        if shared.span() == 0 {
            shared.restart(start);
        }
        shared.insert(sn, data);
    }
}

/// Location of a received segment. An `Option` of it also takes four bytes.
#[derive(Clone, Copy, Debug)]
struct Place(NonZeroU32);

/// The meaning of a [`Place`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Found {
    /// Its header is at this position of the log; 31 bits are enough.
    InLog(u32),
    /// Its data is part of a datagram's buffer.
    Shared { frg: u8 },
}

impl Place {
    /// `offset` bytes after `position` of the log.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "an offset within a datagram")]
    fn in_log(position: u32, offset: usize) -> Self {
        Self(IN_LOG | position.wrapping_add(offset as u32))
    }

    fn shared(frg: u8) -> Self {
        Self(NonZeroU32::MIN.saturating_add(frg.into()))
    }

    #[inline]
    fn find(self) -> Found {
        let bits = self.0.get();
        if bits & IN_LOG.get() == 0 {
            return Found::Shared { frg: u8::try_from(bits - 1).unwrap_or(0) };
        }
        Found::InLog(bits & !IN_LOG.get())
    }
}

/// A bit that a fragment count never has.
const IN_LOG: NonZeroU32 = NonZeroU32::MIN.saturating_add((1 << 31) - 1);
