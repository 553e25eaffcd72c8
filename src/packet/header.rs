//! The header of a packet: bytes and values. Every value has exactly one encoding; any other is rejected.

use super::acks::Acks;
use super::error::ReceiveError;
use crate::seq::Seq16;
use crate::wire::reader::{Reader, Short};

/// What lies between the protocol id and the payload of a datagram.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Header {
    pub(super) sequence: Seq16,
    /// Which part of the packet this is; `None`: all of it.
    pub(super) fragment: Option<Fragment>,
    /// What the sender has received; `None`: nothing, or this is not the first fragment.
    pub(super) acks: Option<Acks>,
}

/// The place of a fragment in its packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Fragment {
    /// Number of the fragment, from 0.
    pub(super) id: u8,
    /// Number of the last fragment, at least 1: a packet in one part is not fragmented.
    pub(super) last: u8,
}

impl Header {
    /// Appends the bytes of the header, beginning with the protocol id.
    pub(super) fn encode(&self, protocol_id: u32, datagram: &mut Vec<u8>) {
        let Self { sequence, fragment, acks } = *self;
        let part = if fragment.is_some() { FRAGMENT } else { 0 };
        datagram.extend_from_slice(&protocol_id.to_le_bytes());
        datagram.push(part | acks.map_or(0, |acks| ack_flags(sequence, acks)));
        datagram.extend_from_slice(&sequence.0.to_le_bytes());
        if let Some(Fragment { id, last }) = fragment {
            datagram.extend_from_slice(&[id, last]);
        }
        if let Some(acks) = acks {
            encode_acks(sequence, acks, datagram);
        }
    }

    /// Splits `datagram` into its header and its payload.
    pub(super) fn decode(protocol_id: u32, datagram: &[u8]) -> Result<(Self, &[u8]), ReceiveError> {
        let mut bytes = Reader::new(datagram);
        let found = bytes.u32()?;
        if found != protocol_id {
            return Err(ReceiveError::Protocol { found });
        }
        let (prefix, sequence) = (bytes.u8()?, Seq16(bytes.u16()?));
        let fragment = if prefix & FRAGMENT == 0 { None } else { Some(Fragment::decode(&mut bytes)?) };
        let may_have_acks = fragment.is_none_or(|fragment| fragment.id == 0);
        let acks = match prefix & !FRAGMENT {
            0 => None,
            flags if flags & ACKS != 0 && flags & RESERVED == 0 && may_have_acks => {
                Some(decode_acks(flags, sequence, &mut bytes)?)
            }
            _ => return Err(ReceiveError::Prefix { found: prefix }),
        };
        Ok((Self { sequence, fragment, acks }, bytes.rest()))
    }
}

impl Fragment {
    fn decode(bytes: &mut Reader<'_>) -> Result<Self, ReceiveError> {
        let [id, last] = bytes.array()?;
        if last == 0 || id > last {
            return Err(ReceiveError::Fragment { id, last });
        }
        Ok(Self { id, last })
    }
}

/// The prefix flags for `acks` in the packet `sequence`.
fn ack_flags(sequence: Seq16, Acks { ack, bits }: Acks) -> u8 {
    let far = if distance(sequence, ack).is_none() { FAR } else { 0 };
    let told = BITS.into_iter().zip(bits.to_le_bytes()).filter(|(_, bits)| *bits != ALL);
    told.fold(ACKS | far, |flags, (flag, _)| flags | flag)
}

fn encode_acks(sequence: Seq16, Acks { ack, bits }: Acks, datagram: &mut Vec<u8>) {
    match distance(sequence, ack) {
        Some(distance) => datagram.push(distance),
        None => datagram.extend_from_slice(&ack.0.to_le_bytes()),
    }
    datagram.extend(bits.to_le_bytes().into_iter().filter(|bits| *bits != ALL));
}

