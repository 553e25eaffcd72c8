//! A player's inputs on their way: all that are not known to have arrived, in each packet.

use whitewater::message::{BitsError, Read, Serialize, Stream, Write};

/// Inputs with consecutive numbers: the keys held in one tick each.
#[derive(Debug, Default, Eq, PartialEq)]
pub(crate) struct Inputs {
    /// The number of the first one.
    pub(crate) first: u32,
    pub(crate) keys: Vec<u8>,
}

impl Serialize for Inputs {
    /// 32 + 6 bits, and 4 for each.
    fn serialize<S: Stream>(&mut self, stream: &mut S) -> Result<(), BitsError> {
        stream.bits(&mut self.first, 32)?;
        stream.vec(&mut self.keys, INPUTS_MAX, |stream, keys| stream.int(keys, 0..=15))
    }
}

impl Inputs {
    pub(crate) fn write(&mut self, bytes: &mut [u8]) -> Result<usize, BitsError> {
        let mut stream = Write::new(bytes);
        self.serialize(&mut stream)?;
        Ok(stream.finish())
    }

    pub(crate) fn read(bytes: &[u8]) -> Result<Self, BitsError> {
        let (mut inputs, mut stream) = (Self::default(), Read::new(bytes));
        inputs.serialize(&mut stream)?;
        stream.finish()?;
        Ok(inputs)
    }

    /// Each with its number, and whether it is the newest: the one that the packet was sent for.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, u8, bool)> {
        let numbers = self.first..=u32::MAX; // whatever a stranger says, they do not wrap
        let count = self.keys.len();
        numbers.zip(&self.keys).zip(1..).map(move |((number, keys), place)| (number, *keys, place == count))
    }
}

/// Most inputs in a packet, and on their way: half a second of them.
pub(crate) const INPUTS_MAX: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_inputs_come_back(first: u32, keys in prop::collection::vec(0..16u8, 0..=INPUTS_MAX)) {
            let (mut inputs, mut bytes) = (Inputs { first, keys }, [0; 32]);
            let len = inputs.write(&mut bytes).unwrap();
            prop_assert_eq!(Inputs::read(&bytes[..len]), Ok(inputs));
        }

        #[test]
        fn any_bytes_are_refused_or_in_range(bytes in prop::collection::vec(any::<u8>(), 0..32)) {
            if let Ok(inputs) = Inputs::read(&bytes) {
                prop_assert!(inputs.iter().count() <= INPUTS_MAX && inputs.keys.iter().all(|keys| *keys < 16));
            }
        }
    }
}
