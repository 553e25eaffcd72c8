"""Repairs of segments: docs/WIRE.md, "A repair"."""

from functools import reduce

POLYNOMIAL = 0x11D
U32 = 0xFFFFFFFF


def product(a: int, b: int) -> int:
    result = 0
    while b:
        if b & 1:
            result ^= a
        a = a << 1 ^ (POLYNOMIAL if a & 0x80 else 0)
        b >>= 1
    return result


def coefficient(sn: int, index: int) -> int:
    h = sn ^ index * 0x9E3779B1 & U32
    h = (h ^ h >> 16) * 0x85EBCA6B & U32
    h = (h ^ h >> 13) * 0xC2B2AE35 & U32
    return 1 + ((h ^ h >> 16) * 255 >> 32)


def symbol(frg: int, data: bytes) -> bytes:
    return len(data).to_bytes(2, "little") + bytes([frg]) + data


def encode(index: int, covered: dict[int, tuple[int, bytes]]) -> bytes:
    """The payload of a repair. `segments` has the frg and the data of each segment, by number."""
    first, span = min(covered), max(covered) - min(covered) + 1
    has_holes = len(covered) < span
    members = sum(1 << sn - first for sn in covered)
    head = bytes([span | has_holes << 7, index]) + (members.to_bytes((span + 7) // 8, "little") if has_holes else b"")
    symbols = {sn: symbol(*segment) for sn, segment in covered.items()}
    longest = max(map(len, symbols.values()))
    terms = ([product(coefficient(sn, index), byte) for byte in of.ljust(longest, b"\0")] for sn, of in symbols.items())
    return head + bytes(reduce(lambda a, b: [x ^ y for x, y in zip(a, b)], terms))
