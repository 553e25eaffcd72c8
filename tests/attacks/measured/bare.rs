//! Datagrams of bare KCP: all commands, in all modes, with windows of all sizes.

use super::{count, count_after};
use crate::common::{Raw, repairing};
use std::cell::RefCell;
use std::rc::Rc;
use whitewater::Time;
use whitewater::inside::code::Encoder;
use whitewater::kcp::wire::Command;
use whitewater::kcp::{Config, Congestion, Conv, Kcp, Sn};

type Sent = Rc<RefCell<Vec<u8>>>;
type Out = Box<dyn FnMut(&[u8])>;

/// A control block whose window is full of segments of 40 bytes that were sent together.
struct Full {
    kcp: Kcp<Out>,
    now: Time,
    /// The time in the segments.
    ts: u32,
    window: u32,
}

impl Full {
    fn new(config: &Config, window: u16) -> Self {
        let config = Config {
            snd_wnd: window,
            rcv_wnd: window.max(128),
            snd_queue: 1 << 20,
            snd_queue_bytes: 1 << 30,
            congestion: Congestion::None,
            ..*config
        };
        let first: Sent = Rc::default();
        let sent = Rc::clone(&first);
        let output: Out = Box::new(move |datagram| {
            if sent.borrow().is_empty() {
                sent.borrow_mut().extend_from_slice(datagram);
            }
        });
        let mut kcp = Kcp::new(Conv(crate::common::CONV), &config, output).unwrap();
        let now = Time::from_millis(1000);
        for _ in 0..window {
            kcp.send(&[7; 40]).unwrap();
        }
        kcp.input(now, &Raw { wnd: u16::MAX, ..Raw::wins(0) }.bytes()).unwrap();
        (0..3).for_each(|tick| kcp.update(Time::from_millis(1000 + 100 * tick)));
        kcp.flush(Time::from_millis(1200));
        let ts = first.borrow().get(8..12).map_or(0, |ts| u32::from_le_bytes(ts.try_into().unwrap()));
        assert_eq!(kcp.stats().snd_nxt, Sn(window.into()), "the window is full");
        Self { kcp, now: Time::from_millis(1250), ts, window: window.into() }
    }

    fn count(&mut self, what: &str, segments: &[Raw]) {
        let segments: Vec<_> = segments.iter().map(|raw| Raw { wnd: u16::MAX, ..raw.clone() }).collect();
        self.count_raw(what, &segments);
    }

    fn count_raw(&mut self, what: &str, segments: &[Raw]) {
        let bytes = Raw::datagram(segments);
        let Self { kcp, now, .. } = self;
        count(what, || kcp.input(*now, &bytes).unwrap());
        *now = *now + std::time::Duration::from_millis(10);
        count_after(what, || kcp.flush(*now));
    }

    fn take(&mut self, segments: &[Raw]) {
        self.kcp.input(self.now, &Raw::datagram(segments)).unwrap();
        self.kcp.flush(self.now);
    }

    /// `sn` of so many segments, spread over the window.
    fn spread(&self, segments: u32) -> impl Iterator<Item = u32> + use<> {
        let window = self.window;
        (0..segments).map(move |n| 1 + n * (window - 2) / segments)
    }
}

/// Segments without data in a datagram of 1500 bytes.
const MANY: u32 = 62;

pub(super) fn all() {
    let classic = Config { fast_resend: 2, ..Config::classic() };
    let modes = [("classic", classic), ("by time", Config::default()), ("with repairs", repairing(100))];
    for (mode, config) in modes {
        for window in [128, 8192, u16::MAX / 2, u16::MAX] {
            segments(&format!("KCP {mode} {window}:"), &config, window);
        }
    }
    for len in [0, 1368] {
        repairs(len);
    }
}

