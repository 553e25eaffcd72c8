"""Segments of KCP: "A segment" and "What is refused"."""

from dataclasses import dataclass

from fields import Reader, le, require

PUSH, ACK, WASK, WINS = 81, 82, 83, 84
HEADER = 24


@dataclass
class Segment:
    conv: int
    cmd: int
    frg: int
    wnd: int
    ts: int
    sn: int
    una: int
    data: bytes = b""

    def encode(self) -> bytes:
        head = le(self.conv, 4) + le(self.cmd, 1) + le(self.frg, 1) + le(self.wnd, 2)
        return head + b"".join(le(n, 4) for n in (self.ts, self.sn, self.una, len(self.data))) + self.data


def decode(datagram: bytes) -> list[Segment]:
    """All segments of a datagram, which must have at least one. Trailing bytes too few for a header are ignored."""
    require(len(datagram) >= HEADER, "TooShort")
    reader, segments = Reader(datagram, "Length"), []
    while len(reader.data) >= HEADER:
        conv, cmd, frg, wnd = (reader.uint(n) for n in (4, 1, 1, 2))
        ts, sn, una, length = (reader.uint(4) for _ in range(4))
        require(PUSH <= cmd <= WINS, "Command")
        segments.append(Segment(conv, cmd, frg, wnd, ts, sn, una, reader.take(length)))
    return segments


def after(a: int, b: int) -> bool:
    return 0 < (a - b) % 2**32 < 2**31


def check(segments: list[Segment], conv: int, window: int, snd_nxt: int) -> None:
    """Refuses the datagrams that an end with this receive window and this `snd_nxt` refuses as a whole."""
    for segment in segments:
        require(segment.conv == conv, "Conv")
        require(segment.cmd != PUSH or segment.frg < window, "Fragment")
        require(not after(segment.una, snd_nxt), "Una")
        require(segment.cmd != ACK or after(snd_nxt, segment.sn), "AckUnsent")


def effect(segment: Segment) -> tuple:
    """The fields that a receiver uses."""
    common = (segment.cmd, segment.wnd, segment.una)
    if segment.cmd == PUSH:
        return common + (segment.frg, segment.ts, segment.sn, segment.data)
    return common + ((segment.ts, segment.sn) if segment.cmd == ACK else ())
