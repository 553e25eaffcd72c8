//! Other numbers for a session. The server sends them to the client inside the session, and the client
//! switches to one when it changes networks. So nobody outside can tell by the number that both networks
//! carry the same session.

use super::Connection;
use super::path::Route;
use super::transmit::Out;
use crate::machine::Arrival;
use crate::session::cookie::is_reset;
use crate::session::event::CloseReason;
use crate::session::wire::{Data, Frame, NewId, Reset};
use crate::time::Time;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

/// What one end knows about the numbers of the session. A server's needs none without masks.
#[derive(Debug)]
pub(super) enum Ids {
    Server(Supply),
    Client(Box<Known>),
}

/// What a server tells.
#[derive(Debug)]
pub(super) struct Supply {
    /// Numbers that are not known to have arrived.
    telling: Option<Box<Telling>>,
    /// When the owner has to supply numbers; never, if there are enough.
    wants_at: Time,
    /// The reset token of the number in use is for another address.
    is_stale: bool,
}

#[derive(Debug, Default)]
struct Telling {
    ids: Vec<Told>,
    /// When they may ride with a packet that leaves anyway.
    rides_at: Time,
}

#[derive(Debug)]
struct Told {
    id: NewId,
    /// The newest packets that carried it.
    carriers: [Option<u64>; CARRIERS],
}

/// What a client knows.
pub(super) struct Known {
    /// The number in use, and the one that the second path has or had last.
    first: Number,
    second: Option<Number>,
    /// Where the second path leads, or is to lead once there is a number.
    wants_second: Option<SocketAddr>,
    /// The next ones.
    spare: VecDeque<NewId>,
    /// Those that are or were in use, the newest last.
    used: VecDeque<u32>,
    /// The numbers that packets of the server may have, the newest last.
    answers: VecDeque<u32>,
}

/// A number of the session in packets to the server.
#[derive(Clone, Copy)]
struct Number {
    sid: u32,
    reset: ResetToken,
}

/// With this the server may reset the session, and the packet that it came in.
#[derive(Clone, Copy)]
struct ResetToken {
    token: [u8; 16],
    pn: u64,
}

printed_without_secrets! { Known { used } }

impl Ids {
    pub(super) fn of_server(now: Time) -> Box<Self> {
        Box::new(Self::Server(Supply { telling: None, wants_at: now, is_stale: false }))
    }

    /// `own`: the number that packets of the server have; `sid`: that of packets to it.
    pub(super) fn of_client(own: u32, sid: u32, reset_token: [u8; 16]) -> Box<Self> {
        let (used, answers) = ([sid].into(), [own].into());
        let first = Number { sid, reset: ResetToken { token: reset_token, pn: 0 } };
        let known = Known { first, second: None, wants_second: None, spare: VecDeque::new(), used, answers };
        Box::new(Self::Client(Box::new(known)))
    }

    /// When a packet must leave for them.
    pub(super) fn due(&self) -> Time {
        let Self::Server(Supply { telling: Some(telling), .. }) = self else { return Time::NEVER };
        telling.rides_at + ALONE_AFTER
    }

    pub(super) fn on_acked(&mut self, newest: u64, bits: u32) {
        let Self::Server(Supply { telling, .. }) = self else { return };
        let Some(Telling { ids, .. }) = telling.as_deref_mut() else { return };
        let is_acked = |pn: u64| match newest.checked_sub(pn) {
            Some(0) => true,
            Some(age) => {
                u32::try_from(age - 1).is_ok_and(|bit| bits.checked_shr(bit).is_some_and(|it| it & 1 == 1))
            }
            None => false,
        };
        ids.retain(|told| !told.carriers.iter().flatten().any(|pn| is_acked(*pn)));
        if ids.is_empty() {
            *telling = None;
        }
    }

