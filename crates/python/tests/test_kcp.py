"""Bare KCP: in virtual time, and byte for byte."""

from __future__ import annotations

import heapq
import random
import struct

import pytest
import whitewater as ww

PUSH, ACK = 81, 82


class Pair:
    """Two ends and a network between them that loses and delays, in virtual time."""

    def __init__(self, config: ww.KcpConfig, loss: float, seed: int) -> None:
        self.ends = [ww.Kcp(7, config), ww.Kcp(7, config)]
        self.random = random.Random(seed)
        self.loss = loss
        self.now = 0.001
        self.way: list[tuple[float, int, int, bytes]] = []
        self.count = self.lost = 0

    def transmit(self) -> None:
        for side, end in enumerate(self.ends):
            for datagram in end.output():
                self.count += 1
                if self.random.random() < self.loss:
                    self.lost += 1
                    continue
                heapq.heappush(self.way, (self.now + self.random.uniform(0.02, 0.04), self.count, 1 - side, datagram))

    def step(self) -> bool:
        """Goes on to the next thing that happens. Returns whether there is one."""
        for end in self.ends:
            end.update(self.now)
        self.transmit()
        due = [at for at in (end.check(self.now) for end in self.ends) if at is not None]
        due += [at for at, *_ in self.way[:1]]
        if not due:
            return False
        self.now = max(self.now + 0.0001, min(due))
        while self.way and self.way[0][0] <= self.now:
            _, _, side, datagram = heapq.heappop(self.way)
            self.ends[side].input(self.now, datagram)
        return True


CONFIGS = {
    "modern": ww.KcpConfig(),
    "fast": ww.KcpConfig.classic(nodelay=1, interval=10, fast_resend=2, congestion="none", snd_wnd=128),
    "classic": ww.KcpConfig.classic(),
}


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("config", CONFIGS)
def test_a_thousand_messages_each_way_arrive_in_order_through_a_tenth_of_loss(config: str, seed: int) -> None:
    pair = Pair(CONFIGS[config], 0.1, seed)
    sent, got = [0, 0], [0, 0]
    while min(got) < 1000:
        for side, end in enumerate(pair.ends):
            while sent[side] < 1000 and end.wait_snd() < 64:
                assert end.send(sent[side].to_bytes(4, "little") * 10) == 40
                sent[side] += 1
        assert pair.step(), "nothing is due, and something is missing"
        for side, end in enumerate(pair.ends):
            while (message := end.recv()) is not None:
                assert message == got[side].to_bytes(4, "little") * 10
                got[side] += 1
        assert pair.now < 600, got
    assert pair.lost > 20 and pair.ends[0].stats().resends > 0


def test_the_same_seed_gives_the_same_bytes() -> None:
    def run() -> tuple[list[bytes], float]:
        pair = Pair(CONFIGS["modern"], 0.2, 3)
        out = []
        for value in range(50):
            pair.ends[0].send(bytes([value]) * 300)
        for _ in range(400):
            if not pair.step():
                break
            out += [datagram for *_, datagram in pair.way]
        return out, pair.now

    assert run() == run()


def segments(datagram: bytes) -> list[tuple[int, int, int, int, int, int, int, bytes]]:
    """The segments of a datagram as ikcp.c lays them out: conv, cmd, frg, wnd, ts, sn, una, and the data."""
    found = []
    while datagram:
        *head, length = struct.unpack_from("<IBBHIIII", datagram)
        found.append((*head, datagram[24 : 24 + length]))
        datagram = datagram[24 + length :]
    return found


def test_the_bytes_are_those_of_ikcp() -> None:
    one, other = ww.Kcp(0x11223344, CONFIGS["fast"]), ww.Kcp(0x11223344, CONFIGS["fast"])
    one.send(b"hello")
    one.send(bytes(3000))
    one.flush(1.0)
    datagrams = one.output()
    assert datagrams[0][:29] == bytes.fromhex("44332211 51 00 8000 e8030000 00000000 00000000 05000000") + b"hello"
    sent = [segment for datagram in datagrams for segment in segments(datagram)]
    assert [(segment[1], segment[2], segment[5], len(segment[7])) for segment in sent] == [
        (PUSH, 0, 0, 5),
        (PUSH, 2, 1, 1376),
        (PUSH, 1, 2, 1376),
        (PUSH, 0, 3, 248),
    ]
    assert one.output() == []
    for datagram in datagrams:
        other.input(1.02, datagram)
    assert (other.peek_size(), other.recv(), other.recv(), other.recv()) == (5, b"hello", bytes(3000), None)
    other.flush(1.03)
    (acks,) = other.output()
    assert [(segment[1], segment[4], segment[5], segment[6]) for segment in segments(acks)] == [(ACK, 1000, sn, 4) for sn in range(4)]
    one.input(1.05, acks)
    assert one.wait_snd() == 0 and one.is_idle() and not one.is_dead()
    assert one.stats().srtt == pytest.approx(0.05, abs=0.001)


def test_a_queue_that_is_full_takes_nothing_until_there_is_room() -> None:
    kcp = ww.Kcp(1, ww.KcpConfig(snd_queue=10))
    assert [kcp.send(b"x") for _ in range(12)] == [1] * 10 + [None] * 2
    kcp.update(1.0)
    assert kcp.send(b"x") == 1
    with pytest.raises(ww.TooLong):
        kcp.send(bytes(1 << 20))


def test_a_stream_joins_what_is_sent() -> None:
    one, other = (ww.Kcp(1, ww.KcpConfig.classic(stream=True, congestion="none")) for _ in range(2))
    for part in (b"a", b"b", b"c"):
        assert one.send(part) == 1
    one.flush(1.0)
    for datagram in one.output():
        other.input(1.0, datagram)
    assert other.recv() == b"abc"


def test_a_bad_datagram_is_refused_and_changes_nothing() -> None:
    kcp = ww.Kcp(7)
    chance = random.Random(4)
    good = struct.pack("<IBBHIIII", 7, PUSH, 0, 128, 0, 0, 0, 2) + b"hi"
    for bad in (b"", good[:20], b"\x08" + good[1:], good[:4] + b"\x40" + good[5:], bytes(2000), bytes(1 << 20)):
        with pytest.raises(ww.InputError):
            kcp.input(1.0, bad)
    for _ in range(2000):
        noise = bytearray(good)
        for _ in range(chance.randrange(1, 6)):
            noise[chance.randrange(len(noise))] = chance.randrange(256)
        try:
            ww.Kcp(7).input(1.0, noise)
        except ww.InputError:
            pass
    kcp.input(1.0, good)
    assert kcp.recv() == b"hi"
    for now in (-1.0, float("nan"), float("inf"), 1e13):
        with pytest.raises(ValueError):
            kcp.update(now)


def test_settings_change_while_running() -> None:
    kcp = ww.Kcp(7, CONFIGS["fast"])
    kcp.configure(ww.KcpConfig.classic(mtu=500, congestion="none"))
    kcp.send(bytes(1000))
    kcp.flush(1.0)
    assert max(map(len, kcp.output())) == 500
    with pytest.raises(ww.ConfigError, match="recovery"):
        kcp.configure(CONFIGS["modern"])
