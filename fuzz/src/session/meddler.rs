//! What an attacker between the ends does to their packets.

use super::super::script::Script;
use super::licence::Licence;
use super::world::{CLIENT, SERVER, World};
use whitewater::inside::compact::Compactor;
use whitewater::inside::session::wire::{AckFrame, DATA_HEADER_LEN, Frame, FrameWriter, KcpPart, LossFrame};
use whitewater::kcp::wire::{Command, Header};
use whitewater::kcp::{Conv, Millis, Sn};
use whitewater::packet::Seq16;
use whitewater::session::Suite;

impl World {
    /// A frame built by a script: of segments, of acknowledgements, or of anything. It may name one channel more
    /// than there are.
    pub(super) fn frame(&self, script: &mut Script<'_>) -> Vec<u8> {
        let mut body = Vec::new();
        let mut writer = FrameWriter::new(&mut body, 600);
        match script.u8() % if self.repairs { 7 } else { 5 } {
            0 => {
                let cmds = [Command::Push, Command::Ack, Command::Wask, Command::Wins];
                let channel = script.u8() % 4;
                let header = Header {
                    conv: Conv(0),
                    cmd: cmds[usize::from(script.u8()) % cmds.len()],
                    frg: script.u8(),
                    wnd: script.u16(),
                    ts: Millis(script.u32()),
                    sn: Sn(u32::from(script.u16()).wrapping_sub(8)),
                    una: Sn(u32::from(script.u16()).wrapping_sub(8)),
                };
                let len = usize::from(script.u8());
                let mut segment = Vec::new();
                let data = script.bytes(len);
                whitewater::kcp::wire::Segment { header, data }.encode(&mut segment);
                let len = Compactor::default().compact(channel, &mut segment);
                let _ = writer.push(&Frame::Kcp(segment.get(..len).unwrap_or_default()));
            }
            1 => {
                let (ack, bits, delay) = (Seq16(script.u16()), script.u32(), script.u16());
                let _ = writer.push(&Frame::Ack(AckFrame { ack, bits, delay }));
            }
            2 => {
                let _ = writer.push(&Frame::Close(script.u8().into(), ""));
            }
            3 => {
                let part =
                    KcpPart { number: Seq16(script.u8().into()), id: script.u8() % 4, last: script.u8() % 4 };
                let len = usize::from(script.u8());
                let _ = writer.push(&Frame::KcpPart(part, script.bytes(len)));
            }
            5 => {
                // Of one packet, or of several whose code is in the body.
                let (first, len) = (u32::from(script.u8()), usize::from(script.u8()));
                let _ = writer.push(&Frame::Repair(first, script.bytes(len)));
            }
            6 => {
                let (newest, rebuilt) = (Seq16(script.u8().into()), script.u32());
                let _ = writer.push(&Frame::Loss(LossFrame { newest, rebuilt, share: script.u8() }));
            }
            _ => {
                let len = usize::from(script.u8());
                return script.bytes(len).to_vec();
            }
        }
        // It goes before others, so it must state its length.
        let len = body.len();
        if let Some(first) = body.first_mut().filter(|first| **first & 0x80 != 0) {
            *first &= 0x7f;
            body.splice(1..1, u16::try_from(len - 1).unwrap_or_default().to_le_bytes());
        }
        body
    }

    /// Alters the body of the next DATA of an end, and delivers it.
    pub(super) fn meddle(&mut self, from: usize, change: impl FnOnce(&mut Vec<u8>)) {
        let is_data = |datagram: &Vec<u8>| matches!(datagram.first(), Some(0xa6 | 0xa7));
        while self.under_way[from].front().is_some_and(|datagram| !is_data(datagram)) {
            self.arrive(from);
        }
        let Some(mut datagram) = self.under_way[from].pop_front() else { return };
        let tail = if self.suite == Suite::Checked { SUM_LEN } else { TAG_LEN };
        let tag = datagram.split_off(datagram.len() - tail);
        let mut body = datagram.split_off(DATA_HEADER_LEN);
        change(&mut body);
        body.truncate(self.longest() - DATA_HEADER_LEN - tail);
        datagram.extend_from_slice(&body);
        if self.suite == Suite::Checked {
            datagram.extend_from_slice(&self.checksum(&datagram).to_le_bytes());
        } else {
            datagram.extend_from_slice(&tag);
        }
        self.license(from, &body);
        self.meddled = true;
        self.give(from, &datagram);
    }

    /// Alters a byte of the next datagram so that its checksum or tag is wrong, if it covers that byte.
    pub(super) fn damage(&mut self, from: usize, place: usize, mask: u8) {
        let Some(mut datagram) = self.under_way[from].pop_front() else { return };
        let len = datagram.len();
        let is_data = matches!(datagram.first(), Some(0xa6 | 0xa7));
        if let Some(byte) = datagram.get_mut(place % len) {
            *byte ^= mask;
        }
        if !is_data {
            self.licences.iter_mut().for_each(Licence::deny);
        } else if self.suite != Suite::Checked {
            // Without a cipher no tag detects it.
            (self.meddled, self.stuck) = (true, true);
            self.licences.iter_mut().for_each(Licence::mislead);
            self.license(from, &datagram[DATA_HEADER_LEN..len - TAG_LEN]);
        }
        self.give(from, &datagram);
    }

    /// Notes that the other end gets a body that this one did not send.
    fn license(&mut self, from: usize, body: &[u8]) {
        let [client, server] = &mut self.licences;
        let (sender, receiver) = if from == CLIENT { (client, server) } else { (server, client) };
        receiver.meddle(body, sender, from == SERVER);
    }

    /// Source: docs/WIRE.md, DATA.
    fn checksum(&self, bytes: &[u8]) -> u32 {
        let [client, server] = self.salts.map(u64::from_le_bytes);
        let secret = (client ^ server).to_le_bytes();
        let all = secret.iter().chain(&[0; 8]).chain(bytes);
        !all.fold(u32::MAX, |sum, byte| {
            (0..8)
                .fold(sum ^ u32::from(*byte), |sum, _| sum >> 1 ^ if sum & 1 == 1 { 0xedb8_8320 } else { 0 })
        })
    }
}

/// Bytes after a body: of the checksum, of a tag.
const SUM_LEN: usize = 4;
const TAG_LEN: usize = 16;
