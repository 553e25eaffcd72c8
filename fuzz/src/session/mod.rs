//! Both ends of a session with an attacker in between who can alter the inside of packets: the checksum is
//! corrected, and under `cfg(fuzzing)` the cipher does nothing.

mod flow;
mod licence;
mod meddler;
mod promises;
mod seeds;
mod world;

pub use seeds::seeds;

use super::script::Script;
use whitewater::Time;
use whitewater::session::Suite;
use world::World;

/// Operation bytes of a script, each with its arguments. With [`BACK`](op::BACK) they concern the server or
/// its packets.
pub mod op {
    /// Lets ms u16 pass in which nothing arrives.
    pub const WAIT: u8 = 0;
    /// The next datagram in flight arrives.
    pub const ARRIVE: u8 = 1;
    /// The next datagram in flight gets lost.
    pub const LOSE: u8 = 2;
    /// A datagram that arrived before arrives again: which u8.
    pub const AGAIN: u8 = 3;
    /// The body of the next DATA is replaced: length u8, the bytes; then it arrives.
    pub const BODY: u8 = 4;
    /// A byte of the body of the next DATA is changed: place u16, mask u8; then it arrives.
    pub const FLIP: u8 = 5;
    /// A frame is put before those of the next DATA (`World::frame`); then it arrives.
    pub const FRAME: u8 = 6;
    /// A byte of the next datagram is changed, whatever its kind, without correcting a checksum: place u16,
    /// mask u8; then it arrives.
    pub const DAMAGE: u8 = 7;
    /// Something is sent: what u8, how much u8.
    pub const SEND: u8 = 8;
    /// The end closes: code u8.
    pub const CLOSE: u8 = 9;
    /// The client's address changes.
    pub const MOVE: u8 = 10;
    /// What has arrived is received.
    pub const TAKE: u8 = 11;
    /// For ms u16 everything arrives, with 10 ms delay.
    pub const GOOD: u8 = 12;
    /// Number of operations: the low half of a byte stands for itself modulo this.
    pub const COUNT: u8 = 13;
    /// Concerns the server.
    pub const BACK: u8 = 0x10;
}

/// Runs a script: flags, then operations [`op`].
///
/// # Panics
///
/// If a session breaks a promise.
pub fn session_script(script: &[u8]) {
    session_script_measured(script, || 0);
}

/// [`session_script`] with `live`, which counts the bytes allocated by the process, so that memory is checked
/// as well.
///
/// # Panics
///
/// If a session breaks a promise.
pub fn session_script_measured(script: &[u8], live: fn() -> usize) {
    #[cfg(fuzzing)]
    #[cfg(feature = "crypto")]
    whitewater::inside::session::seal::replace_ciphers();
    let mut script = Script::new(script);
    let mut world = World::new(script.u8(), live);
    let mut steps = 0;
    while !script.is_done() && steps < STEPS && world.now < END {
        world.step(&mut script);
        world.check_logs();
        world.check_memory();
        steps += 1;
    }
    world.finish();
}

impl World {
    fn step(&mut self, script: &mut Script<'_>) {
        let byte = script.u8();
        let end = usize::from(byte & op::BACK != 0);
        match (byte & 0xf) % op::COUNT {
            op::WAIT => self.wait(u64::from(script.u16()) % WAIT_MAX),
            op::ARRIVE => self.arrive(end),
            op::LOSE => drop(self.under_way[end].pop_front()),
            op::AGAIN => {
                let which = usize::from(script.u8()) % self.arrived[end].len().max(1);
                if let Some(datagram) = self.arrived[end].get(which).cloned() {
                    self.give(end, &datagram);
                }
            }
            op::BODY => {
                let len = script.u8().into();
                let bytes = script.bytes(len);
                self.meddle(end, |body| *body = bytes.to_vec());
            }
            op::FLIP => {
                let (place, mask) = (usize::from(script.u16()), script.u8());
                self.meddle(end, |body| {
                    let len = body.len().max(1);
                    body.iter_mut().skip(place % len).take(1).for_each(|byte| *byte ^= mask);
                });
            }
            op::FRAME => {
                let frame = self.frame(script);
                self.meddle(end, |body| drop(body.splice(..0, frame)));
            }
            op::DAMAGE => self.damage(end, script.u16().into(), script.u8()),
            op::SEND => {
                let (what, len) = (script.u8(), script.u8());
                let mut flow = std::mem::take(&mut self.flows[end]);
                if let Some(connection) = self.connection(end) {
                    flow.send(connection, what, len.into());
                }
                self.flows[end] = flow;
                self.drain();
            }
            op::CLOSE => self.close(end, script.u8().into()),
            op::MOVE => {
                let port = self.address.port() % 60_000 + 1;
                self.address.set_port(port);
                self.stuck |= self.suite == Suite::Checked;
            }
            op::TAKE => self.take(end),
            _ => self.good(u64::from(script.u16()) % GOOD_MAX),
        }
    }
}

/// The first byte of a script.
pub mod flag {
    /// The session is already connected.
    pub const CONNECTED: u8 = 1;
    /// With a cipher, which does nothing when fuzzing: addresses change, keys are updated.
    pub const CIPHER: u8 = 2;
    /// Keys are updated after 64 packets.
    pub const REKEYS: u8 = 4;
    /// Both ends search for the path MTU.
    pub const SEARCH: u8 = 8;
    /// No events are logged.
    pub const QUIET: u8 = 16;
    /// Both ends use ECN marks.
    pub const ECN: u8 = 32;
    /// Both ends use as many repairs as are allowed.
    pub const REPAIRS: u8 = 64;
    /// With a cipher: the suite is hybrid.
    pub const HYBRID: u8 = 128;
}

/// Operations and time after which a script is long enough, and most ms of one operation.
const STEPS: usize = 300;
const END: Time = Time::from_millis(30_000);
const WAIT_MAX: u64 = 8192;
const GOOD_MAX: u64 = 1024;
