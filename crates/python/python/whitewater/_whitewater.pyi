"""The part of the package that is in Rust."""

from collections.abc import Iterable
from typing import Any, Literal, final

__all__ = [
    "Channel",
    "Claims",
    "ClientConfig",
    "Endpoint",
    "FleetKey",
    "Kcp",
    "KcpConfig",
    "KcpStats",
    "Link",
    "ServerConfig",
    "ServerKey",
    "ServerStats",
    "SessionConfig",
    "Stats",
    "Suite",
    "Token",
    "public_key",
]

_Bytes = bytes | bytearray | memoryview
_Address = tuple[str, int]
_Pattern = Literal["nn", "nnpsk0", "nk", "nkpsk0"]
_Cipher = Literal["chachapoly", "aesgcm"]

@final
class KcpConfig:
    """The settings of KCP: those of ``kcp::Config``, with its defaults. ``interval`` and ``min_rto`` are in ms, as everywhere in KCP.

    The constructor has the defaults of the library, which detect loss by timing; ``classic`` those of ``ikcp_create``; ``bulk`` those for
    bulk data beside a game. ``nodelay``, ``interval``, ``fast_resend`` and ``congestion`` are the four numbers of ``ikcp_nodelay``: its
    ``nc`` is ``congestion="none"``, and without it ``congestion="kcp"``.
    """

    def __new__(
        cls,
        *,
        mtu: int = ...,
        rcv_mtu: int = ...,
        snd_wnd: int = ...,
        rcv_wnd: int = ...,
        nodelay: int = ...,
        interval: int = ...,
        fast_resend: int = ...,
        congestion: Literal["none", "kcp", "cubic", "delay"] = ...,
        stream: bool = ...,
        min_rto: int | None = ...,
        fast_limit: int = ...,
        dead_link: int = ...,
        snd_queue: int = ...,
        snd_queue_bytes: int = ...,
        repairs: Literal["off", "auto"] = ...,
    ) -> KcpConfig: ...
    @staticmethod
    def classic(
        *,
        mtu: int = ...,
        rcv_mtu: int = ...,
        snd_wnd: int = ...,
        rcv_wnd: int = ...,
        nodelay: int = ...,
        interval: int = ...,
        fast_resend: int = ...,
        congestion: Literal["none", "kcp", "cubic", "delay"] = ...,
        stream: bool = ...,
        min_rto: int | None = ...,
        fast_limit: int = ...,
        dead_link: int = ...,
        snd_queue: int = ...,
        snd_queue_bytes: int = ...,
    ) -> KcpConfig: ...
    @staticmethod
    def bulk(
        *,
        mtu: int = ...,
        rcv_mtu: int = ...,
        snd_wnd: int = ...,
        rcv_wnd: int = ...,
        stream: bool = ...,
        dead_link: int = ...,
        snd_queue: int = ...,
        snd_queue_bytes: int = ...,
        repairs: Literal["off", "auto"] = ...,
    ) -> KcpConfig: ...

@final
class KcpStats:
    """What a control block of KCP has counted, and its state. Times are in seconds."""

    @property
    def srtt(self) -> float: ...
    @property
    def rttvar(self) -> float: ...
    @property
    def rto(self) -> float: ...
    @property
    def in_flight(self) -> int: ...
    @property
    def snd_queue(self) -> int: ...
    @property
    def rcv_queue(self) -> int: ...
    @property
    def segments_sent(self) -> int: ...
    @property
    def segments_received(self) -> int: ...
    @property
    def resends(self) -> int: ...
    @property
    def duplicates(self) -> int: ...

