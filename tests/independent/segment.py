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


KINDS = {0: PUSH, 1: PUSH, 2: ACK, 3: ACK, 4: ACK, 5: WASK, 6: WINS, 7: WINS}
HAS_DATA, HAS_TS, HAS_SN = (0, 1, 7), (0, 2, 3, 7), (0, 3, 4, 7)
FRG, WND, UNA, LEN, CHANNEL = 8, 16, 32, 64, 128


def compact(segments: list[Segment], channel: int = 0) -> bytes:
    """A KCP frame, "Compact headers", in which everything is told."""
    frame = b""
    for index, each in enumerate(segments):
        kind = {PUSH: 0, ACK: 3, WASK: 5, WINS: 7 if each.data else 6}[each.cmd]
        has_channel, has_len = index == 0 and channel > 0, kind in HAS_DATA and index + 1 < len(segments)
        flags = kind | (each.frg > 0) * FRG | WND | UNA | has_len * LEN | has_channel * CHANNEL
        frame += le(flags, 1) + has_channel * le(channel, 1) + (each.frg > 0) * le(each.frg, 1) + le(each.wnd, 2)
        frame += le(each.una % 2**24, 3) + (kind in HAS_TS) * le(each.ts % 2**16, 2)
        frame += (kind in HAS_SN) * le(each.sn % 2**24, 3) + has_len * le(len(each.data), 2) + each.data
    return frame


def near(known: int, low: int) -> int:
    ahead = (low - known) % 2**24
    return (known + ahead - (ahead >= 2**23) * 2**24) % 2**32


def expand(frame: bytes, conv: int, una: int, wnd: int, expected: int) -> list[Segment]:
    """The segments of a KCP frame. `una`, `wnd` and `expected` are what its reader knows; times stay short."""
    reader, segments, told, known = Reader(frame, "Length"), [], False, una
    while reader.data:
        flags = reader.uint(1)
        kind = flags & 7
        if flags & CHANNEL:
            require(not segments and reader.uint(1) > 0, "Channel")
        frg = reader.uint(1) if flags & FRG else 0
        require(bool(flags & FRG) == (frg > 0), "Field")
        wnd = reader.uint(2) if flags & WND else wnd
        if flags & UNA:
            una, told = near(known, reader.uint(3)), True
        ts = reader.uint(2) if kind in HAS_TS else 0
        sn = near(expected if kind in (0, 7) else known, reader.uint(3)) if kind in HAS_SN else 0
        if kind == 1:
            require(bool(segments) and segments[-1].cmd == PUSH, "Field")
            ts, sn = segments[-1].ts, (segments[-1].sn + 1) % 2**32
        if kind == 2:
            require(told, "Field")
            sn = (una - 1) % 2**32
        require(kind in HAS_DATA or not flags & LEN, "Field")
        data = b""
        if kind in HAS_DATA:
            data = reader.take(reader.uint(2) if flags & LEN else len(reader.data))
            require(bool(flags & LEN) == bool(reader.data), "Field")
        require(kind != 7 or data != b"", "Field")
        segments.append(Segment(conv, KINDS[kind], frg, wnd, ts, sn, una, data))
    require(bool(segments), "TooShort")
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
