//! CRC-32 of IEEE 802.3 for browsers. crc32fast has tables of 16 KiB that do not compress: 7 % of what a browser would load.

/// A checksum of the bytes so far.
#[derive(Clone)]
pub(super) struct Hasher(u32);

impl Hasher {
    pub(super) const fn new() -> Self {
        Self(u32::MAX)
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |sum, byte| half(half(sum ^ u32::from(*byte))));
    }

    pub(super) const fn finalize(self) -> u32 {
        !self.0
    }
}

/// Four bits further.
fn half(sum: u32) -> u32 {
    sum >> 4 ^ HALVES.get((sum & 15) as usize).copied().unwrap_or_default()
}

/// What four bits add.
const HALVES: [u32; 16] = halves();

#[expect(clippy::indexing_slicing, reason = "computed when the library is built")]
const fn halves() -> [u32; 16] {
    let (mut halves, mut at) = ([0; 16], 0_u32);
    while at < 16 {
        let (mut sum, mut bit) = (at, 0);
        while bit < 4 {
            sum = if sum & 1 == 1 { sum >> 1 ^ POLYNOMIAL } else { sum >> 1 };
            bit += 1;
        }
        halves[at as usize] = sum;
        at += 1;
    }
    halves
}

/// Its bits from the lowest power on.
const POLYNOMIAL: u32 = 0xedb8_8320;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_other_systems() {
        let bytes: Vec<u8> = (0..=255).chain(0..77).collect();
        for len in 0..bytes.len() {
            let (mut small, (start, rest)) = (Hasher::new(), bytes[..len].split_at(len / 3));
            small.update(start);
            small.update(rest);
            assert_eq!(small.finalize(), crc32fast::hash(&bytes[..len]), "{len} bytes");
        }
    }
}
