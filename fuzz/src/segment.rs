//! Decoding accepts exactly what encoding produces.

use whitewater::kcp::wire::{Command, DecodeError, HEADER_LEN, Segment, conv_of, segments};

/// Every segment of `datagram` encodes to the bytes it was decoded from, without gaps, and decoding ends
/// where a naive parser does, with the same error.
///
/// # Panics
///
/// If that does not hold.
pub fn segment_decode(datagram: &[u8]) {
    let mut all = segments(datagram);
    let mut again = Vec::new();
    let mut end = Ok(());
    for segment in all.by_ref() {
        match segment {
            Ok(segment) => segment.encode(&mut again),
            Err(error) => end = Err(error),
        }
    }
    assert_eq!(all.next(), None, "the end is the end");
    assert!(datagram.starts_with(&again), "other bytes came back");
    let rest = datagram.get(again.len()..).unwrap_or_default();
    assert_eq!(end, plainly(rest), "{rest:02x?}");
    if end.is_ok() {
        assert_eq!(all.trailing(), rest);
    }

    match Segment::decode(datagram) {
        Ok((first, rest)) => {
            let mut again = Vec::new();
            first.encode(&mut again);
            again.extend_from_slice(rest);
            assert_eq!(again, datagram);
            assert_eq!(conv_of(datagram), Some(first.header.conv));
        }
        Err(DecodeError::HeaderTruncated { have }) => {
            assert!(have == datagram.len() && have < HEADER_LEN);
            assert_eq!(conv_of(datagram), None);
        }
        Err(error) => assert_eq!(Err(error), plainly(datagram)),
    }
}

/// Why no segment starts here; `Ok` if too few bytes are left for one.
fn plainly(bytes: &[u8]) -> Result<(), DecodeError> {
    let &[_, _, _, _, cmd, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, a, b, c, d, ref data @ ..] = bytes
    else {
        return Ok(());
    };
    let need = u32::from_le_bytes([a, b, c, d]);
    let have = data.len();
    if (have as u64) < u64::from(need) {
        return Err(DecodeError::DataTruncated { have, need });
    }
    let commands = [Command::Push, Command::Ack, Command::Wask, Command::Wins];
    assert!(commands.iter().all(|command| *command as u8 != cmd), "a whole segment was not decoded");
    Err(DecodeError::Command { found: cmd })
}
