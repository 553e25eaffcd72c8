//! No protocol: each message is a datagram. This is the cost of measuring.

use super::Side;
use super::batch::Batch;

pub(super) struct Nothing {
    received: Batch,
    sent: Batch,
}

impl Nothing {
    pub(super) fn new(_: usize, _: u32) -> Self {
        Self { received: Batch::default(), sent: Batch::default() }
    }
}

impl Side for Nothing {
    fn is_due(&self, _: u32) -> bool {
        false
    }

    fn input(&mut self, _: u32, index: usize, datagram: &[u8]) {
        self.received.push(index, datagram);
    }

    fn send(&mut self, _: u32, index: usize, message: &[u8]) {
        self.sent.push(index, message);
    }

    fn update(&mut self, _: u32, out: impl FnMut(usize, &[u8])) {
        self.sent.each(out);
        self.sent.clear();
    }

    fn recv(&mut self, _: u32, mut take: impl FnMut(&[u8])) {
        self.received.each(|_, message| take(message));
        self.received.clear();
    }
}
