"""Connect tokens: "Connect tokens"."""

import hashlib
import ipaddress
from dataclasses import dataclass

from cryptography.exceptions import InvalidTag
from fields import Reader, Refused, le, require
from primitives import XChaCha20Poly1305

SEALED, CONTENT, USER = 384, 324, 256


def server_key(fleet_key: bytes, server_id: int, key_id: int) -> bytes:
    return hashlib.blake2s(b"ww/1 token" + le(server_id, 8) + le(key_id, 1), key=fleet_key).digest()


@dataclass
class Token:
    """The part of a token for the server."""

    key_id: int
    suite: int
    server_id: int
    expires: int
    client: int
    psk: bytes
    created: int
    match: bytes
    user: bytes

    def seal(self, key: bytes, protocol_id: int, nonce: bytes) -> bytes:
        head = le(1, 1) + le(self.key_id, 1) + le(self.suite, 2) + le(self.server_id, 8) + le(self.expires, 8)
        content = le(self.client, 8) + self.psk + le(self.created, 8) + self.match + le(0, 2) + le(len(self.user), 2)
        associated = b"ww/1 token" + le(protocol_id, 8) + head
        return head + nonce + XChaCha20Poly1305(key).encrypt(nonce, content + self.user.ljust(USER, b"\0"), associated)

    @classmethod
    def open(cls, sealed: bytes, key: bytes, protocol_id: int):
        require(len(sealed) == SEALED, "length")
        reader = Reader(sealed)
        require(reader.uint(1) == 1, "version")
        key_id, suite, server_id, expires = (reader.uint(n) for n in (1, 2, 8, 8))
        nonce, associated = reader.take(24), b"ww/1 token" + le(protocol_id, 8) + sealed[:20]
        try:
            content = Reader(XChaCha20Poly1305(key).decrypt(nonce, reader.rest(), associated))
        except InvalidTag:
            raise Refused("tag") from None
        client, psk, created, match = content.uint(8), content.take(32), content.uint(8), content.take(16)
        content.zeros(2)
        length = content.uint(2)
        require(length <= USER and created < expires, "content")
        user = content.take(length)
        content.zeros(USER - length)
        return cls(key_id, suite, server_id, expires, client, psk, created, match, user)


@dataclass
class ClientPart:
    """The part of a token for the client."""

    protocol_id: int
    suite: int
    created: int
    expires: int
    psk: bytes
    server_public: bytes | None
    addresses: list[tuple[str, int]]
    routing_token: bytes
    sealed: bytes

    @classmethod
    def decode(cls, data: bytes):
        reader = Reader(data)
        require(reader.take(4) == b"WWT1", "magic")
        protocol_id, suite, flags, count, created, expires = (reader.uint(n) for n in (8, 2, 1, 1, 8, 8))
        has_key, is_routed = flags & 1, flags & 2
        require(flags < 4 and has_key == (suite >> 8 & 0x7F == 4) and 1 <= count <= 4, "key, or number of addresses")
        psk = reader.take(32)
        server_public = reader.take(32) if has_key else None
        addresses = [address(reader) for _ in range(count)]
        routing_token = reader.take(reader.uint(1)) if is_routed else b""
        require(not is_routed or 1 <= len(routing_token) <= 20, "routing token")
        sealed = reader.take(SEALED)
        reader.end()
        return cls(protocol_id, suite, created, expires, psk, server_public, addresses, routing_token, sealed)


def address(reader: Reader) -> tuple[str, int]:
    family = reader.uint(1)
    require(family in (4, 6), "family")
    ip, port = ipaddress.ip_address(reader.take(4 if family == 4 else 16)), reader.uint(2)
    require(port != 0, "port")
    return str(ip), port
