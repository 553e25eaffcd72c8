"""Sessions of both ends in Python: what a game does with them."""

from __future__ import annotations

import asyncio
import os

import pytest
import whitewater as ww
from common import CLIENT, ORDERED, SECRET, SERVER, SESSION, UNORDERED, UNRELIABLE, echoing, in_loop, number


@in_loop()
async def test_both_ends_hear_what_the_other_says_in_the_handshake() -> None:
    server_config = ww.ServerConfig.secret(SESSION, SECRET, user=b"welcome")
    async with ww.serve(("127.0.0.1", 0), server_config) as server:
        host, port = server.local_address
        async with await ww.connect(f"{host}:{port}", ww.ClientConfig.secret(SESSION, SECRET, user=b"alice")) as client:
            session = await server.accept()
            assert (client.user, session.user, session.claims) == (b"welcome", b"alice", None)
            assert session.peer_address == ("127.0.0.1", client.local_address[1]) and client.peer_address == server.local_address
            assert server.sessions == [session] and server.stats().sessions == 1


@in_loop()
async def test_a_name_is_resolved_and_each_of_several_addresses_is_tried() -> None:
    config = ww.ClientConfig.secret(SESSION, SECRET, deadline=1.0)
    async with echoing() as server:
        host, port = server.local_address
        async with await ww.connect(("localhost", port), config) as client:
            assert client.peer_address == (host, port)
        async with await ww.connect([("127.0.0.1", 9), (host, port)], config) as client:
            assert client.peer_address == (host, port)


@in_loop()
async def test_whoever_closes_says_a_code_and_a_text_once_all_has_arrived() -> None:
    async with ww.serve("127.0.0.1:0", SERVER) as server:
        async with await ww.connect(server.local_address, CLIENT) as client:
            session = await server.accept()
            for value in range(500):
                await session.send(number(value))
            closing = asyncio.create_task(session.close(5, "the match is over"))
            got = [message async for message in client.messages()]
            await closing
            assert got == [number(value) for value in range(500)]
            assert client.closed is not None and session.closed is not None
            assert (client.closed.reason, client.closed.code, client.closed.text) == (ww.CloseReason.PEER, 5, "the match is over")
            assert (session.closed.reason, session.closed.code, session.closed.is_delivered) == (ww.CloseReason.LOCAL, 5, True)
            assert server.sessions == []


@in_loop()
async def test_what_had_arrived_before_the_end_can_be_read_after_it() -> None:
    async with ww.serve("127.0.0.1:0", SERVER) as server:
        client = await ww.connect(server.local_address, CLIENT)
        session = await server.accept()
        for value in range(50):
            await client.send(number(value))
        client.send_datagram(b"datagram")
        await client.close()
        assert (await session.wait_closed()).reason is ww.CloseReason.PEER
        assert [session.try_recv() for _ in range(51)] == [number(value) for value in range(50)] + [None]
        assert await session.recv_datagram() == b"datagram"
        with pytest.raises(ww.Closed):
            await session.recv()


@in_loop()
async def test_a_server_that_closes_delivers_and_says_its_code() -> None:
    server = ww.serve("127.0.0.1:0", SERVER)
    clients = [await ww.connect(server.local_address, CLIENT) for _ in range(3)]
    for _ in clients:
        await (await server.accept()).send(b"bye")
    await server.close(11)
    for client in clients:
        assert await client.recv() == b"bye"
        why = await client.wait_closed()
        assert (why.reason, why.code) == (ww.CloseReason.PEER, 11)
        await client.close()
    with pytest.raises(ww.SessionOver):
        await server.accept()
    assert [session async for session in server] == []


@in_loop()
async def test_a_broadcast_reaches_all_but_one() -> None:
    async with ww.serve("127.0.0.1:0", SERVER) as server:
        clients = [await ww.connect(server.local_address, CLIENT) for _ in range(4)]
        sessions = [await server.accept() for _ in clients]
        by_port = {(session.peer_address or ("", 0))[1]: session for session in sessions}
        apart = by_port[clients[0].local_address[1]]
        assert server.broadcast(b"to some", UNORDERED, except_=apart) == []
        assert server.broadcast(b"to all", ORDERED) == []
        for client in clients[1:]:
            assert await client.recv(UNORDERED) == b"to some"
        for client in clients:
            assert await client.recv() == b"to all"
        assert clients[0].try_recv(UNORDERED) is None
        for client in clients:
            await client.close()


@in_loop()
async def test_a_server_that_asks_admits_one_and_rejects_another() -> None:
    async def decide(server: ww.Server) -> None:
        async for request in server.requests():
            assert request.claims is None
            if request.user == b"friend":
                request.admit(b"come in")
                with pytest.raises(ww.SessionOver):
                    request.admit()
            else:
                with pytest.raises(ww.TooLong):
                    request.reject(1, bytes(257))
                request.reject(42, b"members only")

    async with ww.serve("127.0.0.1:0", ww.ServerConfig.secret(SESSION, SECRET, ask=True)) as server:
        deciding = asyncio.create_task(decide(server))
        async with await ww.connect(server.local_address, ww.ClientConfig.secret(SESSION, SECRET, user=b"friend")) as client:
            assert client.user == b"come in"
            with pytest.raises(ww.Closed) as caught:
                await ww.connect(server.local_address, ww.ClientConfig.secret(SESSION, SECRET, user=b"stranger"))
            assert (caught.value.reason, caught.value.code, caught.value.user) == (ww.CloseReason.REJECTED, 42, b"members only")
    await deciding  # it ends with the server


