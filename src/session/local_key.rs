//! Numbers that only one end of a session can predict.

use siphasher::sip::SipHasher24;
use std::hash::Hasher;

/// A key of one end, which nobody else has.
#[derive(Clone, Copy)]
pub(in crate::session) struct LocalKey([u64; 2]);

printed_without_secrets! { LocalKey {} }

/// What a number is for. The numbers of one use say nothing about those of another.
#[derive(Clone, Copy, Debug)]
pub(in crate::session) enum Label {
    /// A challenge for an address.
    Challenge,
    /// The tag of a ping.
    Ping,
    /// The same of a probe of the path's MTU.
    Probe,
    /// The place of a packet number that is skipped.
    Skip,
}

impl LocalKey {
    pub(in crate::session) const fn new(key: [u64; 2]) -> Self {
        Self(key)
    }

    pub(in crate::session) fn number(self, label: Label, of: u64) -> u64 {
        let Self([first, second]) = self;
        let mut hasher = SipHasher24::new_with_keys(first, second);
        hasher.write_u8(label as u8);
        hasher.write_u64(of);
        hasher.finish()
    }

    /// The challenge of a question.
    pub(in crate::session) fn challenge(self, question: u32) -> [u8; 8] {
        self.number(Label::Challenge, question.into()).to_le_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_use_has_numbers_of_its_own() {
        let key = LocalKey::new([3, 4]);
        let labels = [Label::Challenge, Label::Ping, Label::Probe, Label::Skip];
        let numbers = labels.iter().flat_map(|label| (0..1000).map(|of| key.number(*label, of)));
        assert_eq!(numbers.collect::<BTreeSet<_>>().len(), 4000);
    }
}