fn segments(name: &str, config: &Config, window: u16) {
    let full = || Full::new(config, window);
    let ack = |full: &Full, sn| Raw::ack(sn, full.ts);

    let mut at = full();
    let acks: Vec<_> = at.spread(MANY).map(|sn| ack(&at, sn)).collect();
    at.count(&format!("{name} ACKs all over the window"), &acks);
    at.count(&format!("{name} the same again"), &acks);
    let last: Vec<_> = (0..MANY).map(|n| ack(&at, at.window - 1 - n)).collect();
    at.count(&format!("{name} ACKs of the newest"), &last);
    let una = at.window;
    at.count(&format!("{name} una of a window with holes"), &[Raw { una, ..Raw::wins(0) }]);

    let mut at = full();
    at.count(&format!("{name} una of a window"), &[Raw { una, ..Raw::wins(0) }]);

    let mut at = full();
    let acks: Vec<_> = (0..MANY).map(|n| Raw { una: n * una / MANY, ..ack(&at, una - 1 - n) }).collect();
    at.count(&format!("{name} ACKs with una that moves"), &acks);

    let mut at = full();
    let far = Raw::push(u32::from(window.max(128)) - 1, b"");
    at.count(&format!("{name} the farthest PUSH"), &[far]);
    let pushes: Vec<_> = at.spread(MANY).map(|sn| Raw::push(sn, b"")).collect();
    at.count(&format!("{name} PUSHs all over the window"), &pushes);
    at.count(&format!("{name} the same again"), &pushes);
    let rest: Vec<_> = (1..at.window).map(|sn| Raw::push(sn, b"")).collect();
    rest.chunks(60).for_each(|row| at.take(row));
    at.count(&format!("{name} duplicates of PUSHs"), &rest[..60]);
    at.count(&format!("{name} the PUSH that a window waited for"), &[Raw::push(0, b"")]);
    let beyond: Vec<_> = (0..MANY).map(|n| Raw::push(at.window + n, b"")).collect();
    at.count(&format!("{name} PUSHs beyond"), &beyond);

    let mut at = full();
    at.count(&format!("{name} WASKs"), &vec![Raw::wask(); MANY as usize]);
    at.count(&format!("{name} WINSs"), &vec![Raw::wins(1); MANY as usize]);
    let mixed: Vec<_> = (0..MANY)
        .map(|n| match n % 4 {
            0 => Raw::wask(),
            1 => ack(&at, at.window / 2 + n),
            2 => Raw::push(7 * n, b""),
            _ => Raw { una: n, ..Raw::wins(0) },
        })
        .collect();
    at.count(&format!("{name} all commands in turn"), &mixed);
    at.count_raw(&format!("{name} a closed window"), &[Raw { wnd: 0, ..Raw::wins(0) }]);

    let mut at = full();
    let mut wrong = Raw::datagram(&vec![Raw::wins(1); MANY as usize]);
    let end = wrong.len() - 20;
    wrong[end] = 99;
    count(&format!("{name} a wrong last segment"), || {
        at.kcp.input(at.now, &wrong).unwrap_err();
    });
}

/// Segments of `len` bytes, every second of which is missing, and as many repairs of them as are kept: the last one rebuilds
/// all.
fn repairs(len: usize) {
    let name = format!("KCP with repairs, segments of {len} bytes:");
    let missing = |sn: u32| sn % 2 == 1 && sn < 2 * 90;
    let mut at = Full::new(&repairing(100), 256);
    let data = vec![7; len];
    at.take(&[Raw { frg: 255, ..ack_of(&at) }]);
    for sn in (0..250).filter(|sn| !missing(*sn)) {
        at.take(&[Raw::push(sn, &data)]);
    }
    let mut encoder = Encoder::new();
    for (index, first) in (0..=120u32).step_by(4).cycle().take(300).enumerate() {
        encoder.begin(u8::try_from(index % 256).unwrap());
        for sn in first..first + 64 {
            assert!(encoder.add(Sn(sn), 0, u16::try_from(len).unwrap(), |to| to.copy_from_slice(&data)));
        }
        let mut payload = vec![0; encoder.payload_len()];
        encoder.finish(&mut payload).unwrap();
        let rebuilt = at.kcp.stats().rebuilt;
        at.count(
            &format!("{name} a repair"),
            &[Raw { cmd: Command::Wins, frg: 255, data: payload, ..Raw::push(first, b"") }],
        );
        if at.kcp.stats().rebuilt > rebuilt {
            println!("rebuilt {} by repair {index}", at.kcp.stats().rebuilt - rebuilt);
        }
    }
}

fn ack_of(at: &Full) -> Raw {
    Raw::ack(3, at.ts)
}
