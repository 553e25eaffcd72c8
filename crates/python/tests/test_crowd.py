"""A thousand sessions in one process, and what each costs."""

from __future__ import annotations

import asyncio
import collections
import resource

import pytest
import whitewater as ww
from common import CLIENT, COUNT, CROWD, echoing, in_loop, number


def test_a_thousand_sessions_play_and_only_those_with_events_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4096)), hard))
    looked_at: collections.Counter[int] = collections.Counter()
    handle = ww.ServerSession._on_event

    def counting(session: ww.ServerSession, event: ww._engine.RawEvent) -> None:
        looked_at[session.id] += 1
        handle(session, event)

    monkeypatch.setattr(ww.ServerSession, "_on_event", counting)

    @in_loop(120)
    async def run() -> None:
        async with echoing(CROWD) as server:
            clients = list(await asyncio.gather(*(ww.connect(server.local_address, CLIENT) for _ in range(COUNT))))
            while len(server.sessions) < COUNT:
                await asyncio.sleep(0.01)

            async def play(client: ww.Client) -> None:
                for value in range(5):
                    await client.send(number(value))
                    assert await client.recv() == number(value)

            await asyncio.gather(*map(play, clients))
            assert len(looked_at) == COUNT
            looked_at.clear()
            for _ in range(20):
                await play(clients[0])
            assert len(looked_at) == 1 and sum(looked_at.values()) <= 200, looked_at
            await asyncio.gather(*(client.close() for client in clients))

    run()