@final
class Kcp:
    """One end of a conversation of KCP, without I/O and without a clock.

    Times are in seconds of any clock that does not go back, such as ``time.monotonic()``. Give it what arrives by :meth:`input`, call
    :meth:`update` when :meth:`check` says, and send what :meth:`output` returns.
    """

    def __new__(cls, conv: int, config: KcpConfig | None = None) -> Kcp: ...
    def send(self, message: _Bytes) -> int | None:
        """Queues a message. Returns how many bytes were taken: all of it, or in a stream maybe less. ``None``: there is no room now.

        Raises ``TooLong``: it needs more than 127 segments.
        """

    def recv(self) -> bytes | None:
        """Takes the next message. ``None``: no whole one has arrived."""

    def input(self, now: float, datagram: _Bytes) -> None:
        """Takes a datagram of the peer. Raises ``InputError``: nothing but a counter has changed."""

    def update(self, now: float) -> None:
        """Sends and resends what is due."""

    def flush(self, now: float) -> None:
        """Sends what is due without waiting for the interval."""

    def check(self, now: float) -> float | None:
        """When to call :meth:`update` next. ``None``: not before something is sent or arrives."""

    def output(self) -> list[bytes]:
        """Takes the datagrams to send. Call it after :meth:`input`, :meth:`update` and :meth:`flush`."""

    def configure(self, config: KcpConfig) -> None:
        """Changes any setting while running."""

    def peek_size(self) -> int | None:
        """Bytes of the next message. ``None``: no whole one has arrived."""

    def wait_snd(self) -> int:
        """Segments in flight and waiting to be sent."""

    def is_dead(self) -> bool:
        """Whether nothing was acknowledged for too long."""

    def is_idle(self) -> bool:
        """Whether there is nothing to send, resend or acknowledge."""

    def stats(self) -> KcpStats: ...
    @property
    def conv(self) -> int: ...

@final
class Channel:
    """A channel of a session: a number from 0, the lower the more urgent, and how its messages arrive. Both ends need the same.

    ``carrier``: ``"kcp"`` for ordered channels and streams, ``"packets"`` for all but streams. ``max_message``: bytes of the longest message,
    1 MiB by default. ``resend`` and ``expire_after`` are in seconds. The settings are those of ``ChannelConfig``, with its defaults.
    """

    @staticmethod
    def ordered(
        number: int,
        *,
        carrier: Literal["kcp", "packets"] = ...,
        max_message: int = ...,
        kcp: KcpConfig = ...,
        send_buffer: int = ...,
        receive_buffer: int = ...,
        messages_per_packet: int = ...,
        bits_per_packet: int = ...,
        resend: float = ...,
        resend_lost: bool = ...,
        expire_after: float | None = ...,
    ) -> Channel:
        """All messages arrive, each once, in the order of sending."""

    @staticmethod
    def unordered(
        number: int,
        *,
        max_message: int = ...,
        kcp: KcpConfig = ...,
        send_buffer: int = ...,
        receive_buffer: int = ...,
        messages_per_packet: int = ...,
        bits_per_packet: int = ...,
        resend: float = ...,
        resend_lost: bool = ...,
        expire_after: float | None = ...,
    ) -> Channel:
        """All messages arrive, each once, in any order."""

    @staticmethod
    def sequenced(
        number: int,
        *,
        max_message: int = ...,
        send_buffer: int = ...,
        receive_buffer: int = ...,
        messages_per_packet: int = ...,
        bits_per_packet: int = ...,
    ) -> Channel:
        """Messages arrive that are newer than everything delivered before."""

    @staticmethod
    def unreliable(
        number: int,
        *,
        max_message: int = ...,
        send_buffer: int = ...,
        receive_buffer: int = ...,
        messages_per_packet: int = ...,
        bits_per_packet: int = ...,
    ) -> Channel:
        """Messages may be lost, and arrive in any order."""

    @staticmethod
    def stream(number: int, *, max_message: int = ..., kcp: KcpConfig = ...) -> Channel:
        """All bytes arrive in order, without boundaries of messages."""

    @property
    def number(self) -> int: ...
    @property
    def kind(self) -> str: ...

@final
class Suite:
    """How a session is protected."""

    CHECKED: Suite
    """A checksum only: for local networks and tests."""
    TOKEN: Suite
    """A secret that both ends know, from a connect token or shared before: what ``secret`` and ``tokens`` of the configs use."""
    HYBRID_TOKEN: Suite
    """The same, and recordings stay closed to quantum computers."""

    @staticmethod
    def noise(pattern: _Pattern, cipher: _Cipher | None = None) -> Suite:
        """``"nk"``: clients know the server's public key. ``"nnpsk0"``: both ends know a secret. ``"nkpsk0"``: both. ``"nn"``: nobody proves
        anything. The cipher is ``"chachapoly"``, or ``"aesgcm"`` for machines with AES instructions."""

    @staticmethod
    def hybrid(pattern: _Pattern, cipher: _Cipher | None = None) -> Suite:
        """The same with keys that also come from ML-KEM-768."""

    @property
    def code(self) -> int: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...

