"""Packets without KCP: "The bytes of a packet"."""

from dataclasses import dataclass

from fields import Reader, require


@dataclass
class Packet:
    sequence: int
    fragment: tuple[int, int] | None  # its id, the last id
    ack: int | None
    ack_bits: int
    payload: bytes


def decode(datagram: bytes, protocol_id: int) -> Packet:
    reader = Reader(datagram)
    require(reader.uint(4) == protocol_id, "Protocol")
    prefix = reader.uint(1)
    is_fragment, tells, is_long, told = prefix & 1, prefix & 2, prefix & 4, prefix >> 3 & 15
    require(not prefix & 0x80 and (tells or not (is_long or told)), "Prefix")
    sequence = reader.uint(2)
    fragment = None
    if is_fragment:
        fragment = (reader.uint(1), reader.uint(1))
        require(fragment[0] <= fragment[1] and fragment[1] > 0, "Fragment")
        require(not tells or fragment[0] == 0, "Prefix")
    ack, bits = None, 0
    if tells:
        ack = reader.uint(2) if is_long else (sequence - reader.uint(1)) % 2**16
        require(not is_long or (sequence - ack) % 2**16 > 255, "NotShortest")
        for index in range(4):
            byte = 0xFF
            if told >> index & 1:
                byte = reader.uint(1)
                require(byte != 0xFF, "NotShortest")
            bits |= byte << 8 * index
    require(not fragment or bool(reader.data), "FragmentMismatch")
    return Packet(sequence, fragment, ack, bits, reader.rest())


def check(packet: Packet, next_sequence: int, received: set[int], newest: int, remembered: int) -> None:
    """Refuses what an end refuses that sends `next_sequence` next and has received the numbers in `received`."""
    if packet.ack is not None:
        require(0 < (next_sequence - packet.ack) % 2**16 < 2**15, "AckUnsent")
    behind = (newest - packet.sequence) % 2**16
    require(not remembered <= behind < 2**15, "Stale")
    require(packet.sequence not in received, "Duplicate")
