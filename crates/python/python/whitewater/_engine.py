"""Drives an endpoint by the event loop: when its socket is readable, when something is due, and after what the program does.

The loop holds an engine, and not the client or the server that the program has. So these can be collected, and then close.
"""

from __future__ import annotations

import asyncio
from threading import get_ident
from typing import Any, Optional, Protocol

from ._whitewater import Endpoint

RawEvent = tuple[int, int, Any]
"""An event of the extension: its kind, the number of the session, and what belongs to the kind."""


class Handler(Protocol):
    """What gets the events of an endpoint."""

    def on_events(self, events: list[RawEvent]) -> None:
        """Handles what has happened."""

    def on_failure(self, error: OSError) -> None:
        """The socket has failed."""


class Engine:
    """An endpoint in an event loop."""

    __slots__ = ("endpoint", "loop", "is_stopped", "is_closing", "_handler", "_fd", "_timer", "_due", "_is_soon", "_thread")

    def __init__(self, endpoint: Endpoint, handler: Handler) -> None:
        self.endpoint = endpoint
        self.loop = asyncio.get_running_loop()
        self._handler = handler
        self._fd: Optional[int] = None
        self._timer: Optional[asyncio.TimerHandle] = None
        self._due = 0.0
        self._is_soon = False
        self.is_stopped = False
        """Nothing is sent and received any more."""
        self.is_closing = False
        """The handler also hears when nothing has happened."""
        self._thread = get_ident()
        self.watch()
        self.soon()

    def soon(self) -> None:
        """Pumps once the program lets the loop run, however often this is called until then."""
        self.check_thread()
        if not self._is_soon and not self.is_stopped:
            self._is_soon = True
            self.loop.call_soon(self._pump_soon)

    def check_thread(self) -> None:
        """The loop may only be used from its thread."""
        if get_ident() != self._thread:
            raise RuntimeError(
                "call this from the thread of the event loop: with loop.call_soon_threadsafe or asyncio.run_coroutine_threadsafe"
            )

    def stop(self) -> None:
        """Sends and receives nothing any more. What has arrived can still be read."""
        if self.is_stopped:
            return
        self.is_stopped = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._fd is not None and self._fd >= 0 and not self.loop.is_closed():
            self.loop.remove_reader(self._fd)
        self._fd = None

    def close(self) -> None:
        """Stops, says goodbye without waiting, and closes the socket."""
        self.stop()
        self.endpoint.abandon()

    def discard(self) -> None:
        """The same from any thread, when whoever had this is collected."""
        try:
            self.loop.call_soon_threadsafe(self._discard)
        except RuntimeError:  # the loop is closed
            self.close()

    def _discard(self) -> None:
        self.close()
        self._handler.on_failure(OSError("it was collected and not closed"))

    def watch(self) -> None:
        """Waits for the socket that the endpoint has now. Called after each call that may replace it: the next one can get the old number."""
        fd = self.endpoint.fileno()
        if fd == self._fd:
            return
        if self._fd is not None and self._fd >= 0:
            self.loop.remove_reader(self._fd)
        self._fd = fd
        try:
            self.loop.add_reader(fd, self._pump)
        except NotImplementedError:  # the loop of Windows with completion ports
            self._fd = -1

    def _pump_soon(self) -> None:
        self._is_soon = False
        self._pump()

    def _pump(self) -> None:
        if self.is_stopped:
            return
        try:
            wait, events = self.endpoint.pump()
            if self._fd != -1:
                self.watch()
        except OSError as error:
            self.stop()
            self._handler.on_failure(error)
            return
        if self._fd == -1 and (wait is None or wait > LOOK_EACH):
            wait = LOOK_EACH
        if wait == 0.0:
            self.soon()
        elif wait is not None:
            self._wake_in(wait)
        if events or self.is_closing:
            self._handler.on_events(events)

    def _wake_in(self, wait: float) -> None:
        """A timer that is early is kept: most deadlines move on before they come."""
        due = self.loop.time() + wait
        if self._timer is not None:
            if self._due <= due:
                return
            self._timer.cancel()
        self._due = due
        self._timer = self.loop.call_at(due, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._pump()


class Waiters:
    """Tasks that wait for the same."""

    __slots__ = ("_futures",)

    def __init__(self) -> None:
        self._futures: list[asyncio.Future[None]] = []

    async def wait(self, loop: asyncio.AbstractEventLoop) -> None:
        """Waits until woken. Then look again: another task may have been faster."""
        future = loop.create_future()
        self._futures.append(future)
        try:
            await future
        finally:
            if future in self._futures:
                self._futures.remove(future)

    def wake(self) -> None:
        """Wakes all of them."""
        if self._futures:
            futures, self._futures = self._futures, []
            for future in futures:
                if not future.done():
                    future.set_result(None)


LOOK_EACH = 0.005
"""How often to look for datagrams where the loop cannot say that there are some, seconds."""
