"""Game networking over UDP: encrypted sessions with asyncio, and bare KCP.

:func:`connect` makes a client, :func:`serve` a server. :class:`Kcp` is one end of a conversation of KCP, without sockets.
"""

from ._client import Client, connect
from ._errors import (
    Closed,
    CloseReason,
    ConfigError,
    Error,
    InputError,
    SessionOver,
    TokenError,
    TooLong,
)
from ._server import Request, Server, ServerSession, serve
from ._session import Address, Event, Moved, Redirected, Session
from ._whitewater import (
    Channel,
    Claims,
    ClientConfig,
    FleetKey,
    Kcp,
    KcpConfig,
    KcpStats,
    ServerConfig,
    ServerKey,
    ServerStats,
    SessionConfig,
    Stats,
    Suite,
    Token,
    public_key,
)

__all__ = [
    "Address",
    "Channel",
    "Claims",
    "Client",
    "ClientConfig",
    "Closed",
    "CloseReason",
    "ConfigError",
    "Error",
    "Event",
    "FleetKey",
    "InputError",
    "Kcp",
    "KcpConfig",
    "KcpStats",
    "Moved",
    "Redirected",
    "Request",
    "Server",
    "ServerConfig",
    "ServerKey",
    "ServerSession",
    "ServerStats",
    "Session",
    "SessionConfig",
    "SessionOver",
    "Stats",
    "Suite",
    "Token",
    "TokenError",
    "TooLong",
    "connect",
    "public_key",
    "serve",
]
