"""Wrong arguments, wrong times and wrong threads raise, and break nothing."""

from __future__ import annotations

import asyncio
import random
import socket
import threading
from typing import Any, Callable, cast

import pytest
import whitewater as ww
from common import CHANNELS, CLIENT, SECRET, SERVER, SESSION, STREAM, UNRELIABLE, echoing, in_loop, number


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: ww.SessionConfig(7, max_datagram=9), ww.ConfigError, "`max_datagram` is 9"),
        (lambda: ww.SessionConfig(7, max_datagram=-1), ww.ConfigError, "`max_datagram` is -1"),
        (lambda: ww.SessionConfig(7, max_datagram=1 << 80), ww.ConfigError, "`max_datagram`"),
        (lambda: ww.SessionConfig(7, timeout=float("nan")), ww.ConfigError, "no number of seconds"),
        (lambda: ww.SessionConfig(7, timeout=-1.0), ww.ConfigError, "no number of seconds"),
        (lambda: ww.SessionConfig(7, timeout=1e300), ww.ConfigError, "no number of seconds"),
        (lambda: ww.SessionConfig(7, timeout=1.0), ww.ConfigError, "`timeout` is"),
        (lambda: ww.SessionConfig(1 << 64), OverflowError, ""),
        (lambda: ww.SessionConfig(7, [CHANNELS[1]]), ww.ConfigError, "their numbers are their places"),
        (lambda: ww.SessionConfig(7, [ww.Channel.ordered(n) for n in range(33)]), ww.ConfigError, "`channels`"),
        (lambda: ww.Channel.ordered(0, max_message=1 << 30), ww.ConfigError, "`max_message`"),
        (lambda: ww.ClientConfig(SESSION, ww.Suite.TOKEN), ww.ConfigError, "`psk` is missing"),
        (lambda: ww.ServerConfig(SESSION, [ww.Suite.noise("nk")]), ww.ConfigError, "`server_key` is missing"),
        (lambda: ww.ServerConfig(SESSION, []), ww.ConfigError, "`suites` is empty"),
        (lambda: ww.ServerConfig.secret(SESSION, SECRET, max_sessions=0), ww.ConfigError, "`max_sessions` is 0"),
        (lambda: ww.ClientConfig.secret(SESSION, SECRET, user=bytes(257)), ww.ConfigError, "`user`"),
        (lambda: ww.ClientConfig.secret(SESSION, b"short"), ValueError, "a key has 32 bytes, not 5"),
        (lambda: ww.KcpConfig(mtu=10), ww.ConfigError, "`mtu` is 10"),
        (lambda: ww.Kcp(-1), OverflowError, ""),
    ],
)
def test_a_setting_out_of_range_is_refused_by_name(make: Callable[[], object], error: type[Exception], says: str) -> None:
    with pytest.raises(error) as caught:
        make()
    assert says in str(caught.value)


def test_wrong_types_are_type_errors() -> None:
    def any_of(function: Callable[..., object]) -> Any:
        return function  # what a type checker would refuse

    calls: list[Callable[[], object]] = [
        lambda: any_of(ww.SessionConfig)(7, no_such_setting=1),
        lambda: any_of(ww.SessionConfig)(7, max_datagram="many"),
        lambda: any_of(ww.SessionConfig)(7, ["a channel"]),
        lambda: any_of(ww.ClientConfig.secret)(SESSION, "0" * 32),
        lambda: any_of(ww.ClientConfig.secret)(SECRET, SESSION),
        lambda: any_of(ww.ServerConfig)(SESSION, ["token"]),
        lambda: any_of(ww.Suite.noise)(5),
        lambda: any_of(ww.Kcp)(1, SESSION),
        lambda: any_of(ww.Kcp(1).send)("text"),
        lambda: any_of(ww.Kcp(1).input)("now", b""),
    ]
    for call in calls:
        with pytest.raises(TypeError):
            call()
    with pytest.raises(ValueError, match='is not one of "nn"'):
        any_of(ww.Suite.noise)("aes")


@in_loop()
async def test_wrong_arguments_leave_the_session_as_it_was() -> None:
    async with echoing() as server:
        async with await ww.connect(server.local_address, CLIENT) as client:
            send: Any = client.send
            for message in ("text", 5, None, [1, 2], object()):
                with pytest.raises(TypeError):
                    await send(message)
            for channel in (5, -1, 1 << 70):
                with pytest.raises(ValueError, match="there is no channel"):
                    await send(b"x", channel)
                with pytest.raises(ValueError):
                    await client.recv(channel)
            with pytest.raises(TypeError):
                await send(b"x", "chat")
            with pytest.raises(ww.TooLong, match="max_message"):
                await client.send(bytes((1 << 20) + 1))
            with pytest.raises(ww.TooLong):
                await client.send(bytes(5000), UNRELIABLE)
            with pytest.raises(ww.TooLong):
                client.send_datagram(bytes(5000))
            with pytest.raises(ValueError, match="below 0xff00"):
                client.kick(0xFF00)
            with pytest.raises(ValueError, match="control characters"):
                await client.close(0, "\x1b[2J")
            with pytest.raises(ValueError, match="128"):
                await client.close(0, "x" * 129)
            with pytest.raises(OverflowError):
                client.kick(1 << 16)
            with pytest.raises(OverflowError):
                await client.close(1 << 16)
            with pytest.raises(TypeError):
                await cast(Any, client).close("now")
            with pytest.raises(ValueError):
                await server.close(0xFF00)
            for message in (bytearray(b"one"), memoryview(b"two")):
                await client.send(message)
                assert await client.recv() == bytes(message)


