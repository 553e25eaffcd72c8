"""A minimal correct end of KCP: one fixed timeout, no congestion window. Messages are cut and joined as a channel by KCP does."""

import segment
from segment import ACK, HEADER, PUSH, WASK, WINS, Segment, after

WINDOW = 128
PART = 16384
RESEND_MS = 200


class Kcp:
    def __init__(self, conv: int, mtu: int):
        self.conv, self.mss = conv, mtu - HEADER
        self.snd_nxt, self.rcv_nxt = 0, 0
        self.remote_wnd = 128
        self.queue: list[tuple[int, bytes]] = []  # frg, data
        self.flying: dict[int, list] = {}  # sn: frg, data, time of the last transmission or None
        self.arrived: dict[int, Segment] = {}
        self.partial: list[bytes] = []
        self.owed: list[Segment] = []
        self.joining: list[bytes] = []
        self.messages: list[bytes] = []
        self.resends = 0

    def send(self, message: bytes) -> None:
        """Sends a message of the channel, in parts if it is long."""
        for at in range(0, len(message) + 1, PART):
            self.send_part(message[at : at + PART])

    def send_part(self, message: bytes) -> None:
        parts = [message[at : at + self.mss] for at in range(0, len(message), self.mss)] or [b""]
        self.queue += [(len(parts) - 1 - index, part) for index, part in enumerate(parts)]

    def idle(self) -> bool:
        return not self.queue and not self.flying

    def input(self, datagram: bytes) -> None:
        segments = segment.expand(datagram, self.conv, min(self.flying, default=self.snd_nxt), self.remote_wnd, self.rcv_nxt)
        segment.check(segments, self.conv, WINDOW, self.snd_nxt)
        for each in segments:
            self.remote_wnd = each.wnd
            for sn in [sn for sn in self.flying if after(each.una, sn)]:
                del self.flying[sn]
            if each.cmd == ACK:
                self.flying.pop(each.sn, None)
            elif each.cmd == PUSH:
                self.take(each)
            elif each.cmd == WASK:
                self.owed.append(self.make(WINS))

    def take(self, push: Segment) -> None:
        if (push.sn - self.rcv_nxt) % 2**32 >= WINDOW and not after(self.rcv_nxt, push.sn):
            return
        self.owed.append(self.make(ACK, ts=push.ts, sn=push.sn))
        if not after(self.rcv_nxt, push.sn):
            self.arrived.setdefault(push.sn, push)
        while next_one := self.arrived.pop(self.rcv_nxt, None):
            self.rcv_nxt = (self.rcv_nxt + 1) % 2**32
            self.partial.append(next_one.data)
            if next_one.frg == 0:
                self.take_part(b"".join(self.partial))
                self.partial = []

    def take_part(self, part: bytes) -> None:
        assert len(part) <= PART, len(part)
        self.joining.append(part)
        if len(part) < PART:
            self.messages.append(b"".join(self.joining))
            self.joining = []

    def make(self, cmd: int, **fields) -> Segment:
        return Segment(self.conv, cmd, **{"frg": 0, "wnd": WINDOW, "ts": 0, "sn": 0, "una": 0, **fields})

    def output(self, now_ms: int) -> list[bytes]:
        """Datagrams that are due."""
        for frg, data in self.queue[: max(0, min(WINDOW, self.remote_wnd) - len(self.flying))]:
            self.flying[self.snd_nxt] = [frg, data, None]
            self.snd_nxt = (self.snd_nxt + 1) % 2**32
            self.queue.pop(0)
        due, self.owed = self.owed, []
        for sn, (frg, data, sent) in self.flying.items():
            if sent is None or now_ms - sent >= RESEND_MS:
                self.resends += sent is not None
                self.flying[sn][2] = now_ms
                due.append(self.make(PUSH, frg=frg, ts=now_ms % 2**32, sn=sn, data=data))
        return [segment.compact(each) for each in pack([self.stamped(each) for each in due], self.mss + HEADER)]

    def stamped(self, each: Segment) -> Segment:
        each.una = self.rcv_nxt
        return each


def pack(segments: list[Segment], mtu: int) -> list[list[Segment]]:
    datagrams: list[list[Segment]] = []
    for each in segments:
        if datagrams and sum(HEADER + len(held.data) for held in [*datagrams[-1], each]) <= mtu:
            datagrams[-1].append(each)
        else:
            datagrams.append([each])
    return datagrams
