//! Packets in a TCP stream, each with its length before it. The stream is the system's: see [`wired`](super::wired).

use super::stream::Pipe;
use std::time::Duration;
use whitewater::Time;

#[derive(Default)]
pub(super) struct OfTcp {
    input: Vec<u8>,
    output: Vec<u8>,
    rtt: Duration,
}

impl Pipe for OfTcp {
    fn new(_: usize) -> Self {
        Self::default()
    }

    fn input(&mut self, _: Time, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
    }

    fn send(&mut self, packet: &[u8]) -> bool {
        let Ok(len) = u16::try_from(packet.len()) else { return false };
        self.output.extend_from_slice(&len.to_be_bytes());
        self.output.extend_from_slice(packet);
        true
    }

    fn has_room(&self) -> bool {
        self.output.len() < 4096
    }

    fn recv(&mut self, packet: &mut Vec<u8>) -> bool {
        let Some((len, rest)) = self.input.split_first_chunk() else { return false };
        let Some(bytes) = rest.get(..u16::from_be_bytes(*len).into()) else { return false };
        packet.clear();
        packet.extend_from_slice(bytes);
        self.input.drain(..len.len() + packet.len());
        true
    }

    fn pop(&mut self, bytes: &mut Vec<u8>) -> bool {
        std::mem::swap(bytes, &mut self.output);
        self.output.clear();
        !bytes.is_empty()
    }

    fn update(&mut self, _: Time) {}

    fn flush(&mut self, _: Time) {}

    fn wake(&self, _: Time) -> Option<Time> {
        None
    }

    /// The time to connect: std does not provide the system's measurements.
    fn rtt(&self) -> (Duration, Duration) {
        (self.rtt, self.rtt / 8)
    }

    fn is_over(&self) -> bool {
        false
    }

    fn set_rtt(&mut self, rtt: Duration) {
        self.rtt = rtt;
    }
}
