"""Against the library in Rust."""

from __future__ import annotations

import asyncio
import subprocess
import time
from typing import Any

import pytest
import whitewater as ww
from common import CHANNELS, CLIENT, ORDERED, SECRET, SEQUENCED, SERVER, SESSION, STREAM, UNORDERED, UNRELIABLE, in_loop, number, peer_program, relay, rust_server, send_back_until_closed


async def play(client: ww.Session, count: int) -> None:
    """Sends numbers and checks that each comes back once and in order."""

    async def send() -> None:
        for value in range(count):
            await client.send(number(value))

    sending = asyncio.create_task(send())
    for value in range(count):
        assert await client.recv() == number(value)
    await sending
    assert client.try_recv() is None


@in_loop()
async def test_a_client_plays_with_a_server_in_rust() -> None:
    with rust_server() as address:
        async with await ww.connect(address, CLIENT) as client:
            await play(client, 10_000)
            stats = client.stats()
            assert stats.bytes_sent > 40_000 and stats.rtt > 0 and stats.packets_lost == 0
        assert client.closed is not None and client.closed.is_delivered


@pytest.mark.parametrize("loss", [0.0, 0.1])
def test_a_client_in_rust_plays_ten_thousand_messages_with_our_server(loss: float) -> None:
    ended: list[ww.Closed] = []

    @in_loop(120)
    async def run() -> None:
        async with ww.serve("127.0.0.1:0", SERVER) as server, relay(server.local_address, loss, 6) as ((host, port), counts):
            program = await asyncio.create_subprocess_exec(peer_program(), "play", f"{host}:{port}", "10000", stdout=subprocess.PIPE)
            session = await server.accept()
            await send_back_until_closed(session)
            ended.append(await session.wait_closed())
            out, _ = await program.communicate()
            assert (program.returncode, out) == (0, b"10000 messages\n")
            assert counts.lost > 30 or not loss

    run()
    assert (ended[0].reason, ended[0].code, ended[0].text) == (ww.CloseReason.PEER, 9, "thank you")


@pytest.mark.parametrize("seed", [1, 2])
def test_ten_thousand_messages_each_way_through_ten_percent_loss_arrive_once_and_in_order(seed: int) -> None:
    @in_loop(120)
    async def run() -> None:
        with rust_server() as server:
            async with relay(server, 0.1, seed) as (address, counts):
                async with await ww.connect(address, CLIENT) as client:
                    await play(client, 10_000)
                    assert client.stats().resent > 0
                share = counts.lost / (counts.lost + counts.passed)
                assert counts.lost > 30 and 0.04 < share < 0.2, (counts.lost, counts.passed)

    run()


@in_loop()
async def test_every_kind_of_channel_carries_messages() -> None:
    with rust_server() as address:
        async with await ww.connect(address, CLIENT) as client:
            for channel in (ORDERED, UNRELIABLE, UNORDERED, SEQUENCED, STREAM):
                for value in range(20):
                    await client.send(number(value), channel)
                got = [await client.recv(channel)]
                await client.delivered(UNORDERED)
                while channel != STREAM and channel != SEQUENCED and len(got) < 20:
                    got.append(await client.recv(channel))
                while channel == STREAM and len(b"".join(got)) < 80:
                    got.append(await client.recv(channel))
                sent = [number(value) for value in range(20)]
                if channel == STREAM:
                    assert b"".join(got) == b"".join(sent)
                elif channel == SEQUENCED:
                    assert got[0] in sent
                else:
                    assert (sorted(got) if channel != ORDERED else got) == sent
            assert client.send_datagram(b"unreliable")
            assert await client.recv_datagram() == b"unreliable"
            large = bytes(range(256)) * 2000
            await client.send(large, CHANNELS[UNORDERED])
            assert await client.recv(CHANNELS[UNORDERED]) == large