@in_loop()
async def test_a_ticket_saves_a_round_trip_of_the_next_session() -> None:
    async with echoing() as server:
        datagrams = []
        ticket = b""
        for _ in range(4):
            before = server.stats().datagrams
            async with await ww.connect(server.local_address, ww.ClientConfig.secret(SESSION, SECRET, ticket=ticket)) as client:
                datagrams.append(server.stats().datagrams - before)
                await client.send(b"x")
                assert await client.recv() == b"x"
                ticket = client.ticket
        assert 0 < len(ticket) <= 64 and min(datagrams[1:]) < datagrams[0], datagrams


@in_loop()
async def test_nobody_answers_after_the_deadline() -> None:
    with pytest.raises(ww.Closed) as caught:
        await ww.connect("127.0.0.1:9", ww.ClientConfig.secret(SESSION, SECRET, deadline=0.2))
    assert caught.value.reason is ww.CloseReason.CONNECT_TIMEOUT
    with pytest.raises(OSError):
        await ww.connect("no.such.name.invalid:1", CLIENT)


@in_loop()
async def test_a_client_that_is_silent_times_out_at_the_server() -> None:
    quick = ww.SessionConfig(7, keepalive=0.5, timeout=2.0)
    async with ww.serve("127.0.0.1:0", ww.ServerConfig.secret(quick, SECRET)) as server:
        client = await ww.connect(server.local_address, ww.ClientConfig.secret(quick, SECRET))
        session = await server.accept()
        client._engine.stop()  # as if the process were gone
        assert (await session.wait_closed()).reason is ww.CloseReason.TIMEOUT
        client.abandon()


@in_loop()
async def test_unreliable_datagrams_never_wait() -> None:
    async with ww.serve("127.0.0.1:0", SERVER) as server:
        async with await ww.connect(server.local_address, CLIENT) as client:
            session = await server.accept()
            taken = sum(client.send_datagram(bytes(1000)) for _ in range(200))
            assert 50 < taken < 80, "the queue is 64 KiB"
            got = 0
            while got < taken:  # the peer has room for as many
                assert await session.recv_datagram() == bytes(1000)
                got += 1


@in_loop()
async def test_back_pressure_bounds_what_a_peer_that_does_not_read_costs() -> None:
    async with ww.serve("127.0.0.1:0", SERVER) as server:
        async with await ww.connect(server.local_address, CLIENT) as client:
            session = await server.accept()
            sent = looks = 0
            while looks < 20:
                if client.try_send(number(sent) + bytes(996)):
                    sent, looks = sent + 1, 0
                else:
                    looks += 1
                    await asyncio.sleep(0.05)
            waiting = asyncio.create_task(client.send(number(sent) + bytes(996)))
            await asyncio.sleep(0.1)
            assert not waiting.done()
            assert 200 < sent < 700, sent
            assert client.stats().memory < 1 << 20 and session.stats().memory < 1 << 20

            async def read() -> None:
                for value in range(sent + 501):
                    assert (await session.recv())[:4] == number(value)

            reading = asyncio.create_task(read())
            await waiting
            for value in range(sent + 1, sent + 501):
                await client.send(number(value) + bytes(996))
            await reading
            await client.delivered()


@in_loop()
async def test_events_report_a_peer_that_moves() -> None:
    async with ww.serve("127.0.0.1:0", SERVER) as server:
        async with await ww.connect(server.local_address, CLIENT) as client:
            session = await server.accept()
            before = session.peer_address
            moves: list[ww.Event] = []

            async def listen() -> None:
                async for event in session.events():
                    moves.append(event)

            listening = asyncio.create_task(listen())
            for _ in range(3):  # a socket that is closed may leave its number to the next one
                client.path_changed()
                assert client._engine.endpoint.fileno() == client._engine._fd
            for value in range(50):
                await client.send(number(value))
                assert await session.recv() == number(value)
            after = session.peer_address
            assert after == ("127.0.0.1", client.local_address[1]) != before, "it sends from another port"
            assert session.stats().moves == 1
            await client.close()
            await listening
            assert moves == [(before, after)]


@in_loop()
async def test_unreliable_messages_may_be_lost_and_are_never_invented() -> None:
    async with echoing() as server:
        async with await ww.connect(server.local_address, CLIENT) as client:
            for value in range(100):
                await client.send(number(value), UNRELIABLE)
            await client.send(b"end")
            assert await client.recv() == b"end"
            assert client.try_recv(UNRELIABLE) is None, "the server sends back channel 0 only"


def test_the_extension_is_of_the_installed_wheel() -> None:
    assert os.path.basename(os.path.dirname(ww.__file__)) == "whitewater" and "site-packages" in ww.__file__


@in_loop()
async def test_only_tasks_whose_channel_has_a_message_are_woken() -> None:
    async with ww.serve("127.0.0.1:0", SERVER) as server:
        async with await ww.connect(server.local_address, CLIENT) as client:
            session = await server.accept()
            reading = [asyncio.create_task(session.recv(channel)) for channel in range(5)]
            await asyncio.sleep(0)
            waiting = [session._readers[channel]._futures[0] for channel in range(5)]
            await client.send(b"for one", UNORDERED)
            assert await reading[UNORDERED] == b"for one"
            assert [future.done() for future in waiting] == [channel == UNORDERED for channel in range(5)]
            for task in reading:
                task.cancel()
