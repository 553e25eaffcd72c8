//! A player's inputs: each packet contains all that are not known to have arrived.

use whitewater::Message;
use whitewater::message::{BitReader, BitWriter, BitsError, shape};

/// Consecutive inputs: the keys held in one tick each.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Inputs {
    /// The number of the first.
    pub(crate) first: u32,
    pub(crate) keys: Vec<u8>,
}

/// 32 + 6 bits, and 4 for each.
impl Message for Inputs {
    const SHAPE: u64 = shape("Inputs: u32, up to 32 of 0..=15", &[]);

    fn pack(&self, to: &mut BitWriter) -> Result<(), BitsError> {
        self.first.pack(to)?;
        to.list(&self.keys, INPUTS_MAX, |to, keys| to.int(*keys, 0..=15))
    }

    fn unpack(from: &mut BitReader<'_>) -> Result<Self, BitsError> {
        Ok(Self { first: u32::unpack(from)?, keys: from.list(INPUTS_MAX, |from| from.int(0..=15))? })
    }
}

impl Inputs {
    pub(crate) fn write(&self) -> Result<Vec<u8>, BitsError> {
        let mut to = BitWriter::new(Vec::new());
        self.pack(&mut to)?;
        Ok(to.finish())
    }

    pub(crate) fn read(bytes: &[u8]) -> Result<Self, BitsError> {
        let mut from = BitReader::new(bytes);
        let inputs = Self::unpack(&mut from)?;
        from.finish()?;
        Ok(inputs)
    }

    /// Each input with its number, and whether it is the newest, for which the packet was sent.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, u8, bool)> {
        let numbers = self.first..=u32::MAX; // numbers from strangers must not wrap
        let count = self.keys.len();
        numbers.zip(&self.keys).zip(1..).map(move |((number, keys), place)| (number, *keys, place == count))
    }
}

/// Most inputs in a packet and on their way: half a second.
pub(crate) const INPUTS_MAX: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_inputs_come_back(first: u32, keys in prop::collection::vec(0..16u8, 0..=INPUTS_MAX)) {
            let inputs = Inputs { first, keys };
            let bytes = inputs.write().unwrap();
            prop_assert!(bytes.len() <= 21);
            prop_assert_eq!(Inputs::read(&bytes), Ok(inputs));
        }

        #[test]
        fn any_bytes_are_refused_or_in_range(bytes in prop::collection::vec(any::<u8>(), 0..32)) {
            if let Ok(inputs) = Inputs::read(&bytes) {
                prop_assert!(inputs.iter().count() <= INPUTS_MAX && inputs.keys.iter().all(|keys| *keys < 16));
            }
        }
    }
}