    pub(super) fn memory(&self) -> usize {
        size_of_val(self)
            + match self {
                Self::Server(Supply { telling, .. }) => telling.as_ref().map_or(0, |telling| {
                    size_of_val(&**telling) + telling.ids.capacity() * size_of::<Told>()
                }),
                Self::Client(known) => {
                    let Known { spare, used, answers, .. } = &**known;
                    size_of_val(&**known)
                        + spare.capacity() * size_of::<NewId>()
                        + 4 * (used.capacity() + answers.capacity())
                }
            }
    }
}

/// At the server.
impl Connection {
    fn supply(&mut self) -> Option<&mut Supply> {
        let Some(Ids::Server(supply)) = self.ids.as_deref_mut() else { return None };
        Some(supply)
    }

    /// Whether the owner has to supply numbers.
    #[inline]
    pub(in crate::session) fn wants_ids(&self, now: Time) -> bool {
        matches!(self.ids.as_deref(), Some(Ids::Server(Supply { wants_at, .. })) if *wants_at <= now)
    }

    /// The owner supplies numbers. Returns whether it should also tell the reset token of the one in use.
    pub(in crate::session) fn take_ids_wanted(&mut self) -> bool {
        let Some(supply) = self.supply() else { return false };
        supply.wants_at = Time::NEVER;
        std::mem::take(&mut supply.is_stale)
    }

    /// The client uses a spare number, so another one is wanted. It is supplied some time later, so that a
    /// client which keeps using them up gets few.
    pub(in crate::session) fn on_id_used(&mut self, now: Time) {
        if let Some(supply) = self.supply() {
            supply.wants_at = supply.wants_at.min(now + SUPPLY_AFTER);
        }
    }

    /// The reset token that the client was told is not for the address where it is.
    pub(in crate::session) fn on_stale_token(&mut self, now: Time) {
        if let Some(supply) = self.supply() {
            (supply.is_stale, supply.wants_at) = (true, now);
        }
    }

    /// Tells the client a number, until that is known to have arrived.
    pub(in crate::session) fn tell_id(&mut self, now: Time, id: NewId) {
        let Some(supply) = self.supply() else { return };
        let telling = supply.telling.get_or_insert_default();
        telling.ids.retain(|told| told.id.sid != id.sid);
        telling.ids.push(Told { id, carriers: [None; CARRIERS] });
        telling.rides_at = now;
    }

    /// Writes numbers that the client may not know, if it is time. Returns whether it has.
    pub(super) fn write_ids(&mut self, out: &mut Out<'_>) -> bool {
        let pn = self.seal.next();
        let Some(Ids::Server(Supply { telling, .. })) = self.ids.as_deref_mut() else { return false };
        let Some(telling) = telling.as_deref_mut().filter(|telling| telling.rides_at <= out.now) else {
            return false;
        };
        let mut is_any = false;
        for told in &mut telling.ids {
            if out.frames.push(&Frame::NewId(told.id)).is_ok() {
                told.carriers.rotate_right(1);
                told.carriers[0] = Some(pn);
                is_any = true;
            }
        }
        if is_any {
            telling.rides_at = out.now + (2 * self.measured.rtt.smoothed()).clamp(PAUSE_MIN, PAUSE_MAX);
        }
        is_any
    }
}

/// At the client.
impl Connection {
    /// The network has changed. From now on, packets have another number if there is one, what was measured of the path
    /// is forgotten, and the server hears where this end is.
    pub(in crate::session) fn path_changed(&mut self, now: Time) {
        if let Some(next) = self.next_id()
            && let Some(Ids::Client(known)) = self.ids.as_deref_mut()
        {
            (self.path.route.sid, known.first) = (next.sid, next);
            // The server knows the last two.
            let is_known = self.path.second_route().is_some_and(|second| known.is_of_last(second.sid));
            if !is_known {
                known.second = None;
                self.path.set_second(now, None);
                self.begin_second(now);
            }
        }
        self.forget_path(now);
        self.keepalive.ask_now();
    }