def public_key(private: _Bytes) -> bytes:
    """The public half of a server's private key, for clients. Both have 32 bytes."""

@final
class SessionConfig:
    """The settings of a session: those of ``SessionConfig`` in Rust, with its defaults. Times are in seconds. Both ends need the same
    ``protocol_id`` and ``channels``; the default is one ordered channel.

    Raises ``ConfigError``: a value is out of its range.
    """

    def __new__(
        cls,
        protocol_id: int | None = None,
        channels: Iterable[Channel] | None = None,
        *,
        max_datagram: int = ...,
        path_mtu: int | None = ...,
        ecn: bool = ...,
        datagrams_out: int = ...,
        datagrams_in: int = ...,
        send_memory: int = ...,
        receive_memory: int = ...,
        unacked: int = ...,
        repairs: Literal["off", "auto"] | int = ...,
        ack_delay: float = ...,
        keepalive: float = ...,
        timeout: float = ...,
        drain: float = ...,
        slow_peer: float = ...,
        mask_headers: bool = ...,
        key_update: int = ...,
    ) -> SessionConfig: ...
    @property
    def protocol_id(self) -> int: ...

@final
class Token:
    """A connect token: whoever has it can join a server, once. A matchmaker gives it to a client over a connection that nobody else can read."""

    @staticmethod
    def decode(token: _Bytes) -> Token:
        """Raises ``TokenError``."""

    def encode(self) -> bytes: ...
    @property
    def protocol_id(self) -> int: ...
    @property
    def created(self) -> int: ...
    @property
    def expires(self) -> int: ...
    @property
    def suite(self) -> Suite: ...
    @property
    def addresses(self) -> list[_Address]: ...

@final
class ServerKey:
    """The key of one server, which makes connect tokens for it: 32 random bytes. ``server_id`` is of one process: a restarted server needs
    another one."""

    def __new__(cls, server_id: int, key_id: int, secret: _Bytes) -> ServerKey: ...
    def mint(
        self,
        protocol_id: int,
        client_id: int,
        addresses: list[_Address],
        *,
        expires_in: float | None = None,
        match_id: _Bytes | None = None,
        user: _Bytes | None = None,
        suite: Suite | None = None,
        server_key: _Bytes | None = None,
        routing_token: _Bytes | None = None,
        now: int | None = None,
    ) -> Token:
        """Makes a token that is valid for 45 s, or ``expires_in``, at most 600.

        ``addresses``: of the server, the best first, 1 to 4. ``match_id``: 16 bytes. ``user``: at most 256 bytes, which the client cannot
        read. ``server_key``: the server's public key, if the suite has one. ``routing_token``: what the client's datagrams end with, so that a
        proxy finds the server by it, at most 20 bytes. ``now``: seconds since 1970, if not by the system's clock.
        """

    @property
    def server_id(self) -> int: ...
    @property
    def key_id(self) -> int: ...
    @property
    def secret(self) -> bytes: ...

@final
class FleetKey:
    """The key of a fleet of servers, from which each server's key is derived: 32 random bytes that only matchmakers have."""

    def __new__(cls, secret: _Bytes) -> FleetKey: ...
    def server_key(self, server_id: int, key_id: int = 0) -> ServerKey: ...

@final
class Claims:
    """What a connect token says of its client."""

    @property
    def client_id(self) -> int: ...
    @property
    def match_id(self) -> bytes: ...
    @property
    def created(self) -> int: ...
    @property
    def user(self) -> bytes: ...

