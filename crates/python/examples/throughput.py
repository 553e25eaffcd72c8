"""How many small messages a second one Python process sends and receives: sessions beside plain datagrams of asyncio.

Both ends run in one event loop on this machine, so a message costs what both ends do. Usage: throughput.py [seconds]
"""

from __future__ import annotations

import asyncio
import secrets
import sys
import time
from typing import Any, Callable, Coroutine

import whitewater as ww

MESSAGE = bytes(32)
BATCH = 200
"""Messages between two looks at the clock. Plain datagrams get no more at a time, or the system drops them."""


class Counter(asyncio.DatagramProtocol):
    """Counts what arrives."""

    def __init__(self) -> None:
        self.count = 0

    def datagram_received(self, data: bytes, address: Any) -> None:
        self.count += 1


async def plain(seconds: float) -> float:
    """Datagrams of asyncio, without encryption, order or resends."""
    loop = asyncio.get_running_loop()
    receiver, counter = await loop.create_datagram_endpoint(Counter, local_addr=("127.0.0.1", 0))
    sender, _ = await loop.create_datagram_endpoint(Counter, remote_addr=receiver.get_extra_info("sockname"))
    start = time.perf_counter()
    sent = 0
    while time.perf_counter() - start < seconds:
        for _ in range(BATCH):
            sender.sendto(MESSAGE)
        sent += BATCH
        while counter.count < sent and time.perf_counter() - start < 2 * seconds:
            await asyncio.sleep(0)
    rate = counter.count / (time.perf_counter() - start)
    sender.close()
    receiver.close()
    return rate


async def sessions(seconds: float, channel: int, waits: bool) -> float:
    """Messages on a channel of an encrypted session."""
    config = ww.SessionConfig(1, [ww.Channel.ordered(0), ww.Channel.unordered(1)])
    secret = secrets.token_bytes(32)
    count = 0

    async def receive(session: ww.Session) -> None:
        nonlocal count
        while True:
            await session.recv(channel)
            count += 1
            while not waits and session.try_recv(channel) is not None:
                count += 1

    async def send(client: ww.Client, until: float) -> None:
        while time.perf_counter() < until:
            for _ in range(BATCH):
                if waits or not client.try_send(MESSAGE, channel):
                    await client.send(MESSAGE, channel)

    async with ww.serve("127.0.0.1:0", ww.ServerConfig.secret(config, secret)) as server:
        async with await ww.connect(server.local_address, ww.ClientConfig.secret(config, secret)) as client:
            receiving = asyncio.create_task(receive(await server.accept()))
            start = time.perf_counter()
            await send(client, start + seconds)
            await client.delivered(channel)
            rate = count / (time.perf_counter() - start)
            receiving.cancel()
    return rate


async def datagrams(seconds: float) -> float:
    """Unreliable datagrams of an encrypted session."""
    config = ww.SessionConfig(1)
    secret = secrets.token_bytes(32)
    count = 0

    async def receive(session: ww.Session) -> None:
        nonlocal count
        while True:
            await session.recv_datagram()
            count += 1

    async with ww.serve("127.0.0.1:0", ww.ServerConfig.secret(config, secret)) as server:
        async with await ww.connect(server.local_address, ww.ClientConfig.secret(config, secret)) as client:
            receiving = asyncio.create_task(receive(await server.accept()))
            start = time.perf_counter()
            while time.perf_counter() - start < seconds:
                for _ in range(BATCH):
                    client.send_datagram(MESSAGE)
                before = count
                while count == before and time.perf_counter() - start < 2 * seconds:
                    await asyncio.sleep(0)
            rate = count / (time.perf_counter() - start)
            receiving.cancel()
    return rate


class Mirror(asyncio.DatagramProtocol):
    """Sends everything back."""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, address: Any) -> None:
        self.transport.sendto(data, address)


class Answers(asyncio.DatagramProtocol):
    """Tells who waits that something came back."""

    def __init__(self) -> None:
        self.arrived = asyncio.Event()

    def datagram_received(self, data: bytes, address: Any) -> None:
        self.arrived.set()


async def plain_round_trips(seconds: float) -> float:
    """One datagram of asyncio at a time, there and back."""
    loop = asyncio.get_running_loop()
    mirror, _ = await loop.create_datagram_endpoint(Mirror, local_addr=("127.0.0.1", 0))
    sender, answers = await loop.create_datagram_endpoint(Answers, remote_addr=mirror.get_extra_info("sockname"))
    start = time.perf_counter()
    count = 0
    while time.perf_counter() - start < seconds:
        answers.arrived.clear()
        sender.sendto(MESSAGE)
        await answers.arrived.wait()
        count += 1
    sender.close()
    mirror.close()
    return count / (time.perf_counter() - start)


async def session_round_trips(seconds: float) -> float:
    """One message of a session at a time, there and back."""
    secret = secrets.token_bytes(32)

    async def send_back(session: ww.Session) -> None:
        async for message in session.messages():
            await session.send(message)

    async with ww.serve("127.0.0.1:0", ww.ServerConfig.secret(ww.SessionConfig(1), secret)) as server:
        async with await ww.connect(server.local_address, ww.ClientConfig.secret(ww.SessionConfig(1), secret)) as client:
            answering = asyncio.create_task(send_back(await server.accept()))
            start = time.perf_counter()
            count = 0
            while time.perf_counter() - start < seconds:
                await client.send(MESSAGE)
                await client.recv()
                count += 1
            rate = count / (time.perf_counter() - start)
            answering.cancel()
    return rate


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 2.0
    rows: list[tuple[str, Callable[[], Coroutine[Any, Any, float]]]] = [
        ("plain datagrams of asyncio", lambda: plain(seconds)),
        ("session, ordered channel, `send` and `recv`", lambda: sessions(seconds, 0, True)),
        ("session, ordered channel, `try_send` and `try_recv`", lambda: sessions(seconds, 0, False)),
        ("session, unordered channel, `try_send` and `try_recv`", lambda: sessions(seconds, 1, False)),
        ("session, unreliable datagrams", lambda: datagrams(seconds)),
        ("plain datagrams of asyncio, one at a time there and back", lambda: plain_round_trips(seconds)),
        ("session, one message at a time there and back", lambda: session_round_trips(seconds)),
    ]
    print("| what | messages a second |\n|---|---|")
    for name, run in rows:
        rate = asyncio.run(run())
        print(f"| {name} | {round(rate, -3):,.0f} |")


if __name__ == "__main__":
    main()
