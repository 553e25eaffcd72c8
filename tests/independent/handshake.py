"""The two messages of the handshake, their payloads, and the resulting keys."""

import os
import warnings
import zlib
from dataclasses import dataclass

from datagrams import HYBRID, VERSION
from fields import Reader, le, require
from noise.connection import Keypair, NoiseConnection
from primitives import siphash128
from seal import Checksum, Cipher

CHECKED = 0x0000
PATTERNS = {1: "NN", 2: "NNpsk0", 3: "NK", 4: "NKpsk0"}
CIPHERS = {1: "ChaChaPoly", 2: "AESGCM"}


@dataclass
class Msg1:
    features: int = 0
    max_datagram: int = 1200
    rcv_wnd: int = 128
    keepalive_ms: int = 500
    user: bytes = b""
    shape: bytes = b""

    def encode(self) -> bytes:
        head = le(self.features, 4) + b"".join(le(n, 2) for n in (self.max_datagram, self.rcv_wnd, self.keepalive_ms))
        return head + le(len(self.shape), 2) + le(len(self.user), 2) + le(0, 2) + self.user + self.shape

    @classmethod
    def decode(cls, payload: bytes):
        reader = Reader(payload)
        numbers = [reader.uint(n) for n in (4, 2, 2, 2)]
        shape_length, length = reader.uint(2), reader.uint(2)
        reader.zeros(2)
        require(length <= 256, "more than 256 bytes of the application's own")
        short = shape_length - 8
        require(shape_length == 0 or (0 <= short <= 240 and short % 3 == 0), "length of the channels")
        user, shape = reader.take(length), reader.take(shape_length)
        reader.end()
        return cls(*numbers, user, shape)


def shape(channels: list[tuple[int, int, tuple[int, int, int]]]) -> bytes:
    """A hash of all channels, and each in short: the number of its kind, of the type of its messages, its knobs."""
    whole, short = b"", b""
    for kind, messages, knobs in channels:
        of_messages, of_knobs = le(messages, 8), b"".join(le(knob, 4) for knob in knobs)
        whole += le(kind, 1) + of_messages + of_knobs
        short += le(kind, 1) + siphash128(bytes(16), of_messages)[:1] + siphash128(bytes(16), of_knobs)[:1]
    return siphash128(bytes(16), whole)[:8] + short


@dataclass
class Msg2:
    server_sid: int
    features: int
    max_datagram: int
    rcv_wnd: int
    keepalive_ms: int
    rejected: int | None
    reset_token: bytes
    user: bytes
    ticket: bytes | None = None

    def encode(self) -> bytes:
        numbers = (self.max_datagram, self.rcv_wnd, self.keepalive_ms)
        head = le(self.server_sid, 4) + le(self.features, 4) + b"".join(le(n, 2) for n in numbers)
        flags = le(0 if self.ticket is None else 2, 2) if self.rejected is None else le(1, 2) + le(self.rejected, 2)
        return head + flags + self.reset_token + (self.ticket or b"") + self.user

    @classmethod
    def decode(cls, payload: bytes):
        reader = Reader(payload)
        numbers = [reader.uint(n) for n in (4, 4, 2, 2, 2)]
        flags = reader.uint(2)
        require(flags in (0, 1, 2) and (numbers[0] == 0) == (flags == 1), "flags, or sid")
        rejected = reader.uint(2) if flags == 1 else None
        reset_token = reader.take(16)
        ticket = reader.take(20) if flags == 2 else None
        require(len(reader.data) <= 256, "more than 256 bytes of the application's own")
        return cls(*numbers, rejected, reset_token, reader.rest(), ticket)


@dataclass
class Attempt:
    """What both ends must agree on."""

    suite: int
    protocol_id: int
    cid: int
    client_sid: int
    token: bytes = b""

    def prologue(self) -> bytes:
        numbers = le(VERSION, 1) + le(self.suite, 2) + le(self.protocol_id, 8) + le(self.cid, 8)
        numbers += le(self.client_sid, 4)
        return b"whitewater/1\0" + numbers + self.token

    def pattern(self) -> int:
        return (self.suite & ~HYBRID) >> 8

    def needs_psk(self) -> bool:
        return self.pattern() in (2, 4)

    def needs_server_key(self) -> bool:
        return self.pattern() in (3, 4)


@dataclass
class Secrets:
    """What an end brings to the handshake. Fields that the suite does not need are ignored."""

    psk: bytes = b""
    server_private: bytes | None = None  # at the server
    server_public: bytes | None = None  # at the client
    random: bytes | None = None  # instead of 32 random bytes, for vectors


class Noise:
    """One end. The client writes msg1 and reads msg2; the server reads msg1 and writes msg2."""

    def __init__(self, attempt: Attempt, secrets: Secrets, is_client: bool):
        self.cipher = CIPHERS[attempt.suite & 0xFF]
        name = f"Noise_{PATTERNS[attempt.pattern()]}_25519_{self.cipher}_BLAKE2s"
        self.noise = NoiseConnection.from_name(name.encode())
        (self.noise.set_as_initiator if is_client else self.noise.set_as_responder)()
        self.noise.set_prologue(attempt.prologue())
        if attempt.needs_psk():
            self.noise.set_psks(psk=secrets.psk)
        if attempt.needs_server_key() and is_client:
            self.noise.set_keypair_from_public_bytes(Keypair.REMOTE_STATIC, secrets.server_public)
        elif attempt.needs_server_key():
            self.noise.set_keypair_from_private_bytes(Keypair.STATIC, secrets.server_private)
        if secrets.random:
            self.noise.set_keypair_from_private_bytes(Keypair.EPHEMERAL, secrets.random)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns that the ephemeral key is not random
            self.noise.start_handshake()

    def write(self, payload: bytes) -> bytes:
        return bytes(self.noise.write_message(payload))

    def read(self, message: bytes) -> bytes:
        return bytes(self.noise.read_message(message))

    def protection(self) -> tuple:
        """The ciphers that seal our packets and open those of the peer."""
        protocol = self.noise.noise_protocol
        keys = (protocol.cipher_state_encrypt.k, protocol.cipher_state_decrypt.k)
        return tuple(Cipher(self.cipher, key) for key in keys)


class Salts:
    """Suite 0: 8 random bytes, the payload in the clear, and a checksum over everything exchanged so far."""

    def __init__(self, attempt: Attempt, secrets: Secrets, _is_client: bool):
        self.protocol_id, self.said = attempt.protocol_id, attempt.prologue()
        self.own = (secrets.random or os.urandom(8))[:8]
        self.peers = bytes(8)

    def checksum(self, message: bytes) -> bytes:
        self.said += message
        return le(zlib.crc32(self.said), 4)

    def write(self, payload: bytes) -> bytes:
        return self.own + payload + self.checksum(self.own + payload)

    def read(self, message: bytes) -> bytes:
        content = message[:-4]
        require(self.checksum(content) == message[-4:], "checksum")
        self.peers = Reader(content).take(8)
        return content[8:]

    def protection(self) -> tuple:
        salt = bytes(a ^ b for a, b in zip(self.own, self.peers))
        return (Checksum(salt, self.protocol_id),) * 2


def end(attempt: Attempt, secrets: Secrets, is_client: bool):
    return (Salts if attempt.suite == CHECKED else Noise)(attempt, secrets, is_client)
