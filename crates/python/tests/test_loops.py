"""Other event loops: uvloop, and one that cannot watch a socket, as the default one of Windows."""

from __future__ import annotations

import asyncio
from typing import Any, Callable

import pytest
import uvloop
import whitewater as ww
from common import CLIENT, echoing, number, relay


class Unwatching(asyncio.SelectorEventLoop):
    """A loop without `add_reader`."""

    def add_reader(self, fd: Any, callback: Any, *args: Any) -> None:  # type: ignore[override]
        raise NotImplementedError

    def remove_reader(self, fd: Any) -> bool:
        raise NotImplementedError


@pytest.mark.parametrize("loop_factory", [uvloop.new_event_loop, Unwatching])
def test_sessions_work_in_another_event_loop(loop_factory: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def run() -> None:
        async with echoing() as server:
            async with relay(server.local_address, 0.1, 3) as (address, _):
                async with await ww.connect(address, CLIENT) as client:
                    for value in range(1000):
                        await client.send(number(value))
                    for value in range(1000):
                        assert await client.recv() == number(value)
                    client.path_changed()
                    for value in range(20):
                        await client.send(number(value))
                        assert await client.recv() == number(value)

    loop = loop_factory()
    try:
        loop.run_until_complete(asyncio.wait_for(run(), 60))
    finally:
        loop.close()
