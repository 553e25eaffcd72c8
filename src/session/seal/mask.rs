//! Masks over packet numbers and key phases: an observer learns neither, nor how many packets were lost. Source: RFC
//! 9001 section 5.4, with SipHash as the function of the sample, for both ciphers: it costs less than a block of
//! ChaCha20, and needs no key schedule.

use crate::session::wire::{DATA_HEADER_LEN, Data};
use siphasher::sip128::SipHasher24;
use zeroize::Zeroizing;

/// The key of the masks of a session, in both directions. It stays the same when the keys of packets are updated.
pub(in crate::session) type MaskKey = Zeroizing<[u8; 16]>;

/// The number of a session in packets to the client, which goes with the number `sid` in packets to the server.
pub(super) fn sid_for(key: &MaskKey, sid: u32) -> u32 {
    let [a, b, c, d, ..] = SipHasher24::new_with_key(key).hash(&sid.to_le_bytes()).as_bytes();
    u32::from_le_bytes([a, b, c, d])
}

/// Masks a packet that was sealed, or takes the mask from one. Returns its header then; `None`: it is too short.
pub(super) fn mask(key: &MaskKey, packet: &mut [u8]) -> Option<Data> {
    let (head, sealed) = packet.split_first_chunk_mut::<DATA_HEADER_LEN>()?;
    let sample: &[u8; 16] = sealed.first_chunk()?;
    let [phase, numbers @ ..] = SipHasher24::new_with_key(key).hash(sample).as_bytes();
    let [kind, _, _, _, _, pn @ ..] = head;
    *kind ^= phase & 1;
    pn.iter_mut().zip(numbers).for_each(|(byte, mask)| *byte ^= mask);
    Some(Data::read(head))
}