@pytest.mark.parametrize("address", ["", "nowhere", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:99999", "127.0.0.1:-1", "127.0.0.1:١"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    @in_loop()
    async def run() -> None:
        with pytest.raises(ValueError):
            await ww.connect(address, CLIENT)
        with pytest.raises(ValueError):
            ww.serve(address, SERVER)

    run()


@in_loop()
async def test_after_close_every_call_raises_or_does_nothing() -> None:
    async with echoing() as server:
        client = await ww.connect(server.local_address, CLIENT)
        await client.close()
        for call in (client.send(b"x"), client.recv(), client.recv_datagram(), client.send_end(STREAM)):
            with pytest.raises(ww.Closed):
                await call
        at_once: list[Callable[[], object]] = [lambda: client.try_send(b"x"), lambda: client.send_datagram(b"x")]
        for refused in at_once:
            with pytest.raises(ww.Closed):
                refused()
        assert client.try_recv() is None and client.try_recv_datagram() is None
        assert [message async for message in client.messages()] == []
        assert (client.peer_address, client.user, client.ticket) == (None, b"", b"")
        with pytest.raises(ww.SessionOver):
            client.stats()
        client.kick()
        client.path_changed()
        await client.close()
        await client.delivered()
    of_server: list[Callable[[], object]] = [server.stats, lambda: server.broadcast(b"x"), lambda: server.local_address]
    for gone in of_server:
        with pytest.raises(ww.SessionOver):
            gone()
    await server.close()
    assert server.sessions == []


@in_loop()
async def test_an_address_in_use_is_an_os_error() -> None:
    async with ww.serve("127.0.0.1:0", SERVER) as server:
        with pytest.raises(OSError) as caught:
            ww.serve(server.local_address, SERVER)
        assert caught.value.errno is not None


def test_outside_of_a_loop_nothing_is_made() -> None:
    with pytest.raises(RuntimeError):
        ww.serve("127.0.0.1:0", SERVER)


@in_loop()
async def test_another_thread_is_refused_where_it_would_touch_the_loop() -> None:
    async with echoing() as server:
        async with await ww.connect(server.local_address, CLIENT) as client:
            refused: list[str] = []

            def elsewhere() -> None:
                for call in (
                    lambda: client.try_recv(),
                    lambda: client.try_recv_datagram(),
                    lambda: client.try_send(b"x"),
                    lambda: client.send_datagram(b"x"),
                    lambda: client.kick(),
                    lambda: client.abandon(),
                    lambda: client.path_changed(),
                    lambda: server.broadcast(b"x"),
                ):
                    try:
                        call()
                    except RuntimeError as error:
                        refused.append(str(error))

            await client.send(b"not lost")
            await client.delivered()
            await asyncio.sleep(0.1)  # it is back, or comes while the other thread is there
            thread = threading.Thread(target=elsewhere)
            thread.start()
            await asyncio.to_thread(thread.join)
            assert await client.recv() == b"not lost"
            assert len(refused) == 8 and "call_soon_threadsafe" in refused[0]
            await client.send(b"fine")
            assert await client.recv() == b"fine"


@in_loop()
async def test_reading_from_other_threads_while_the_loop_pumps_neither_hangs_nor_crashes() -> None:
    async with echoing() as server:
        async with await ww.connect(server.local_address, CLIENT) as client:
            is_over = threading.Event()
            counts = [0, 0]

            def watch(number: int) -> None:
                while not is_over.is_set():
                    client.stats(), client.peer_address, server.stats(), server.local_address
                    counts[number] += 1

            threads = [threading.Thread(target=watch, args=(number,)) for number in range(2)]
            for thread in threads:
                thread.start()
            for value in range(300):
                await client.send(number(value))
                assert await client.recv() == number(value)

            def join() -> None:
                for thread in threads:
                    thread.join()

            is_over.set()
            await asyncio.to_thread(join)
            assert min(counts) > 10, counts


@in_loop()
async def test_noise_from_the_network_changes_nothing_but_counters() -> None:
    chance = random.Random(5)
    async with echoing() as server:
        async with await ww.connect(server.local_address, CLIENT) as client:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
                for _ in range(2000):
                    noise = chance.randbytes(chance.randrange(1400))
                    stranger.sendto(noise, server.local_address)
                    stranger.sendto(noise, client.local_address)
            for value in range(100):
                await client.send(number(value))
                assert await client.recv() == number(value)
            assert len(server.sessions) == 1


def test_a_close_reason_survives_pickling() -> None:
    import pickle

    why = ww.Closed("the peer closed it, with code 7", ww.CloseReason.PEER, 7, "not here")
    again = pickle.loads(pickle.dumps(why))
    assert (str(again), again.reason, again.code, again.text) == (str(why), why.reason, 7, "not here")


def test_secrets_are_in_no_repr() -> None:
    token = ww.ServerKey(1, 0, SECRET).mint(7, 1, [("127.0.0.1", 4000)])
    for one in (CLIENT, SERVER, ww.ServerKey(1, 0, SECRET), ww.FleetKey(SECRET), token):
        assert "7, 7" not in repr(one) and "\\x07\\x07" not in repr(one)
