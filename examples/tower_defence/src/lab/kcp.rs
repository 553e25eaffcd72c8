//! KCP alone in the fastest mode that its README recommends ("turbo mode"), with classic recovery.

use super::stream::Pipe;
use std::time::Duration;
use whitewater::Time;
use whitewater::kcp::{Config, Conv, Kcp};
use whitewater::machine::DatagramQueue;

pub(super) struct OfKcp(Kcp<DatagramQueue>);

impl Pipe for OfKcp {
    #[expect(clippy::expect_used, reason = "the config is a constant")]
    fn new(guest: usize) -> Self {
        let conv = Conv(u32::try_from(guest).unwrap_or(0));
        // Interval 10 ms, fast resend after 2, no congestion window.
        let config = Config::classic().nodelay(1, 10, 2, true).wndsize(256, 256);
        Self(Kcp::new(conv, &config, DatagramQueue::with_limit(1 << 20)).expect("it is in range"))
    }

    fn input(&mut self, now: Time, datagram: &[u8]) {
        let _ = self.0.input(now, datagram); // a bad one is counted there
    }

    fn send(&mut self, packet: &[u8]) -> bool {
        self.0.send(packet).is_ok()
    }

    fn has_room(&self) -> bool {
        self.0.wait_snd() < 128
    }

    fn recv(&mut self, packet: &mut Vec<u8>) -> bool {
        let Some(len) = self.0.peek_size() else { return false };
        packet.resize(len, 0);
        self.0.recv_into(packet).is_ok()
    }

    fn pop(&mut self, datagram: &mut Vec<u8>) -> bool {
        let Some(next) = self.0.output_mut().pop() else { return false };
        datagram.clear();
        datagram.extend_from_slice(next);
        true
    }

    fn update(&mut self, now: Time) {
        self.0.update(now);
    }

    fn flush(&mut self, now: Time) {
        self.0.flush(now);
    }

    fn wake(&self, now: Time) -> Option<Time> {
        self.0.check(now)
    }

    fn rtt(&self) -> (Duration, Duration) {
        let stats = self.0.stats();
        (stats.srtt, stats.rttvar)
    }

    fn is_over(&self) -> bool {
        self.0.is_dead()
    }
}
