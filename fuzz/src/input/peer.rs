//! What any peer may send.

use super::super::script::{Script, payload};
use super::Rig;
use whitewater::kcp::wire::{Command, HEADER_LEN, Header, Segment};
use whitewater::kcp::{Conv, Millis, Sn};

impl Rig {
    /// Appends a segment with numbers near the interesting ones.
    pub(super) fn segment(&self, script: &mut Script<'_>, datagram: &mut Vec<u8>) {
        let shape = script.u8();
        let cmd = match shape % 4 {
            0 | 1 => Command::Push,
            2 => Command::Ack,
            _ if shape & 4 == 0 => Command::Wask,
            _ => Command::Wins,
        };
        let header = Header {
            conv: if shape & 0x80 == 0 { self.conv } else { Conv(self.conv.0 ^ 1) },
            cmd,
            frg: script.u8(),
            wnd: script.u16(),
            ts: Millis(self.number(script)),
            sn: Sn(self.number(script)),
            una: Sn(self.number(script)),
        };
        let (len, start) = (usize::from(script.u16() % 2048), script.u8());
        let from = datagram.len();
        Segment { header, data: &payload(len, start) }.encode(datagram);
        match shape & 0x60 {
            0x40 => datagram.splice(from + 4..=from + 4, [85]).for_each(drop),
            0x60 => datagram.splice(from + 21..=from + 21, [0xff]).for_each(drop),
            _ => {}
        }
    }

    /// A number: one byte says what it is near to and two how near, or four say all of it.
    fn number(&self, script: &mut Script<'_>) -> u32 {
        let stats = self.subject.stats();
        let half = 1 << 31;
        let wnd = self.subject.config().rcv_wnd.into();
        let near = match script.u8() % 10 {
            0 => return script.u32(),
            1 => stats.snd_una.0,
            2 => stats.snd_nxt.0,
            3 => stats.rcv_nxt.0,
            4 => stats.snd_una.0.wrapping_add(half),
            5 => stats.rcv_nxt.0.wrapping_add(half),
            6 => stats.rcv_nxt.0.wrapping_add(wnd),
            7 => stats.rcv_nxt.0.wrapping_sub(wnd),
            8 => self.now.wire().0,
            _ => self.flying.back().map_or(0, |flying| flying.ts.0),
        };
        let [offset, _] = script.u16().to_le_bytes();
        near.wrapping_add_signed(offset.cast_signed().into())
    }

    /// Small consecutive segments, of complete messages or of none.
    pub(super) fn pushes(&mut self, from: i32, count: u8, shape: u8) {
        let data = payload(usize::from(shape >> 4), shape);
        let rcv_nxt = self.subject.stats().rcv_nxt.0;
        let mut datagram = Vec::new();
        for index in 0..count {
            let frg = match shape % 4 {
                0 | 1 => 0,
                2 => count - 1 - index,
                _ => 6 - index % 7,
            };

            let sn = Sn(rcv_nxt.wrapping_add_signed(from).wrapping_add(index.into()));
            let header = Header { frg, sn, ts: self.now.wire(), ..self.header(Command::Push, 128) };
            Segment { header, data: &data }.encode(&mut datagram);
        }
        let most = usize::from(self.subject.config().rcv_mtu) / (HEADER_LEN + data.len());
        for datagram in datagram.chunks(most * (HEADER_LEN + data.len())) {
            self.input(datagram);
        }
    }

    pub(super) fn acknowledge(&mut self, mask: u16, wnd: u16) {
        let mut datagram = Vec::new();
        let (mut header, data) = (self.header(Command::Ack, wnd), []);
        for (index, flying) in self.flying.iter().take(16).enumerate() {
            if mask >> index & 1 != 0 {
                header.sn = self.first.add(u32::try_from(index).unwrap_or_default());
                header.ts = flying.ts;
                Segment { header, data: &data }.encode(&mut datagram);
            }
        }
        self.input(&datagram);
    }

    fn header(&self, cmd: Command, wnd: u16) -> Header {
        Header { conv: self.conv, cmd, frg: 0, wnd, ts: Millis(0), sn: Sn(0), una: self.first }
    }
}