    /// Takes the next spare number, if there is one.
    fn next_id(&mut self) -> Option<Number> {
        let Some(Ids::Client(known)) = self.ids.as_deref_mut() else { return None };
        let NewId { sid, reset_token: token } = known.spare.pop_front()?;
        remember(&mut known.used, sid);
        remember(&mut known.answers, self.seal.sid_for(sid));
        Some(Number { sid, reset: ResetToken { token, pn: 0 } })
    }

    /// The same when there may be two networks, either of which has changed.
    pub(in crate::session) fn networks_changed(&mut self, now: Time) {
        if !self.renew_second(now) {
            self.path_changed(now);
        }
    }

    /// Does the same where one of two networks is another one than before, which must not have the number of that one. `false`: packets had no number in a
    /// second network.
    pub(in crate::session) fn renew_second(&mut self, now: Time) -> bool {
        let Some(Ids::Client(known)) = self.ids.as_deref_mut() else { return false };
        let had_second = known.second.take().is_some();
        if had_second {
            self.path.set_second(now, None);
            self.path_changed(now); // the server knows the last two numbers
        }
        had_second
    }

    /// From now on, what is urgent also goes to this address by a second network, under another number if there is one; `None`: no longer.
    pub(in crate::session) fn double(&mut self, now: Time, to: Option<SocketAddr>) {
        if let Some(Ids::Client(known)) = self.ids.as_deref_mut() {
            known.wants_second = to;
        }
        match to {
            None => self.path.set_second(now, None),
            Some(_) => self.begin_second(now),
        }
    }

    /// Sends by the second network what is to be sent there. It has a number of its own there, so with masks that begins once the server has told one.
    fn begin_second(&mut self, now: Time) {
        let Some(Ids::Client(known)) = self.ids.as_deref_mut() else { return };
        let Some(address) = known.wants_second.filter(|_| self.path.second().is_none()) else { return };
        // The one that it had before: with a third one, the server would not know that of the first network any more.
        let before = known.second;
        // For the same reason the first network has the newest number when the second takes another one.
        if before.is_none() && known.used.back().is_some_and(|newest| *newest != known.first.sid) {
            let Some(next) = self.next_id() else { return };
            let Some(Ids::Client(known)) = self.ids.as_deref_mut() else { return };
            (self.path.route.sid, known.first) = (next.sid, next);
        }
        let Some(Ids::Client(known)) = self.ids.as_deref_mut() else { return };
        let first = known.first;
        let number = match before.or_else(|| self.next_id()) {
            Some(number) => number,
            None if self.seal.is_masked() => return,
            None => Number { sid: self.path.route.sid, ..first },
        };
        if let Some(Ids::Client(known)) = self.ids.as_deref_mut() {
            known.second = Some(number);
        }
        self.path.set_second(now, Some(Route { address, sid: number.sid }));
        self.rest_mtu();
    }

    /// Takes a datagram of the server by another way. A question there whether this end is where it was is not answered, unless it `is_second` and this end
    /// sends there as well: otherwise it is only where it sends to.
    pub(in crate::session) fn handle_from_elsewhere(
        &mut self,
        now: Time,
        from: Arrival,
        datagram: (Data, &mut [u8]),
        scratch: &mut Vec<u8>,
        is_second: bool,
    ) {
        let response = self.path.response.take();
        let address = self.path.route.address;
        self.handle_data(now, Arrival { address, ..from }, datagram, scratch);
        self.path.response = response.or(self.path.response.filter(|_| is_second));
    }

    /// Another address leads to the server, and is used from now on. `is_dead`: nothing that was sent to the old one lately has arrived.
    pub(in crate::session) fn reach_at(&mut self, now: Time, address: SocketAddr, is_dead: bool) {
        let old = self.begin_at(address);
        if let Some(second) = self.path.second_route() {
            self.path.set_second(now, Some(Route { address, ..second }));
        }
        if let Some(Ids::Client(known)) = self.ids.as_deref_mut() {
            known.wants_second = known.wants_second.map(|_| address);
        }
        self.path_changed(now);
        self.now_elsewhere(now, old, is_dead);
    }

