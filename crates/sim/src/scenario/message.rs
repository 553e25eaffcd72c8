//! Messages that differ from each other in every byte.

use crate::SimRng;
use rand::Rng;

/// Writes message `index` of stream `stream` to `message`: its index, then random bytes, `size` in total,
/// that differ from those of every other message in the same place.
pub(super) fn write(message: &mut Vec<u8>, stream: u64, index: u32, size: usize) {
    let mut words = SimRng::new(stream << 32 | u64::from(index), MESSAGES);
    message.clear();
    message.extend_from_slice(&index.to_le_bytes());
    while message.len() < size {
        message.extend_from_slice(&words.next_u64().to_le_bytes());
    }
    message.truncate(size);
}

/// The random stream for the bytes of messages.
const MESSAGES: u64 = 500;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_differ_by_index_and_stream_in_every_part() {
        let message = |stream, index| {
            let mut message = vec![1; 7];
            write(&mut message, stream, index, 1200);
            assert_eq!(message.len(), 1200);
            message
        };
        let [first, next, other] = [message(0, 7), message(0, 8), message(1, 7)];
        assert_eq!(first[..4], [7, 0, 0, 0]);
        for (other, from) in [(next, 0), (other, 4)] {
            assert!(first[from..].chunks(8).zip(other[from..].chunks(8)).all(|(one, other)| one != other));
        }
        assert!(first.chunks(8).skip(1).zip(first.chunks(8).skip(2)).all(|(one, next)| one != next));
    }

    #[test]
    fn short_messages_are_as_long_as_asked() {
        for size in [0, 3, 4, 8, 13] {
            let mut message = Vec::new();
            write(&mut message, 0, 0, size);
            assert_eq!(message.len(), size);
        }
    }
}
