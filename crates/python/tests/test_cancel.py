"""Whatever is cancelled, no message is lost, sent twice or out of order."""

from __future__ import annotations

import asyncio
import random

import pytest
import whitewater as ww
from common import CLIENT, SERVER, echoing, in_loop, number


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_cancelled_recv_loses_no_message(seed: int) -> None:
    @in_loop()
    async def run() -> None:
        chance = random.Random(seed)
        async with ww.serve("127.0.0.1:0", SERVER) as server:
            async with await ww.connect(server.local_address, CLIENT) as client:
                session = await server.accept()
                got: list[bytes] = []
                sent = cancelled = 0
                while len(got) < 500:
                    task = asyncio.create_task(session.recv())
                    for _ in range(chance.randrange(5)):
                        if sent < 500 and chance.random() < 0.5:
                            await client.send(number(sent))
                            sent += 1
                        await asyncio.sleep(chance.choice([0, 0, 0.0005]))
                    if not task.done():
                        task.cancel()
                        cancelled += 1
                    try:
                        got.append(await task)
                    except asyncio.CancelledError:
                        pass
                assert got == [number(value) for value in range(500)]
                assert cancelled > 50, "that is what is tested"

    run()


@in_loop()
async def test_a_cancelled_send_has_sent_nothing() -> None:
    async with ww.serve("127.0.0.1:0", SERVER) as server:
        async with await ww.connect(server.local_address, CLIENT) as client:
            session = await server.accept()
            sent = 0
            while client.try_send(number(sent) + bytes(1000)):
                sent += 1
            waiting = [asyncio.create_task(client.send(bytes(1004))) for _ in range(5)]
            await asyncio.sleep(0)
            for task in waiting:
                task.cancel()
            assert all(isinstance(result, asyncio.CancelledError) for result in await asyncio.gather(*waiting, return_exceptions=True))
            closing = asyncio.create_task(client.close())
            got = [message[:4] async for message in session.messages()]
            await closing
            assert got == [number(value) for value in range(sent)]


@in_loop()
async def test_of_several_that_wait_each_message_goes_to_one() -> None:
    async with ww.serve("127.0.0.1:0", SERVER) as server:
        async with await ww.connect(server.local_address, CLIENT) as client:
            session = await server.accept()
            waiting = [asyncio.create_task(session.recv()) for _ in range(20)]
            await asyncio.sleep(0)
            waiting[0].cancel()
            for value in range(19):
                await client.send(number(value))
            got = await asyncio.gather(*waiting[1:])
            assert sorted(got) == sorted(number(value) for value in range(19))


@in_loop()
async def test_a_cancelled_connect_leaves_nothing_behind() -> None:
    from test_leaks import open_files

    before = open_files()
    task = asyncio.create_task(ww.connect("127.0.0.1:9", CLIENT))
    await asyncio.sleep(0.05)
    assert open_files() == before + 1
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert open_files() == before


@in_loop()
async def test_a_cancelled_close_says_goodbye_without_waiting() -> None:
    async with ww.serve("127.0.0.1:0", SERVER) as server:
        client = await ww.connect(server.local_address, CLIENT)
        session = await server.accept()
        while client.try_send(bytes(1000)):
            pass
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(client.close(), 0.2)
        assert (await session.wait_closed()).reason is ww.CloseReason.PEER


@in_loop()
async def test_a_task_that_is_cancelled_inside_of_the_context_closes_its_client() -> None:
    async with echoing() as server:

        async def bot() -> None:
            async with await ww.connect(server.local_address, CLIENT) as client:
                await client.recv()

        task = asyncio.create_task(bot())
        while not server.sessions:
            await asyncio.sleep(0.01)
        session = server.sessions[0]
        task.cancel()
        assert (await session.wait_closed()).reason is ww.CloseReason.PEER
        with pytest.raises(asyncio.CancelledError):
            await task
