//! smux frames, version 1, as kcptun sends them inside KCP: one stream, opened by a client.
//!
//! Version (1) | command | length, 2 bytes | stream, 4 bytes | payload; little-endian.

/// Opens the stream.
#[must_use]
pub fn syn() -> Vec<u8> {
    frame(SYN, &[])
}

/// Carries bytes of the stream.
#[must_use]
pub fn psh(payload: &[u8]) -> Vec<u8> {
    frame(PSH, payload)
}

/// Ends the stream.
#[must_use]
pub fn fin() -> Vec<u8> {
    frame(FIN, &[])
}

/// Finds frames in a stream of bytes.
#[derive(Debug, Default)]
pub struct Reader {
    bytes: Vec<u8>,
    /// The bytes that the stream has carried so far.
    pub payload: Vec<u8>,
    /// Whether the stream has ended.
    pub is_over: bool,
}

impl Reader {
    /// Takes more bytes.
    ///
    /// # Panics
    ///
    /// If they are not smux, or belong to another stream.
    pub fn take(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        while let Some((&[version, command, low, high, a, b, c, d], rest)) = self.bytes.split_first_chunk() {
            let len = usize::from(u16::from_le_bytes([low, high]));
            assert_eq!(version, VERSION, "not smux");
            let Some(payload) = rest.get(..len) else { return };
            match command {
                PSH | FIN => assert_eq!(u32::from_le_bytes([a, b, c, d]), STREAM, "another stream"),
                NOP => {}
                _ => panic!("command {command}"),
            }
            self.payload.extend_from_slice(payload);
            self.is_over |= command == FIN;
            self.bytes.drain(..HEADER_LEN + len);
        }
    }
}

fn frame(command: u8, payload: &[u8]) -> Vec<u8> {
    let len = u16::try_from(payload.len()).expect("a short payload").to_le_bytes();
    [&[VERSION, command], &len[..], &STREAM.to_le_bytes(), payload].concat()
}

const VERSION: u8 = 1;
const SYN: u8 = 0;
const FIN: u8 = 1;
const PSH: u8 = 2;
const NOP: u8 = 3;
const HEADER_LEN: usize = 8;
/// The first stream of a client.
const STREAM: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_those_of_kcptun() {
        assert_eq!(syn(), [1, 0, 0, 0, 3, 0, 0, 0]);
        assert_eq!(psh(b"hello smux"), *b"\x01\x02\x0a\x00\x03\x00\x00\x00hello smux");
        assert_eq!(fin(), [1, 1, 0, 0, 3, 0, 0, 0]);
    }

    #[test]
    fn a_stream_is_found_whatever_pieces_it_comes_in() {
        let mut reader = Reader::default();
        let bytes = [psh(b"hello"), vec![1, 3, 0, 0, 0, 0, 0, 0], psh(b" smux"), fin()].concat();
        bytes.iter().for_each(|byte| reader.take(&[*byte]));
        assert_eq!((reader.payload, reader.is_over), (b"hello smux".to_vec(), true));
    }
}