    /// The second path is the first from now on, to this address, and the other way round.
    pub(in crate::session) fn swap_paths(&mut self, now: Time, address: SocketAddr, is_dead: bool) {
        let (Some(second), Some(Ids::Client(known))) = (self.path.second_route(), self.ids.as_deref_mut())
        else {
            return self.reach_at(now, address, is_dead); // it has not begun
        };
        let first = std::mem::replace(&mut self.path.route, Route { address, ..second });
        if let Some(second) = &mut known.second {
            std::mem::swap(&mut known.first, second);
        }
        known.wants_second = Some(first.address);
        self.path.set_second(now, Some(first));
        self.forget_path(now);
        self.keepalive.ask_now();
        self.now_elsewhere(now, first.address, is_dead);
    }

    fn now_elsewhere(&mut self, now: Time, old: SocketAddr, is_dead: bool) {
        if is_dead {
            self.lanes.blocks().for_each(|(_, kcp)| kcp.path_died(now));
        }
        self.keepalive.ask_until_heard();
        self.note_move(old);
    }

    /// Whether packets of the server may have this number.
    pub(in crate::session) fn answers_to(&self, sid: u32) -> bool {
        matches!(self.ids.as_deref(), Some(Ids::Client(known)) if known.answers.contains(&sid))
    }

    /// Whether the server says that it does not know the session.
    pub(in crate::session) fn is_reset_by(&self, reset: &Reset) -> bool {
        let Some(Ids::Client(known)) = self.ids.as_deref() else { return false };
        reset.sid == self.path.route.sid && is_reset(&known.first.reset.token, &reset.token)
    }

    /// Takes a NEW_ID, from the packet `pn`: only a client gets any. More than it keeps, and late ones, are ignored.
    pub(super) fn on_new_id(&mut self, pn: u64, id: NewId) -> Result<(), CloseReason> {
        let Some(Ids::Client(known)) = self.ids.as_deref_mut() else { return Err(CloseReason::Protocol) };
        if id.sid == self.path.route.sid {
            known.first.reset.renew(pn, id.reset_token);
        } else if let Some(second) = known.second.as_mut().filter(|second| second.sid == id.sid) {
            second.reset.renew(pn, id.reset_token);
        } else if let Some(spare) = known.spare.iter_mut().find(|spare| spare.sid == id.sid) {
            *spare = id;
        } else if known.spare.len() < SPARE && !known.used.contains(&id.sid) {
            known.spare.push_back(id);
            self.begin_second(self.keepalive.now);
        }
        Ok(())
    }
}

impl Known {
    /// Whether this is one of the last two that were used.
    fn is_of_last(&self, sid: u32) -> bool {
        self.used.iter().rev().take(2).any(|used| *used == sid)
    }
}

impl ResetToken {
    /// Takes a newer one.
    const fn renew(&mut self, pn: u64, token: [u8; 16]) {
        if pn >= self.pn {
            *self = Self { token, pn };
        }
    }
}

/// Appends a number. The oldest is forgotten.
fn remember(sids: &mut VecDeque<u32>, sid: u32) {
    if sids.len() == USED {
        sids.pop_front();
    }
    sids.push_back(sid);
}

/// Spare numbers of a session.
pub(in crate::session) const SPARE: usize = 2;
/// Numbers that a client remembers: those of packets that may still arrive late.
const USED: usize = 8;
/// Carriers that are remembered for a number: more than leave with it in a round trip.
const CARRIERS: usize = 4;
/// Least and most time before a number is sent again.
const PAUSE_MIN: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// If no packet had room for the numbers for this long, a packet of their own leaves.
const ALONE_AFTER: Duration = Duration::from_secs(1);
/// How long after its use a number is replaced.
const SUPPLY_AFTER: Duration = Duration::from_secs(2);