@in_loop()
async def test_a_kick_has_its_code_and_text() -> None:
    with rust_server() as address:
        async with await ww.connect(address, CLIENT) as client:
            await client.send(b"kick")
            with pytest.raises(ww.Closed) as caught:
                await client.recv()
            assert (caught.value.reason, caught.value.code, caught.value.text) == (ww.CloseReason.PEER, 7, "not here")
            assert str(caught.value) == "the peer closed it, with code 7: not here"
            with pytest.raises(ww.Closed):
                await client.send(b"too late")


@pytest.mark.parametrize("kind", ["key", "hybrid"])
def test_suites_of_both_ends_agree(kind: str) -> None:
    @in_loop()
    async def run() -> None:
        if kind == "key":
            config = ww.ClientConfig(SESSION, ww.Suite.noise("nk", "aesgcm"), server_key=ww.public_key(SECRET))
            wrong = ww.ClientConfig(SESSION, ww.Suite.noise("nk", "aesgcm"), server_key=ww.public_key(bytes([8] * 32)), deadline=0.5)
        else:
            config = ww.ClientConfig(SESSION, ww.Suite.HYBRID_TOKEN, psk=SECRET)
            wrong = ww.ClientConfig(SESSION, ww.Suite.HYBRID_TOKEN, psk=bytes([8] * 32), deadline=0.5)
        with rust_server(kind) as address:
            async with await ww.connect(address, config) as client:
                await play(client, 100)
            with pytest.raises(ww.Closed) as caught:
                await ww.connect(address, wrong)
            assert caught.value.denied == "secret" or caught.value.reason is ww.CloseReason.CONNECT_TIMEOUT
            with pytest.raises(ww.Closed) as caught:
                await ww.connect(address, ww.ClientConfig.insecure(SESSION))
            assert (caught.value.reason, caught.value.denied) == (ww.CloseReason.DENIED, "suite")

    run()


@in_loop()
async def test_other_channels_are_refused_by_name() -> None:
    with rust_server() as address:
        other = ww.SessionConfig(7, [ww.Channel.ordered(0)])
        with pytest.raises(ww.Closed) as caught:
            await ww.connect(address, ww.ClientConfig.secret(other, SECRET))
        assert caught.value.denied == "shape"


class Conversation(asyncio.DatagramProtocol):
    """Bare KCP over a socket of asyncio: what a bot for a game with KCP does."""

    def __init__(self, kcp: ww.Kcp) -> None:
        self.kcp = kcp
        self.transport: Any = None
        self.arrived = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, address: Any) -> None:
        self.kcp.input(time.monotonic(), data)
        self.arrived.set()

    async def recv(self) -> bytes:
        while (message := self.kcp.recv()) is None:
            now = time.monotonic()
            self.kcp.update(now)
            for datagram in self.kcp.output():
                self.transport.sendto(datagram)
            due = self.kcp.check(now)
            self.arrived.clear()
            try:
                await asyncio.wait_for(self.arrived.wait(), None if due is None else max(due - now, 0.001))
            except asyncio.TimeoutError:
                pass
        return message


@pytest.mark.parametrize("config", [ww.KcpConfig(), ww.KcpConfig.classic(nodelay=1, interval=10, fast_resend=2, congestion="none")])
def test_bare_kcp_talks_to_a_listener_in_rust_through_ten_percent_loss(config: ww.KcpConfig) -> None:
    @in_loop()
    async def run() -> None:
        with rust_server("kcp") as server:
            async with relay(server, 0.1, 5) as (address, counts):
                loop = asyncio.get_running_loop()
                transport, talk = await loop.create_datagram_endpoint(lambda: Conversation(ww.Kcp(7, config)), remote_addr=address)
                sent = 0
                for value in range(1000):
                    while sent < 1000 and sent < value + 30:
                        assert talk.kcp.send(number(sent) + bytes(sent % 3000)) is not None
                        sent += 1
                    assert await talk.recv() == number(value) + bytes(value % 3000)
                assert counts.lost > 30 and talk.kcp.stats().resends > 0
                transport.close()
                await asyncio.sleep(0)

    run()
