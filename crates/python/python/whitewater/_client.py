"""Clients: one session with a socket of its own."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import warnings
import weakref
from types import TracebackType
from typing import Any, Iterable, Union

from ._engine import Engine, RawEvent, Waiters
from ._errors import Closed, CloseReason
from ._session import CLOSED, CONNECTED, Address, Session
from ._whitewater import ClientConfig, Endpoint

Target = Union[str, Address, Iterable[Address]]
"""``"host:port"``, a host and a port, or several of these, the best first."""


async def connect(address: Target, config: ClientConfig) -> Client:
    """Connects to a server, and returns a client once the session is up.

    Of all addresses that a name resolves to, four are tried at a time, and the first that answers is taken. Raises :class:`Closed` if none
    works, and ``OSError`` if there is no such name or no socket.
    """
    addresses = await _resolved(address)
    client = Client(Endpoint.connect(addresses, config))
    try:
        await client._connected()
    except BaseException:
        client.abandon()
        raise
    return client


class Client(Session):
    """The client's end of a session, from :func:`connect`. As a context manager, it closes at the end."""

    __slots__ = ("_up", "_is_up")

    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__(Engine(endpoint, _Events(weakref.ref(self))), endpoint.link())
        self._up = Waiters()
        self._is_up = False

    async def close(self, code: int = 0, text: str = "") -> None:
        """Ends the session once everything sent has arrived, waits for that, and closes the socket: as :meth:`Session.close`.

        If it is cancelled, the client says goodbye without waiting.
        """
        self._begin_to_close(code, text)
        try:
            await self.wait_closed()
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Closes the socket at once, after a goodbye. What has not arrived is lost, and what was not read."""
        self._engine.check_thread()
        self._engine.close()
        self._over(Closed("it was closed here", CloseReason.LOCAL, is_delivered=False))

    def path_changed(self) -> None:
        """Call this when the machine has changed networks. The client also notices by itself, within 250 ms."""
        self._engine.check_thread()
        self._engine.endpoint.path_changed()
        if not self._engine.is_stopped:
            self._engine.watch()
        self._engine.soon()

    @property
    def ticket(self) -> bytes:
        """What the ``ticket`` of the next :class:`ClientConfig` for this server takes: it saves a round trip."""
        return self._engine.endpoint.ticket()

    @property
    def local_address(self) -> Address:
        """The address of the socket."""
        return self._engine.endpoint.local_address()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    def __del__(self) -> None:
        engine = getattr(self, "_engine", None)  # the socket may not have been made
        if engine is not None and not engine.is_stopped:
            warnings.warn(f"unclosed {self!r}", ResourceWarning, source=self)
            engine.discard()

    def __repr__(self) -> str:
        state = "closed" if self._closed is not None else f"to {self.peer_address}"
        return f"<whitewater.Client {state}>"

    async def _connected(self) -> None:
        while not self._is_up:
            if self._closed is not None:
                raise self._ended(self._closed)
            await self._up.wait(self._engine.loop)

    def _on_events(self, events: list[RawEvent]) -> None:
        for event in events:
            self._on_event(event)
            if event[0] == CONNECTED:
                self._is_up = True
                self._up.wake()
            elif event[0] == CLOSED:
                self._engine.stop()

    def _over(self, why: Closed) -> None:
        super()._over(why)
        self._up.wake()


class _Events:
    """Passes events on while the client is there."""

    __slots__ = ("_client",)

    def __init__(self, client: weakref.ref[Client]) -> None:
        self._client = client

    def on_events(self, events: list[RawEvent]) -> None:
        client = self._client()
        if client is not None:
            client._on_events(events)

    def on_failure(self, error: OSError) -> None:
        client = self._client()
        if client is not None:
            client._fail(error)


async def _resolved(target: Target) -> list[Address]:
    if isinstance(target, str):
        return await _resolve(*split(target))
    parts = tuple(target)
    if len(parts) == 2 and isinstance(parts[0], str) and isinstance(parts[1], int):
        return await _resolve(parts[0], parts[1])
    addresses = []
    for part in parts:
        if not isinstance(part, tuple):
            raise TypeError('an address is "host:port" or a host and a port')
        addresses += await _resolve(*part)
    return addresses


async def _resolve(host: str, port: int) -> list[Address]:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_DGRAM)
        return [_of_system(address) for *_, address in found]
    return [(host, port)]


def _of_system(address: tuple[Any, ...]) -> Address:
    """An address as the system returns it; one of IPv6 may be of one interface only."""
    host, port, *more = address
    scope = more[1] if len(more) == 2 else 0
    return (f"{host.partition('%')[0]}%{scope}" if scope else str(host)), int(port)


def split(address: str) -> Address:
    """The host and the port of "host:port"."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise ValueError(f'{address!r} is not "host:port"')
    return host.strip("[]"), int(port)
