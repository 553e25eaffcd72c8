//! Messages that show their player, their number, and whether any byte is wrong.

/// Message `sequence` of a player: 8 to 400 bytes, now and then 5,000.
pub(crate) fn message(player: u32, sequence: u32) -> Vec<u8> {
    let seed = (u64::from(player) << 32 | u64::from(sequence)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let len = if seed >> 40 & 31 == 0 { 5000 } else { 8 + (seed >> 20) as usize % 393 };
    let mut bytes = [player.to_le_bytes(), sequence.to_le_bytes()].concat();
    let words = (1..).map(|word: u64| (seed ^ word.wrapping_mul(0xd1b5_4a32_d192_ed03)).rotate_left(17));
    bytes.extend(words.flat_map(u64::to_le_bytes).take(len - 8));
    bytes
}

/// The player and the number of a message. Fails if a byte of it is wrong.
pub(crate) fn check(bytes: &[u8]) -> (u32, u32) {
    let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let (player, sequence) = (number(0), number(4));
    assert!(
        bytes == message(player, sequence),
        "message {sequence} of player {player}: {} bytes",
        bytes.len()
    );
    (player, sequence)
}

/// Longest message.
pub(crate) const LONGEST: usize = 5000;
