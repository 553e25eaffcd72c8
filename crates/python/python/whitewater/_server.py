"""Servers: many sessions on one socket."""

from __future__ import annotations

import warnings
from types import TracebackType
from typing import AsyncIterator, Optional, Union

from ._client import split
from ._engine import Engine, RawEvent, Waiters
from ._errors import Closed, CloseReason, SessionOver
from ._session import CLOSED, CONNECTED, REQUESTED, Address, Session
from ._whitewater import Channel, Claims, Endpoint, Link, ServerConfig, ServerKey, ServerStats


def serve(address: Union[str, Address], config: ServerConfig) -> Server:
    """Binds a server to an address, ``"0.0.0.0:4000"`` or a host and a port. The event loop drives it from now on.

    Raises :class:`ConfigError`, or ``OSError``: the address is in use.
    """
    host, port = split(address) if isinstance(address, str) else address
    return Server(Endpoint.bind(host, port, config))


class ServerSession(Session):
    """A session of a server."""

    __slots__ = ("id", "claims")

    def __init__(self, engine: Engine, link: Link) -> None:
        super().__init__(engine, link)
        self.id = link.id
        """Its number, which is another session's some time after the end of this one."""
        self.claims: Optional[Claims] = link.claims()
        """The claims of the connect token with which the client came."""

    def redirect(self, token: bytes) -> None:
        """Sends the client to another server, by the bytes of a connect token for it. Close the session once the client has left."""
        self._engine.soon()
        self._link.redirect(token)

    def __repr__(self) -> str:
        state = "closed" if self._closed is not None else f"from {self.peer_address}"
        return f"<whitewater.ServerSession {self.id:#x} {state}>"


class Request:
    """A client that asks to join a server with ``ask``. Answer it within 10 s."""

    __slots__ = ("_engine", "_id", "address", "user", "claims")

    def __init__(self, engine: Engine, number: int, address: Address, user: bytes, claims: Claims | None) -> None:
        self._engine = engine
        self._id = number
        self.address = address
        """Where it asks from."""
        self.user = user
        """What its program says, at most 256 bytes."""
        self.claims = claims
        """The claims of its connect token."""

    def admit(self, user: bytes = b"") -> None:
        """Lets it in, and tells its program ``user``, at most 256 bytes. Raises :class:`SessionOver` if it no longer asks."""
        self._engine.soon()
        self._engine.endpoint.admit(self._id, user)

    def reject(self, code: int, user: bytes = b"") -> None:
        """Turns it away, and tells its program ``code``, below 0xff00, and ``user``. Raises as :meth:`admit`."""
        self._engine.soon()
        self._engine.endpoint.reject(self._id, code, user)


