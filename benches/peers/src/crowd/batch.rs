//! Consecutive datagrams, each with its owner.

#[derive(Default)]
pub(super) struct Batch {
    bytes: Vec<u8>,
    /// The owner of each, and where it ends.
    ends: Vec<(usize, usize)>,
}

impl Batch {
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    pub(super) fn push(&mut self, index: usize, datagram: &[u8]) {
        self.bytes.extend_from_slice(datagram);
        self.ends.push((index, self.bytes.len()));
    }

    pub(super) fn each(&self, mut take: impl FnMut(usize, &[u8])) {
        let mut start = 0;
        for &(index, end) in &self.ends {
            take(index, &self.bytes[start..end]);
            start = end;
        }
    }
}
