"""What the tests share: settings, a loop with a time limit, the Rust end, and a lossy relay."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import random
import subprocess
from pathlib import Path
from typing import Any, AsyncIterator, Callable, Coroutine, Iterator, Optional, cast

import whitewater as ww

SECRET = bytes([7] * 32)
ORDERED, UNRELIABLE, UNORDERED, SEQUENCED, STREAM = range(5)
CHANNELS = (
    ww.Channel.ordered(ORDERED),
    ww.Channel.unreliable(UNRELIABLE),
    ww.Channel.unordered(UNORDERED),
    ww.Channel.sequenced(SEQUENCED),
    ww.Channel.stream(STREAM),
)
SESSION = ww.SessionConfig(7, CHANNELS)
CLIENT = ww.ClientConfig.secret(SESSION, SECRET)
SERVER = ww.ServerConfig.secret(SESSION, SECRET)

COUNT = 1000
CROWD = ww.ServerConfig.secret(
    SESSION,
    SECRET,
    max_sessions=COUNT + 10,
    memory=COUNT << 19,
    sessions_per_address=COUNT + 10,
    half_open=COUNT + 10,
    half_open_per_address=COUNT + 10,
    accepts_per_second=1_000_000,
    accept_burst=1_000_000,
)
"""A server that takes so many sessions from one address."""


def in_loop(seconds: float = 60) -> Callable[[Callable[[], Coroutine[Any, Any, None]]], Callable[[], None]]:
    """Runs a test in an event loop. The limit is there to fail instead of hanging. What is left over in the loop is an error."""

    def decorate(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
        async def limited() -> None:
            errors: list[dict[str, Any]] = []
            asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
            await asyncio.wait_for(test(), seconds)
            assert not errors, errors

        @functools.wraps(test)
        def run() -> None:
            asyncio.run(limited())

        return run

    return decorate


async def send_back(session: ww.Session) -> None:
    async for message in session.messages():
        await session.send(message)


@contextlib.asynccontextmanager
async def echoing(config: ww.ServerConfig = SERVER) -> AsyncIterator[ww.Server]:
    """A server that sends back what comes on channel 0."""

    async def accept(server: ww.Server) -> None:
        tasks = set()
        async for session in server:
            task = asyncio.create_task(send_back_until_closed(session))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    async with ww.serve("127.0.0.1:0", config) as server:
        accepting = asyncio.create_task(accept(server))
        yield server
        accepting.cancel()


async def send_back_until_closed(session: ww.Session) -> None:
    with contextlib.suppress(ww.Closed):
        await send_back(session)


def peer_program() -> Path:
    """The program of `examples/peer.rs`, which `run.sh` has built."""
    return Path(os.environ["WHITEWATER_PEER"])


@contextlib.contextmanager
def rust_server(kind: str = "secret") -> Iterator[ww.Address]:
    """A server in Rust that sends everything back."""
    with subprocess.Popen([peer_program(), "serve", kind], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None and program.stdin is not None
        host, port = program.stdout.readline().strip().split(":")
        try:
            yield host, int(port)
        finally:
            program.stdin.close()
    assert program.returncode == 0


class Relay(asyncio.DatagramProtocol):
    """Stands between a client and a server, and loses a share of the datagrams each way."""

    def __init__(self, server: ww.Address, loss: float, seed: int) -> None:
        self.server = server
        self.loss = loss
        self.random = random.Random(seed)
        self.client: Optional[ww.Address] = None
        self.lost = self.passed = 0
        self.transport: Optional[asyncio.DatagramTransport] = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.DatagramTransport, transport)  # Python 3.11 does not say that it is one

    def datagram_received(self, data: bytes, address: Any) -> None:
        assert self.transport is not None
        if address != self.server:
            self.client = address
        if self.random.random() < self.loss:
            self.lost += 1
            return
        self.passed += 1
        to = self.client if address == self.server else self.server
        if to is not None:
            self.transport.sendto(data, to)


@contextlib.asynccontextmanager
async def relay(server: ww.Address, loss: float, seed: int) -> AsyncIterator[tuple[ww.Address, Relay]]:
    """A relay in front of a server: its address, and what it has counted."""
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.create_datagram_endpoint(lambda: Relay(server, loss, seed), local_addr=("127.0.0.1", 0))
    host, port = transport.get_extra_info("sockname")
    try:
        yield (host, port), protocol
    finally:
        transport.close()
        await asyncio.sleep(0)


def number(value: int) -> bytes:
    return value.to_bytes(4, "little")
