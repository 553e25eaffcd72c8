"""One session, the same at a client and at a server."""

from __future__ import annotations

import collections
from typing import AsyncIterator, NamedTuple, Optional, Union

from ._engine import Engine, RawEvent, Waiters
from ._errors import Closed, CloseReason, SessionOver, closed
from ._whitewater import Channel, Link, Stats

Address = tuple[str, int]
"""A host and a port."""


class Moved(NamedTuple):
    """The peer has another address."""

    old: Address
    new: Address


class Redirected(NamedTuple):
    """The server sends this client to another one: decode the token with ``Token.decode``, and connect a new client with it."""

    token: bytes


Event = Union[Moved, Redirected]
"""What happens to a session besides messages."""


class Session:
    """A session: channels of messages, and unreliable datagrams. Messages are bytes.

    Use it in the thread of its event loop. Several tasks may wait at once. A cancelled call has taken and sent nothing.
    """

    __slots__ = ("_engine", "_link", "_readers", "_writers", "_listeners", "_events", "_closed", "__weakref__")

    def __init__(self, engine: Engine, link: Link) -> None:
        self._engine = engine
        self._link = link
        self._readers: dict[int, Waiters] = {}  # by channel
        self._writers = Waiters()
        self._listeners = Waiters()
        self._events: collections.deque[Event] = collections.deque(maxlen=EVENTS_MAX)
        self._closed: Optional[Closed] = None

    async def send(self, message: bytes | bytearray | memoryview, channel: int | Channel = 0) -> None:
        """Sends a message, and waits while there is no room for it: until the peer has read or acknowledged more.

        Raises :class:`Closed`, :class:`TooLong`, or ``ValueError``: there is no such channel.
        """
        while not self.try_send(message, channel):
            await self._writers.wait(self._engine.loop)

    def try_send(self, message: bytes | bytearray | memoryview, channel: int | Channel = 0) -> bool:
        """The same without waiting. Returns whether there was room."""
        if self._closed is not None:
            raise self._ended(self._closed)
        self._engine.soon()
        return self._link.send(message, channel)

    async def send_end(self, channel: int | Channel) -> None:
        """Marks the end of what this end sends on a stream: the peer receives ``b""``."""
        while True:
            if self._closed is not None:
                raise self._ended(self._closed)
            self._engine.soon()
            if self._link.send_end(channel):
                return
            await self._writers.wait(self._engine.loop)

    async def recv(self, channel: int | Channel = 0) -> bytes:
        """Waits for the next message of a channel. Of a stream, these are the next bytes that have arrived.

        Raises :class:`Closed` once the session is over and everything that had arrived was taken.
        """
        while True:
            message = self.try_recv(channel)
            if message is not None:
                return message
            await self._readable(channel if isinstance(channel, int) else channel.number)

    def try_recv(self, channel: int | Channel = 0) -> bytes | None:
        """Takes the next message of a channel. ``None``: there is none yet."""
        self._engine.check_thread()
        message = self._link.recv(channel)
        if message is not None:
            self._engine.soon()  # the peer may be told that there is room again
        return message

    async def messages(self, channel: int | Channel = 0) -> AsyncIterator[bytes]:
        """The messages of a channel until the session is over: ``async for``. Then :attr:`closed` says why."""
        while True:
            try:
                message = await self.recv(channel)
            except Closed:
                return
            yield message

    def send_datagram(self, datagram: bytes | bytearray | memoryview) -> bool:
        """Sends an unreliable datagram. Returns whether there was room: it never waits, because what is late is useless."""
        if self._closed is not None:
            raise self._ended(self._closed)
        self._engine.soon()
        return self._link.send_datagram(datagram)

    async def recv_datagram(self) -> bytes:
        """Waits for the next unreliable datagram. Raises as :meth:`recv`."""
        while True:
            datagram = self.try_recv_datagram()
            if datagram is not None:
                return datagram
            await self._readable(DATAGRAMS)

    def try_recv_datagram(self) -> bytes | None:
        """Takes the next unreliable datagram. ``None``: there is none yet."""
        self._engine.check_thread()
        return self._link.recv_datagram()

    async def delivered(self, channel: int | Channel = 0) -> None:
        """Waits until everything sent on a reliable channel is known to have arrived. Raises :class:`Closed` if it did not."""
        while not self._link.is_delivered(channel):
            if self._closed is not None:
                raise self._ended(self._closed)
            self._engine.soon()
            await self._writers.wait(self._engine.loop)

    async def events(self) -> AsyncIterator[Event]:
        """What happens to the session until it is over: ``async for``. Only the newest 16 events that nobody took are kept."""
        while True:
            if self._events:
                yield self._events.popleft()
            elif self._closed is not None:
                return
            else:
                await self._listeners.wait(self._engine.loop)

    async def close(self, code: int = 0, text: str = "") -> None:
        """Ends the session once everything sent has arrived, and waits for that: for the ``drain`` of the config at most, and a few seconds.

        ``code`` is below 0xff00, ``text`` has at most 128 bytes; the peer gets both. Does nothing if it is over.
        """
        self._begin_to_close(code, text)
        await self.wait_closed()

    def kick(self, code: int = 0, text: str = "") -> None:
        """Ends the session at once: what has not arrived is lost."""
        self._engine.check_thread()
        self._link.kick(code, text)
        self._engine.soon()

    async def wait_closed(self) -> Closed:
        """Waits until the session is over. Returns why."""
        while self._closed is None:
            await self._listeners.wait(self._engine.loop)
        return self._closed

    @property
    def closed(self) -> Closed | None:
        """Why the session is over. ``None``: it is not."""
        return self._closed

    @property
    def peer_address(self) -> Address | None:
        """Where the peer is now. ``None``: the session is over."""
        return self._link.peer_address()

    @property
    def user(self) -> bytes:
        """What the peer's program said in the handshake."""
        return self._link.user()

    def stats(self) -> Stats:
        """What this end has counted. Raises :class:`SessionOver` if nothing is known any more."""
        stats = self._link.stats()
        if stats is None:
            raise SessionOver("the session is gone")
        return stats

    async def _readable(self, channel: int) -> None:
        """Waits until there may be something to read."""
        if self._closed is not None:
            raise self._ended(self._closed)
        readers = self._readers.get(channel)
        if readers is None:
            readers = self._readers[channel] = Waiters()
        await readers.wait(self._engine.loop)

    def _begin_to_close(self, code: int, text: str) -> None:
        if self._closed is None:
            self._engine.soon()
            self._link.close(code, text)

    def _ended(self, closed: Closed) -> Closed:
        """A new exception each time, as each has a traceback of its own."""
        kind, values = closed.__reduce__()
        return kind(*values)  # type: ignore[arg-type]

    def _on_event(self, event: RawEvent) -> None:
        kind, _, more = event
        if kind == READABLE:
            for channel, readers in self._readers.items():
                if channel == DATAGRAMS or self._link.is_readable(channel):
                    readers.wake()
        elif kind == WRITABLE:
            self._writers.wake()
        elif kind == CLOSED:
            reason, message, code, text, denied, user, is_delivered = more
            self._over(closed(message, reason, code, text, denied, user, is_delivered))
        elif kind == MOVED:
            self._tell(Moved(*more))
        elif kind == REDIRECTED:
            self._tell(Redirected(more))

    def _tell(self, event: Event) -> None:
        self._events.append(event)
        self._listeners.wake()

    def _over(self, why: Closed) -> None:
        if self._closed is None:
            self._closed = why
        for waiters in (*self._readers.values(), self._writers, self._listeners):
            waiters.wake()

    def _fail(self, error: OSError) -> None:
        self._over(Closed(f"the socket has failed: {error}", CloseReason.SOCKET, text=str(error), is_delivered=False))


REQUESTED, CONNECTED, READABLE, WRITABLE, REDIRECTED, MOVED, CLOSED = range(1, 8)
"""The kinds of events of the extension."""

DATAGRAMS = -1
"""Among the channels that tasks read, the unreliable datagrams."""

EVENTS_MAX = 16
