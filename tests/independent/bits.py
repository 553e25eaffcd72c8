"""Values as bits, and channels in a packet: "The bytes of messages"."""

from fields import Refused, require


class Bits:
    def __init__(self, data: bytes):
        self.value, self.left = int.from_bytes(data, "little"), 8 * len(data)

    def bits(self, count: int) -> int:
        require(count <= self.left, "cut off")
        value, self.value, self.left = self.value & (1 << count) - 1, self.value >> count, self.left - count
        return value

    def int(self, least: int, most: int) -> int:
        value = least + self.bits((most - least).bit_length())
        require(value <= most, "out of range")
        return value

    def string(self, most: int) -> str:
        return bytes(self.bits(8) for _ in range(self.int(0, most))).decode()

    def relative(self) -> int:
        for ones, (first, width) in enumerate([(1, 0), (2, 2), (6, 4), (22, 8)]):
            if self.bits(1):
                return first + self.bits(width)
        distance = self.bits(16)
        require(distance == 0 or distance >= 278, "not the shortest")
        return distance

    def end(self) -> None:
        require(self.left < 8 and self.value == 0, "padding")


def message(bits: Bits):
    """The messages of the example: a position or a chat."""
    if bits.int(0, 1) == 0:
        return (bits.int(0, 1023), bits.int(0, 1023))
    return bits.string(200)


BY_KCP = "by KCP"


def plain(bits: Bits) -> bytes:
    """A message of a channel of bytes."""
    return bytes(bits.bits(8) for _ in range(bits.int(0, 2047)))


def channels(payload: bytes, message=message) -> list[list]:
    """The messages of the two channels of the examples, ordered and sequenced: (id, message, `BY_KCP`, or None if it was given up)."""
    bits, found = Bits(payload), []
    for ordered in (True, False):
        found.append([])
        if not bits.bits(1):
            continue
        number = 0
        for index in range(bits.int(1, 64)):
            number = bits.bits(16) if index == 0 else (number + bits.relative()) % 2**16
            if not ordered or bits.bits(1):
                found[-1].append((number, message(bits)))
            else:
                found[-1].append((number, BY_KCP if bits.bits(1) else None))
    bits.end()
    if not any(found):
        raise Refused("a payload of zeros alone")
    return found