@final
class ClientConfig:
    """How a client connects. Start with ``secret``, ``token`` or ``insecure``, whichever the server uses.

    ``user``: what to tell the server's program, at most 256 bytes. ``ticket``: that of the last session with this server. ``deadline``: how long
    to try the addresses of a server, four at a time, seconds.
    """

    def __new__(
        cls,
        session: SessionConfig,
        suite: Suite,
        *,
        psk: _Bytes = ...,
        server_key: _Bytes = ...,
        ticket: _Bytes = ...,
        routing_token: _Bytes = ...,
        user: _Bytes = ...,
        hello: int = ...,
        deadline: float = ...,
    ) -> ClientConfig:
        """Any suite, with what it needs: a ``psk``, the server's public key."""

    @staticmethod
    def secret(
        session: SessionConfig,
        psk: _Bytes,
        *,
        ticket: _Bytes = ...,
        routing_token: _Bytes = ...,
        user: _Bytes = ...,
        hello: int = ...,
        deadline: float = ...,
    ) -> ClientConfig:
        """For a server with the same secret: 32 random bytes, not a password."""

    @staticmethod
    def token(
        session: SessionConfig,
        token: Token,
        *,
        ticket: _Bytes = ...,
        routing_token: _Bytes = ...,
        user: _Bytes = ...,
        hello: int = ...,
        deadline: float = ...,
    ) -> ClientConfig:
        """With a connect token. Connect to its ``addresses``."""

    @staticmethod
    def insecure(
        session: SessionConfig,
        *,
        ticket: _Bytes = ...,
        routing_token: _Bytes = ...,
        user: _Bytes = ...,
        hello: int = ...,
        deadline: float = ...,
    ) -> ClientConfig:
        """Without encryption: for local networks and tests."""

@final
class ServerConfig:
    """Who may join a server, and its limits: those of ``ServerConfig`` in Rust, with its defaults. Start with ``secret``, ``tokens`` or
    ``insecure``.

    ``user``: what to tell the programs of clients, at most 256 bytes. ``ask``: whether the program decides who may join, by ``Server.requests``.
    """

    def __new__(
        cls,
        session: SessionConfig,
        suites: Iterable[Suite],
        *,
        psk: _Bytes = ...,
        server_key: _Bytes = ...,
        reset_key: _Bytes = ...,
        user: _Bytes = ...,
        max_sessions: int = ...,
        memory: int = ...,
        sessions_per_address: int = ...,
        half_open: int = ...,
        half_open_per_address: int = ...,
        accepts_per_second: int = ...,
        accept_burst: int = ...,
        challenges_per_second: int = ...,
        refusals_per_second: int = ...,
        deny_protocol: bool = ...,
        ask: bool = ...,
        migration: bool = ...,
        proxies: list[str] = ...,
        routing_token: int = ...,
    ) -> ServerConfig:
        """Any suites, with what they need: a ``psk``, the server's private key."""

    @staticmethod
    def secret(
        session: SessionConfig,
        psk: _Bytes,
        *,
        suites: Iterable[Suite] = ...,
        server_key: _Bytes = ...,
        reset_key: _Bytes = ...,
        user: _Bytes = ...,
        max_sessions: int = ...,
        memory: int = ...,
        sessions_per_address: int = ...,
        half_open: int = ...,
        half_open_per_address: int = ...,
        accepts_per_second: int = ...,
        accept_burst: int = ...,
        challenges_per_second: int = ...,
        refusals_per_second: int = ...,
        deny_protocol: bool = ...,
        ask: bool = ...,
        migration: bool = ...,
        proxies: list[str] = ...,
        routing_token: int = ...,
    ) -> ServerConfig:
        """For clients with the same secret: 32 random bytes, not a password."""

    @staticmethod
    def tokens(
        session: SessionConfig,
        key: ServerKey,
        *,
        suites: Iterable[Suite] = ...,
        server_key: _Bytes = ...,
        reset_key: _Bytes = ...,
        user: _Bytes = ...,
        max_sessions: int = ...,
        memory: int = ...,
        sessions_per_address: int = ...,
        half_open: int = ...,
        half_open_per_address: int = ...,
        accepts_per_second: int = ...,
        accept_burst: int = ...,
        challenges_per_second: int = ...,
        refusals_per_second: int = ...,
        deny_protocol: bool = ...,
        ask: bool = ...,
        migration: bool = ...,
        proxies: list[str] = ...,
        routing_token: int = ...,
    ) -> ServerConfig:
        """For clients with a connect token that ``key`` has made."""

    @staticmethod
    def insecure(
        session: SessionConfig,
        *,
        user: _Bytes = ...,
        max_sessions: int = ...,
        memory: int = ...,
        sessions_per_address: int = ...,
        half_open: int = ...,
        half_open_per_address: int = ...,
        accepts_per_second: int = ...,
        accept_burst: int = ...,
        challenges_per_second: int = ...,
        refusals_per_second: int = ...,
        deny_protocol: bool = ...,
        ask: bool = ...,
        migration: bool = ...,
        proxies: list[str] = ...,
        routing_token: int = ...,
    ) -> ServerConfig:
        """Without encryption: for local networks and tests."""