fn decode_acks(flags: u8, sequence: Seq16, bytes: &mut Reader<'_>) -> Result<Acks, ReceiveError> {
    let ack = if flags & FAR == 0 {
        sequence.sub(bytes.u8()?.into())
    } else {
        let ack = Seq16(bytes.u16()?);
        if distance(sequence, ack).is_some() {
            return Err(ReceiveError::NotShortest);
        }
        ack
    };
    let mut bits = [ALL; 4];
    for (bits, flag) in bits.iter_mut().zip(BITS) {
        if flags & flag != 0 {
            *bits = bytes.u8()?;
            if *bits == ALL {
                return Err(ReceiveError::NotShortest);
            }
        }
    }
    Ok(Acks { ack, bits: u32::from_le_bytes(bits) })
}

/// How far `ack` lies before `sequence`, if that fits one byte.
fn distance(sequence: Seq16, ack: Seq16) -> Option<u8> {
    u8::try_from(sequence.0.wrapping_sub(ack.0)).ok()
}

impl From<Short> for ReceiveError {
    fn from(Short { have }: Short) -> Self {
        Self::Truncated { have }
    }
}

/// Prefix flag: this is a fragment.
const FRAGMENT: u8 = 1;
/// Prefix flag: acks are present. Without it, the flags below are 0.
const ACKS: u8 = 1 << 1;
/// Prefix flag: the ack takes two bytes, instead of one byte with its distance from the sequence.
const FAR: u8 = 1 << 2;
/// Prefix flags, one for each byte of the ack bits: the byte is present because it is not all ones.
const BITS: [u8; 4] = [1 << 3, 1 << 4, 1 << 5, 1 << 6];
/// Prefix flag: always 0.
const RESERVED: u8 = 1 << 7;
/// A byte of the ack bits that is omitted.
const ALL: u8 = 0xff;
/// The longest header: protocol id, prefix, sequence, fragment, ack, ack bits.
pub(super) const HEADER_MAX: u16 = 4 + 1 + 2 + 2 + 2 + 4;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PROTOCOL: u32 = 0x0403_0201;

    fn encoded(header: Header) -> Vec<u8> {
        let mut datagram = Vec::new();
        header.encode(PROTOCOL, &mut datagram);
        datagram
    }

    fn acks(ack: u16, bits: u32) -> Option<Acks> {
        Some(Acks { ack: Seq16(ack), bits })
    }

    #[test]
    fn the_layout_is_the_documented_one() {
        let header = |acks| Header { sequence: Seq16(0x0605), fragment: None, acks };
        let rest = |header| encoded(header).split_off(4);
        assert_eq!(encoded(header(None))[..4], [1, 2, 3, 4]);
        assert_eq!(rest(header(None)), [0, 5, 6]);
        assert_eq!(rest(header(acks(0x0605, u32::MAX))), [0b10, 5, 6, 0], "4 bytes if nothing is lost");
        assert_eq!(rest(header(acks(0x0506, u32::MAX))), [0b10, 5, 6, 255]);
        assert_eq!(rest(header(acks(0x0505, u32::MAX))), [0b110, 5, 6, 5, 5]);
        assert_eq!(rest(header(acks(0x0606, 0xff01_ff02))), [0b010_1110, 5, 6, 6, 6, 2, 1]);
        assert_eq!(
            rest(header(acks(0x0600, 0))),
            [0b111_1010, 5, 6, 5, 0, 0, 0, 0],
            "at most 8 if the ack is near"
        );
        let part = |id, acks| Header { fragment: Some(Fragment { id, last: 9 }), ..header(acks) };
        assert_eq!(rest(part(0, acks(0x0605, u32::MAX))), [0b11, 5, 6, 0, 9, 0]);
        assert_eq!(rest(part(9, None)), [1, 5, 6, 9, 9]);
        assert_eq!(encoded(part(0, acks(0, 0))).len(), usize::from(HEADER_MAX));
    }

    proptest! {
        #[test]
        fn valid_headers_re_encode_to_the_same_bytes(
            prefix in 0..=0x7f_u8,
            rest in prop::collection::vec(prop_oneof![Just(0), Just(1), Just(ALL), any::<u8>()], 2..20),
        ) {
            let datagram = [&PROTOCOL.to_le_bytes()[..], &[prefix], &rest].concat();
            if let Ok((header, payload)) = Header::decode(PROTOCOL, &datagram) {
                prop_assert_eq!([&encoded(header), payload].concat(), datagram);
            }
        }
    }
}
