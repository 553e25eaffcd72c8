"""The exceptions of the package."""

from __future__ import annotations

import enum


class Error(Exception):
    """What all exceptions of this package are, except for those of the socket, which are ``OSError``."""


class ConfigError(Error, ValueError):
    """A setting is missing or out of its range. The text says which, and what to do."""


class TooLong(Error, ValueError):
    """A message that can never be sent like this. The text says which limit it is over."""


class TokenError(Error, ValueError):
    """No server would accept this connect token, or these bytes are none."""


class InputError(Error, ValueError):
    """A datagram that :class:`Kcp` refused. Only a counter has changed."""


class SessionOver(Error, ConnectionError):
    """What was called needs a session, a request or a server that is there no longer."""


class CloseReason(enum.Enum):
    """Why a session has ended."""

    LOCAL = "local"
    """It was closed here, with ``code``."""
    PEER = "peer"
    """The peer closed or kicked, with ``code`` and ``text``."""
    REJECTED = "rejected"
    """The server's program rejected this client, with ``code`` and ``user``."""
    DENIED = "denied"
    """The server refused this client: ``denied`` says why."""
    CONNECT_TIMEOUT = "connect_timeout"
    """Nobody answered."""
    TIMEOUT = "timeout"
    """The peer fell silent."""
    SERVER_FORGOT = "server_forgot"
    """The server has restarted, or given the session up."""
    PROTOCOL = "protocol"
    """The peer broke the protocol."""
    DEAD_LINK = "dead_link"
    """The peer acknowledged nothing any more."""
    SLOW_PEER = "slow_peer"
    """The peer read nothing for too long."""
    STREAM_CORRUPT = "stream_corrupt"
    """The parts of a message did not fit together."""
    REPLACED = "replaced"
    """The same client has connected again."""
    EXHAUSTED = "exhausted"
    """All packet numbers are used up."""
    NO_MEMORY = "no_memory"
    """The server's memory is used up."""
    SOCKET = "socket"
    """The socket has failed: ``text`` is the system's error."""
    OTHER = "other"
    """A reason that this version of the package does not know."""


class Closed(SessionOver):
    """The session has ended. The text is a sentence that says why."""

    def __init__(
        self,
        message: str,
        reason: CloseReason,
        code: int = 0,
        text: str = "",
        denied: str | None = None,
        user: bytes = b"",
        is_delivered: bool = True,
    ) -> None:
        super().__init__(message)
        self.reason = reason
        """Why."""
        self.code = code
        """The number that whoever ended it gave: with ``LOCAL``, ``PEER`` and ``REJECTED``. Those from 0xff00 on are the library's own."""
        self.text = text
        """What the peer said when it closed or kicked; empty if nothing. It comes from the peer: show it as a text only."""
        self.denied = denied
        """With ``DENIED``: ``version``, ``suite``, ``protocol``, ``busy``, ``secret``, ``token`` or ``shape``, which are other channels."""
        self.user = user
        """With ``REJECTED``: the bytes that the server's program gave."""
        self.is_delivered = is_delivered
        """Whether all that was sent here is known to have arrived."""

    def __str__(self) -> str:
        message = str(self.args[0])
        return f"{message}: {self.text}" if self.text else message

    def __reduce__(self) -> tuple[type[Closed], tuple[object, ...]]:
        return type(self), (
            str(self.args[0]),
            self.reason,
            self.code,
            self.text,
            self.denied,
            self.user,
            self.is_delivered,
        )


def closed(message: str, reason: str, code: int, text: str, denied: str | None, user: bytes, is_delivered: bool) -> Closed:
    """The exception for an event of the extension."""
    known = CloseReason._value2member_map_.get(reason, CloseReason.OTHER)
    assert isinstance(known, CloseReason)
    return Closed(message, known, code, text, denied, user, is_delivered)