class Server:
    """Many sessions on one socket, from :func:`serve`. ``async for session in server`` takes those that connect.

    As a context manager, it closes at the end.
    """

    __slots__ = ("_engine", "_state", "__weakref__")

    def __init__(self, endpoint: Endpoint) -> None:
        self._state = _Sessions()
        self._engine = Engine(endpoint, self._state)
        self._state.engine = self._engine

    def __aiter__(self) -> Server:
        return self

    async def __anext__(self) -> ServerSession:
        try:
            return await self.accept()
        except SessionOver:
            raise StopAsyncIteration from None

    async def accept(self) -> ServerSession:
        """Waits for the next client that has connected. Raises :class:`SessionOver` once the server is closed."""
        state = self._state
        while True:
            if state.incoming:
                session = next(iter(state.incoming))
                del state.incoming[session]
                return session
            state.check()
            await state.acceptors.wait(self._engine.loop)

    async def requests(self) -> AsyncIterator[Request]:
        """The clients that ask to join, if the config has ``ask``: ``async for``. Ends when the server is closed."""
        state = self._state
        while not state.is_closing:
            if not state.asking:
                await state.askers.wait(self._engine.loop)
                continue
            number = next(iter(state.asking))
            del state.asking[number]
            request = self._engine.endpoint.request(number)
            if request is not None:
                yield Request(self._engine, number, *request)

    @property
    def sessions(self) -> list[ServerSession]:
        """The sessions that are up, also those that were not accepted yet."""
        return list(self._state.sessions.values())

    def broadcast(
        self,
        message: bytes | bytearray | memoryview,
        channel: int | Channel = 0,
        except_: ServerSession | None = None,
    ) -> list[ServerSession]:
        """Sends a message to all sessions but one. Returns those that had no room for it. It never waits."""
        self._engine.soon()
        but = None if except_ is None else except_.id
        left_out = self._engine.endpoint.broadcast(message, channel, but)
        return [self._state.sessions[number] for number in left_out if number in self._state.sessions]

    def rotate(self, key: ServerKey) -> None:
        """Expects connect tokens sealed with another key from now on. Those of the previous key stay valid until they expire."""
        self._engine.endpoint.rotate(key)

    def stats(self) -> ServerStats:
        """What the server has counted."""
        return self._engine.endpoint.stats()

    @property
    def local_address(self) -> Address:
        """The address that it is bound to."""
        return self._engine.endpoint.local_address()

    async def close(self, code: int = 0) -> None:
        """Ends all sessions once everything sent has arrived, waits for that, and closes the socket. Clients that come meanwhile are turned away.

        If it is cancelled, the server says goodbye without waiting.
        """
        if not 0 <= code < RESERVED:
            raise ValueError(f"the code {code:#06x} is not below 0xff00, where the library's own codes begin")
        state = self._state
        try:
            if not state.is_over and state.begin_to_close(code):
                while not state.is_over:
                    self._engine.soon()
                    await state.finishers.wait(self._engine.loop)
        finally:
            self._engine.check_thread()
            self._engine.close()
            state.over(Closed("the server was closed", CloseReason.LOCAL, code, is_delivered=False))

    async def __aenter__(self) -> Server:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    def __del__(self) -> None:
        engine = getattr(self, "_engine", None)  # the socket may not have been made
        if engine is not None and not engine.is_stopped:
            warnings.warn(f"unclosed {self!r}", ResourceWarning, source=self)
            engine.discard()

    def __repr__(self) -> str:
        state = "closed" if self._engine.is_stopped else f"on {self.local_address}"
        return f"<whitewater.Server {state}>"


class _Sessions:
    """The sessions of a server, without the server, which can be collected."""

    __slots__ = (
        "engine",
        "sessions",
        "incoming",
        "asking",
        "acceptors",
        "askers",
        "finishers",
        "is_over",
        "_code",
    )

    def __init__(self) -> None:
        self.engine: Optional[Engine] = None
        self.sessions: dict[int, ServerSession] = {}
        self.incoming: dict[ServerSession, None] = {}
        self.asking: dict[int, None] = {}
        self.acceptors, self.askers, self.finishers = Waiters(), Waiters(), Waiters()
        self.is_over = False
        self._code: Optional[int] = None

    @property
    def is_closing(self) -> bool:
        return self.is_over or self._code is not None

    def check(self) -> None:
        if self.is_closing:
            raise SessionOver("the server is closed")

    def begin_to_close(self, code: int) -> bool:
        """Returns whether there is something to wait for."""
        assert self.engine is not None
        self._code = code
        self.engine.is_closing = True
        self.acceptors.wake()
        self.askers.wake()
        return not self.engine.endpoint.shut_down(code)

    def on_events(self, events: list[RawEvent]) -> None:
        for event in events:
            kind, number, more = event
            if kind == CONNECTED:
                self._connected(number, more)
            elif kind == REQUESTED:
                self.asking[number] = None
                self.askers.wake()
            else:
                if kind == CLOSED:
                    self.asking.pop(number, None)
                    session = self.sessions.pop(number, None)
                    if session in self.incoming and len(self.incoming) > ENDED_MAX:
                        del self.incoming[session]
                else:
                    session = self.sessions.get(number)
                if session is not None:
                    session._on_event(event)
        if self._code is not None and self.engine is not None and self.engine.endpoint.shut_down(self._code):
            self.is_over = True
            self.finishers.wake()

    def _connected(self, number: int, link: Link) -> None:
        assert self.engine is not None
        session = ServerSession(self.engine, link)
        self.sessions[number] = session
        if self._code is None:
            self.incoming[session] = None
            self.acceptors.wake()

    def on_failure(self, error: OSError) -> None:
        for session in self.sessions.values():
            session._fail(error)
        self._end()

    def over(self, why: Closed) -> None:
        for session in self.sessions.values():
            session._over(session._ended(why))
        self._end()

    def _end(self) -> None:
        self.is_over = True
        self.sessions.clear()
        for waiters in (self.acceptors, self.askers, self.finishers):
            waiters.wake()


RESERVED = 0xFF00
"""The first code that no program may use."""

ENDED_MAX = 64
"""Sessions that wait to be accepted. When there are more, those that end are forgotten."""