@final
class Stats:
    """What one end of a session has counted, and its state. Times are in seconds."""

    @property
    def rtt(self) -> float:
        """Round trip, smoothed; 0 before the first."""

    @property
    def rttvar(self) -> float: ...
    @property
    def rtt_min(self) -> float: ...
    @property
    def loss(self) -> float | None:
        """Share of the packets sent in the last 10 s that got lost, 0 to 1. ``None``: fewer than 50, so it is unknown."""

    @property
    def packets_judged(self) -> int:
        """Packets sent of which it is known whether they arrived."""

    @property
    def packets_lost(self) -> int: ...
    @property
    def sent(self) -> int:
        """Datagrams."""

    @property
    def bytes_sent(self) -> int: ...
    @property
    def received(self) -> int:
        """Datagrams that were authentic and new."""

    @property
    def bytes_received(self) -> int: ...
    @property
    def rejected(self) -> int:
        """Datagrams dropped, and parts of datagrams."""

    @property
    def resent(self) -> int:
        """Segments that were sent again."""

    @property
    def repairs_sent(self) -> int: ...
    @property
    def rebuilt(self) -> int:
        """What was lost and rebuilt here from repairs."""

    @property
    def moves(self) -> int:
        """How often the peer has moved to another address."""

    @property
    def memory(self) -> int:
        """Bytes that the session holds."""

    @property
    def mtu(self) -> int: ...

@final
class ServerStats:
    """What a server has counted."""

    @property
    def sessions(self) -> int:
        """Sessions now: asked for, not confirmed, up, and just over."""

    @property
    def datagrams(self) -> int:
        """Datagrams received."""

    @property
    def bytes_received(self) -> int: ...
    @property
    def datagrams_sent(self) -> int: ...
    @property
    def bytes_sent(self) -> int: ...
    @property
    def dropped(self) -> int: ...
    @property
    def accepted(self) -> int: ...
    @property
    def confirmed(self) -> int: ...
    @property
    def unconfirmed(self) -> int: ...
    @property
    def denials(self) -> int: ...
    @property
    def memory(self) -> int: ...

# What the package is made of: not for programs.

@final
class Link:
    def send(self, message: _Bytes, channel: int | Channel) -> bool: ...
    def send_end(self, channel: int | Channel) -> bool: ...
    def recv(self, channel: int | Channel) -> bytes | None: ...
    def is_readable(self, channel: int | Channel) -> bool: ...
    def send_datagram(self, datagram: _Bytes) -> bool: ...
    def recv_datagram(self) -> bytes | None: ...
    def is_delivered(self, channel: int | Channel) -> bool: ...
    def is_connected(self) -> bool: ...
    def close(self, code: int, text: str) -> None: ...
    def kick(self, code: int, text: str) -> None: ...
    def redirect(self, token: _Bytes) -> None: ...
    def claims(self) -> Claims | None: ...
    def peer_address(self) -> _Address | None: ...
    def user(self) -> bytes: ...
    def stats(self) -> Stats | None: ...
    @property
    def id(self) -> int: ...

@final
class Endpoint:
    @staticmethod
    def connect(addresses: list[_Address], config: ClientConfig) -> Endpoint: ...
    @staticmethod
    def bind(host: str, port: int, config: ServerConfig) -> Endpoint: ...
    def pump(self) -> tuple[float | None, list[tuple[int, int, Any]]]: ...
    def fileno(self) -> int: ...
    def local_address(self) -> _Address: ...
    def link(self) -> Link: ...
    def ticket(self) -> bytes: ...
    def path_changed(self) -> None: ...
    def request(self, session: int) -> tuple[_Address, bytes, Claims | None] | None: ...
    def admit(self, session: int, user: _Bytes) -> None: ...
    def reject(self, session: int, code: int, user: _Bytes) -> None: ...
    def broadcast(self, message: _Bytes, channel: int | Channel, but: int | None) -> list[int]: ...
    def shut_down(self, code: int) -> bool: ...
    def rotate(self, key: ServerKey) -> None: ...
    def stats(self) -> ServerStats: ...
    def abandon(self) -> None: ...
