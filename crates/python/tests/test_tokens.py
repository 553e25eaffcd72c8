"""Connect tokens: who may join, and who was sent to another server."""

from __future__ import annotations

import time
from typing import Callable

import pytest
import whitewater as ww
from common import SECRET, SESSION, in_loop, rust_server

KEY = ww.ServerKey(1, 0, SECRET)


@in_loop()
async def test_a_token_admits_once_and_tells_the_server_whose_it_is() -> None:
    async with ww.serve("127.0.0.1:0", ww.ServerConfig.tokens(SESSION, KEY)) as server:
        token = KEY.mint(7, 99, [server.local_address], user=b"red team", match_id=bytes(range(16)))
        token = ww.Token.decode(token.encode())
        assert token.addresses == [server.local_address] and token.expires - token.created == 45
        async with await ww.connect(token.addresses, ww.ClientConfig.token(SESSION, token)) as client:
            session = await server.accept()
            claims = session.claims
            assert claims is not None
            assert (claims.client_id, claims.user, claims.match_id) == (99, b"red team", bytes(range(16)))
            with pytest.raises(ww.Closed) as caught:
                await ww.connect(token.addresses, ww.ClientConfig.token(SESSION, token))
            assert (caught.value.reason, caught.value.denied) == (ww.CloseReason.DENIED, "token")
            await client.send(b"still here")
            assert await session.recv() == b"still here"


@in_loop()
async def test_a_server_in_rust_takes_our_token_and_no_other() -> None:
    with rust_server("tokens") as address:
        token = KEY.mint(7, 1, [address])
        async with await ww.connect(token.addresses, ww.ClientConfig.token(SESSION, token)) as client:
            await client.send(b"hello")
            assert await client.recv() == b"hello"
        now = int(time.time())
        for wrong in [
            ww.ServerKey(1, 0, bytes([8] * 32)).mint(7, 1, [address]),
            ww.ServerKey(2, 0, SECRET).mint(7, 1, [address]),
            KEY.mint(7, 1, [address], now=now - 100),
        ]:
            with pytest.raises(ww.Closed) as caught:
                await ww.connect(wrong.addresses, ww.ClientConfig.token(SESSION, wrong, deadline=2.0))
            assert caught.value.denied == "token"


@in_loop()
async def test_a_routing_token_comes_with_the_connect_token_and_the_server_expects_it() -> None:
    async with ww.serve("127.0.0.1:0", ww.ServerConfig.tokens(SESSION, KEY, routing_token=8)) as server:
        token = KEY.mint(7, 5, [server.local_address], routing_token=b"server 7")
        async with await ww.connect(token.addresses, ww.ClientConfig.token(SESSION, token)) as client:
            await client.send(b"hello")
            session = await server.accept()
            assert await session.recv() == b"hello"
        without = KEY.mint(7, 5, [server.local_address])
        with pytest.raises(ww.Closed) as caught:
            await ww.connect(without.addresses, ww.ClientConfig.token(SESSION, without, deadline=1.0))
        assert caught.value.reason == ww.CloseReason.CONNECT_TIMEOUT


@in_loop()
async def test_a_client_is_sent_to_another_server_with_a_token_for_it() -> None:
    fleet = ww.FleetKey(bytes([1] * 32))
    here, there = fleet.server_key(5), fleet.server_key(6)
    async with (
        ww.serve("127.0.0.1:0", ww.ServerConfig.tokens(SESSION, here)) as first,
        ww.serve("127.0.0.1:0", ww.ServerConfig.tokens(SESSION, there)) as second,
    ):
        token = here.mint(7, 3, [first.local_address])
        async with await ww.connect(token.addresses, ww.ClientConfig.token(SESSION, token)) as client:
            session = await first.accept()
            session.redirect(there.mint(7, 3, [second.local_address]).encode())
            event = await client.events().__anext__()
            assert isinstance(event, ww.Redirected)
            onward = ww.Token.decode(event.token)
            async with await ww.connect(onward.addresses, ww.ClientConfig.token(SESSION, onward)) as other:
                await other.send(b"moved")
                assert await (await second.accept()).recv() == b"moved"
            with pytest.raises(ww.TokenError):
                session.redirect(b"no token")


@in_loop()
async def test_keys_are_rotated_while_the_server_runs() -> None:
    key = ww.ServerKey(1, 0, SECRET)
    async with ww.serve("127.0.0.1:0", ww.ServerConfig.tokens(SESSION, key)) as server:
        following = ww.ServerKey(1, 1, bytes([9] * 32))
        server.rotate(following)
        for sealed_by in (following, key):
            token = sealed_by.mint(7, sealed_by.key_id, [server.local_address])
            async with await ww.connect(token.addresses, ww.ClientConfig.token(SESSION, token)):
                pass


def test_a_token_that_no_server_would_accept_is_not_made() -> None:
    address = ("127.0.0.1", 4000)
    orders: list[Callable[[], object]] = [
        lambda: KEY.mint(7, 1, []),
        lambda: KEY.mint(7, 1, [address] * 5),
        lambda: KEY.mint(7, 1, [("127.0.0.1", 0)]),
        lambda: KEY.mint(7, 1, [address], expires_in=601),
        lambda: KEY.mint(7, 1, [address], user=bytes(257)),
        lambda: KEY.mint(7, 1, [address], routing_token=bytes(21)),
        lambda: KEY.mint(7, 1, [address], suite=ww.Suite.CHECKED),
        lambda: ww.Token.decode(b"WWT1"),
    ]
    for wrong in orders:
        with pytest.raises(ww.TokenError):
            wrong()
    assert ww.FleetKey(SECRET).server_key(1).secret != SECRET
