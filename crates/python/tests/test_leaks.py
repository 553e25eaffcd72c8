"""Nothing is left behind: no file, no session, no memory."""

from __future__ import annotations

import asyncio
import gc
import os

import pytest
import whitewater as ww
from common import CLIENT, CROWD, SERVER, echoing, in_loop, number

ROUNDS = int(os.environ.get("WHITEWATER_SOAK", "60"))


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def resident() -> int:
    """Bytes of memory of this process."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def objects() -> int:
    gc.collect()
    kinds = (ww.Session, ww.Server, ww._engine.Engine, ww._engine.Waiters)
    return sum(isinstance(one, kinds) for one in gc.get_objects())


def test_files_and_objects_are_gone_after_close() -> None:
    files = open_files()

    @in_loop()
    async def run() -> None:
        async with echoing() as server:
            clients = [await ww.connect(server.local_address, CLIENT) for _ in range(10)]
            assert open_files() >= files + 11
            for client in clients:
                await client.send(b"x")
                assert await client.recv() == b"x"
                await client.close()
                await client.close()  # closing again does nothing

    run()
    assert (open_files(), objects()) == (files, 0)


def test_a_client_that_is_dropped_is_closed_with_a_warning() -> None:
    @in_loop()
    async def run() -> None:
        async with ww.serve("127.0.0.1:0", SERVER) as server:
            files = open_files()
            client = await ww.connect(server.local_address, CLIENT)
            session = await server.accept()
            with pytest.warns(ResourceWarning, match="unclosed <whitewater.Client"):
                del client
                gc.collect()
            why = await session.wait_closed()
            assert why.reason is ww.CloseReason.PEER and open_files() == files

    run()
    assert objects() == 0


def test_a_server_that_is_dropped_is_closed_with_a_warning() -> None:
    @in_loop()
    async def run() -> None:
        server = ww.serve("127.0.0.1:0", SERVER)
        client = await ww.connect(server.local_address, CLIENT)
        session = await server.accept()
        with pytest.warns(ResourceWarning, match="unclosed <whitewater.Server"):
            del server
            gc.collect()
        assert (await client.wait_closed()).reason is ww.CloseReason.PEER
        assert (await session.wait_closed()).reason is ww.CloseReason.SOCKET
        await client.close()

    run()
    assert objects() == 0


def test_memory_does_not_grow_with_sessions_that_come_and_go() -> None:
    sizes: list[int] = []

    @in_loop(600)
    async def run() -> None:
        async with echoing(CROWD) as server:

            async def play() -> None:
                async with await ww.connect(server.local_address, CLIENT) as client:
                    for value in range(20):
                        await client.send(number(value) + bytes(2000))
                    for value in range(20):
                        assert (await client.recv())[:4] == number(value)

            for _ in range(ROUNDS):
                await asyncio.gather(*(play() for _ in range(8)))
                sizes.append(resident())

    run()
    assert objects() == 0
    warm = sizes[len(sizes) // 3]
    assert sizes[-1] - warm < 4 << 20, [size >> 10 for size in sizes]
