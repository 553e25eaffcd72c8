"""Turns a body into a DATA packet and back: "DATA"."""

import hashlib
import hmac
import zlib

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
from datagrams import DATA
from fields import Reader, Refused, le, require
from primitives import siphash128

HEADER = 9
REPLAY_WINDOW = 1024


class Cipher:
    """The key of one direction."""

    overhead = 16

    def __init__(self, name: str, key: bytes):
        self.name, self.key = name, key
        self.aead = {"ChaChaPoly": ChaCha20Poly1305, "AESGCM": AESGCM}[name](key)

    def nonce(self, number: int) -> bytes:
        return bytes(4) + number.to_bytes(8, "little" if self.name == "ChaChaPoly" else "big")

    def seal(self, number: int, header: bytes, body: bytes) -> bytes:
        return header + self.aead.encrypt(self.nonce(number), body, header)

    def open(self, number: int, datagram: bytes) -> bytes:
        try:
            return self.aead.decrypt(self.nonce(number), datagram[HEADER:], datagram[:HEADER])
        except InvalidTag:
            raise Refused("tag") from None

    def next(self):
        """Noise revision 34, section 4.2: REKEY(k) is ENCRYPT(k, 2^64 - 1, zerolen, 32 zeros) without the tag."""
        return Cipher(self.name, self.aead.encrypt(self.nonce(2**64 - 1), bytes(32), b"")[:32])


    def mask(self):
        """The masks over the headers of a session, if this is its first key of packets to the server: "Masks"."""
        return Mask(self.aead.encrypt(self.nonce(2**64 - 2), bytes(32), b"")[:16])


def half(private: bytes) -> bytes:
    """What a REKEY tells of a private key."""
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def exchanged(now: list[Cipher], private: bytes, theirs: bytes, is_client: bool) -> list[Cipher]:
    """The ciphers of packets to the server and to the client after an exchange: "DATA"."""
    shared = X25519PrivateKey.from_private_bytes(private).exchange(X25519PublicKey.from_public_bytes(theirs))
    ours = half(private)
    halves = ours + theirs if is_client else theirs + ours
    secret = hmac.digest(now[0].key, now[1].key + shared + halves, hashlib.blake2s)
    first = hmac.digest(secret, b"\1", hashlib.blake2s)
    second = hmac.digest(secret, first + b"\2", hashlib.blake2s)
    return [Cipher(now[0].name, key) for key in (first, second)]


class Mask:
    def __init__(self, key: bytes):
        self.key = key

    def __call__(self, datagram: bytes) -> bytes:
        """Puts the mask on, or takes it off."""
        require(len(datagram) >= HEADER + 16, "a packet without a sample")
        mask = siphash128(self.key, datagram[HEADER : HEADER + 16])
        masked = bytes([mask[0] & 1, 0, 0, 0, 0]) + mask[1:5]
        return bytes(a ^ b for a, b in zip(datagram, masked)) + datagram[HEADER:]

    def sid_for(self, sid: int) -> int:
        """The sid of packets to the client while those to the server have a `sid` that was told."""
        return int.from_bytes(siphash128(self.key, le(sid, 4))[:4], "little")


class Checksum:
    """Suite 0, for both directions."""

    overhead = 4

    def __init__(self, salt: bytes, protocol_id: int):
        self.before = salt + le(protocol_id, 8)

    def seal(self, _number: int, header: bytes, body: bytes) -> bytes:
        return header + body + le(zlib.crc32(self.before + header + body), 4)

    def open(self, number: int, datagram: bytes) -> bytes:
        body = datagram[HEADER:-4]
        require(datagram == self.seal(number, datagram[:HEADER], body), "checksum")
        return body

    def next(self):
        raise Refused("a key phase, without keys")

    def mask(self):
        return in_clear


def in_clear(datagram: bytes) -> bytes:
    return datagram


class Sealer:
    """Seals our packets for the session that the peer calls `sid`."""

    def __init__(self, protection, sid: int, mask=in_clear):
        self.protection, self.sid, self.mask = protection, sid, mask
        self.number, self.phase = 0, 0

    def seal(self, body: bytes) -> bytes:
        header = le(DATA + self.phase, 1) + le(self.sid, 4) + le(self.number % 2**32, 4)
        self.number += 1
        return self.mask(self.protection.seal(self.number - 1, header, body))

    def update(self, agreed=None) -> None:
        self.protection, self.phase = agreed or self.protection.next(), 1 - self.phase


class Opener:
    """Opens the peer's packets for the session that we call `sid`."""

    def __init__(self, protection, sid: int, mask=in_clear):
        self.protection, self.sid, self.mask = protection, sid, mask
        self.last, self.phase = protection, 0
        self.agreed = None  # the next protection, if an exchange has made it
        self.highest, self.opened = -1, set()

    def open(self, datagram: bytes) -> tuple[int, bytes]:
        """Returns the packet number and the body. A refused packet changes nothing."""
        datagram = self.mask(datagram)
        reader = Reader(datagram)
        phase, sid, low = reader.uint(1) - DATA, reader.uint(4), reader.uint(4)
        require(phase in (0, 1) and sid == self.sid, "kind, or sid")
        number = nearest(low, self.highest + 1)
        require(number > self.highest - REPLAY_WINDOW and number not in self.opened, "a number that came before")
        if phase == self.phase:
            body = self.protection.open(number, datagram)
        elif number > self.highest:
            following = self.agreed or self.protection.next()
            body = following.open(number, datagram)
            self.last, self.protection, self.phase, self.agreed = self.protection, following, phase, None
        else:
            body = self.last.open(number, datagram)
        self.opened.add(number)
        self.highest = max(self.highest, number)
        return number, body


def nearest(low: int, expected: int) -> int:
    """The number with these low 32 bits that is nearest to the expected one; in a tie, the higher."""
    candidates = [(expected >> 32) + epoch for epoch in (-1, 0, 1)]
    numbers = [epoch << 32 | low for epoch in candidates if epoch >= 0]
    return min(numbers, key=lambda number: (abs(number - expected), -number))
