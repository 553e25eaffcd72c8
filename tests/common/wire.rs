//! Writes and reads datagrams by hand, as a possibly hostile peer does.

use whitewater::Time;
use whitewater::kcp::wire::{Command, Header, Segment, segments};
use whitewater::kcp::{Conv, Kcp, Millis, Sn};
use whitewater::machine::DatagramQueue;

/// The conversation in all tests.
pub(crate) const CONV: u32 = 0x5747_0007;

/// A segment in which only the relevant fields are named: `Raw { sn: 5, ..Raw::ack() }.bytes()`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Raw {
    pub(crate) cmd: Command,
    pub(crate) frg: u8,
    pub(crate) wnd: u16,
    pub(crate) ts: u32,
    pub(crate) sn: u32,
    pub(crate) una: u32,
    pub(crate) data: Vec<u8>,
}

impl Raw {
    pub(crate) fn push(sn: u32, data: &[u8]) -> Self {
        Self { cmd: Command::Push, frg: 0, wnd: 128, ts: 0, sn, una: 0, data: data.to_vec() }
    }

    pub(crate) fn ack(sn: u32, ts: u32) -> Self {
        Self { cmd: Command::Ack, ts, ..Self::push(sn, &[]) }
    }

    pub(crate) fn wask() -> Self {
        Self { cmd: Command::Wask, ..Self::push(0, &[]) }
    }

    pub(crate) fn wins(wnd: u16) -> Self {
        Self { cmd: Command::Wins, wnd, ..Self::push(0, &[]) }
    }

    /// A datagram with only this segment.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.of(CONV)
    }

    /// The same in another conversation.
    pub(crate) fn of(&self, conv: u32) -> Vec<u8> {
        let Self { cmd, frg, wnd, ts, sn, una, ref data } = *self;
        let header = Header { conv: Conv(conv), cmd, frg, wnd, ts: Millis(ts), sn: Sn(sn), una: Sn(una) };
        let mut bytes = Vec::new();
        Segment { header, data }.encode(&mut bytes);
        bytes
    }

    /// A datagram of segments.
    pub(crate) fn datagram(segments: &[Self]) -> Vec<u8> {
        segments.iter().flat_map(Self::bytes).collect()
    }
}

/// The segments of datagrams, in order.
pub(crate) fn raw_segments<D: AsRef<[u8]>>(datagrams: impl IntoIterator<Item = D>) -> Vec<Raw> {
    let mut found = Vec::new();
    for datagram in datagrams {
        for segment in segments(datagram.as_ref()) {
            let Segment { header: Header { conv, cmd, frg, wnd, ts, sn, una }, data } = segment.unwrap();
            assert_eq!(conv, Conv(CONV));
            found.push(Raw { cmd, frg, wnd, ts: ts.0, sn: sn.0, una: una.0, data: data.to_vec() });
        }
    }
    found
}

/// The datagrams waiting in the output.
pub(crate) fn drain(kcp: &mut Kcp<DatagramQueue>) -> Vec<Vec<u8>> {
    std::iter::from_fn(|| kcp.output_mut().pop().map(<[u8]>::to_vec)).collect()
}

/// The segments that a flush at `ms` sends.
pub(crate) fn flushed(kcp: &mut Kcp<DatagramQueue>, ms: u64) -> Vec<Raw> {
    kcp.flush(Time::from_millis(ms));
    raw_segments(drain(kcp))
}

/// The numbers of all segments with one command.
pub(crate) fn numbers(segments: &[Raw], cmd: Command) -> Vec<u32> {
    segments.iter().filter(|segment| segment.cmd == cmd).map(|segment| segment.sn).collect()
}
