"""Every kind of datagram except DATA: "HELLO and CHALLENGE", "CONNECT and ACCEPT", "Hybrid suites", "DENY and RESET"."""

from dataclasses import dataclass

from fields import Reader, le, require

HELLO, CHALLENGE, CONNECT, ACCEPT, DENY, DATA, DATA_1, RESET, KEM_KEY, KEM_CIPHERTEXT = range(0xA1, 0xAB)
VERSION = 1
LONGEST = 1200  # except DATA
HYBRID = 0x8000  # the bit of the number of a suite
NO_PROOF = 0xFFFFFFFF  # the epoch of a CONNECT that is the first datagram


@dataclass
class Hello:
    suite: int
    protocol_id: int
    cid: int
    stamp: int

    def encode(self, size: int) -> bytes:
        head = le(HELLO, 1) + le(VERSION, 1) + le(self.suite, 2) + le(self.protocol_id, 8)
        return (head + le(self.cid, 8) + le(self.stamp, 4)).ljust(size, b"\0")

    @classmethod
    def decode(cls, datagram: bytes):
        reader = expect(datagram, HELLO)
        require(512 <= len(datagram) <= LONGEST, "length")
        hello = cls(*(reader.uint(n) for n in (2, 8, 8, 4)))
        reader.zeros(len(reader.data))
        return hello


@dataclass
class Challenge:
    suite: int
    cid: int
    stamp: int
    epoch: int
    cookie: bytes

    def encode(self) -> bytes:
        head = le(CHALLENGE, 1) + le(VERSION, 1) + le(self.suite, 2) + le(self.cid, 8)
        return head + le(self.stamp, 4) + le(self.epoch, 4) + self.cookie

    @classmethod
    def decode(cls, datagram: bytes):
        reader = expect(datagram, CHALLENGE)
        challenge = cls(*(reader.uint(n) for n in (2, 8, 4, 4)), reader.take(16))
        reader.end()
        return challenge


def least(suite: int, epoch: int) -> int:
    """How long a CONNECT is at least: padded with a hybrid suite, without a proof, and with a ticket as its proof."""
    return LONGEST if suite & HYBRID or epoch == NO_PROOF else 512 if epoch >> 31 else 0


@dataclass
class Connect:
    suite: int
    protocol_id: int
    cid: int
    epoch: int
    cookie: bytes
    client_sid: int
    token: bytes
    msg1: bytes

    def encode(self) -> bytes:
        head = le(CONNECT, 1) + le(VERSION, 1) + le(self.suite, 2) + le(self.protocol_id, 8) + le(self.cid, 8)
        proof = le(self.epoch, 4) + self.cookie + le(self.client_sid, 4)
        connect = head + proof + le(len(self.token), 2) + self.token + le(len(self.msg1), 2) + self.msg1
        return connect.ljust(least(self.suite, self.epoch), b"\0")

    @classmethod
    def decode(cls, datagram: bytes):
        reader = expect(datagram, CONNECT)
        suite, protocol_id, cid, epoch = (reader.uint(n) for n in (2, 8, 8, 4))
        cookie, client_sid = reader.take(16), reader.uint(4)
        require(epoch != NO_PROOF or cookie == bytes(16), "cookie")
        token = reader.take(reader.uint(2))
        require(len(token) <= 512, "token")
        msg1 = reader.take(reader.uint(2))
        if least(suite, epoch):
            content = len(datagram) - len(reader.data)
            require(len(datagram) == max(content, least(suite, epoch)), "length of a padded CONNECT")
            reader.zeros(len(reader.data))
        return cls(suite, protocol_id, cid, epoch, cookie, client_sid, token, whole(reader, msg1))


@dataclass
class Accept:
    suite: int
    cid: int
    msg2: bytes

    def encode(self) -> bytes:
        head = le(ACCEPT, 1) + le(VERSION, 1) + le(self.suite, 2) + le(self.cid, 8)
        return head + le(len(self.msg2), 2) + self.msg2

    @classmethod
    def decode(cls, datagram: bytes):
        reader = expect(datagram, ACCEPT)
        suite, cid = reader.uint(2), reader.uint(8)
        return cls(suite, cid, message(reader))


@dataclass
class Deny:
    versions: tuple[int, int]  # lowest, highest
    why: int
    cid: int
    retry_ms: int

    @classmethod
    def decode(cls, datagram: bytes):
        reader = Reader(datagram)
        require(reader.uint(1) == DENY, "kind")
        versions = reader.uint(1)
        why, cid, retry_ms = (reader.uint(n) for n in (2, 8, 4))
        require(1 <= why <= 6 and 1 <= versions >> 4 <= versions & 15, "why, or versions")
        reader.end()
        return cls((versions >> 4, versions & 15), why, cid, retry_ms)

    def encode(self) -> bytes:
        lowest, highest = self.versions
        return le(DENY, 1) + le(lowest << 4 | highest, 1) + le(self.why, 2) + le(self.cid, 8) + le(self.retry_ms, 4)


@dataclass
class Reset:
    sid: int
    token: bytes

    @classmethod
    def decode(cls, datagram: bytes):
        reader = Reader(datagram)
        require(reader.uint(1) == RESET, "kind")
        reset = cls(reader.uint(4), reader.take(16))
        reader.end()
        return reset

    def encode(self) -> bytes:
        return le(RESET, 1) + le(self.sid, 4) + self.token


@dataclass
class KemKey:
    cid: int
    key: bytes

    @classmethod
    def decode(cls, datagram: bytes):
        reader = expect(datagram, KEM_KEY)
        taken = cls(reader.uint(8), reader.take(1184))
        reader.end()
        return taken

    def encode(self) -> bytes:
        return le(KEM_KEY, 1) + le(VERSION, 1) + le(self.cid, 8) + self.key


@dataclass
class KemCiphertext:
    sid: int
    sealed: bytes

    @classmethod
    def decode(cls, datagram: bytes):
        reader = Reader(datagram)
        require(reader.uint(1) == KEM_CIPHERTEXT, "kind")
        taken = cls(reader.uint(4), reader.take(1088 + 16))
        reader.end()
        return taken

    def encode(self) -> bytes:
        return le(KEM_CIPHERTEXT, 1) + le(self.sid, 4) + self.sealed


def message(reader: Reader) -> bytes:
    """The last field: msg1 or msg2."""
    return whole(reader, reader.take(reader.uint(2)))


def whole(reader: Reader, found: bytes) -> bytes:
    reader.end()
    require(28 <= len(found) <= 568, "length of a message")
    return found


def expect(datagram: bytes, kind: int) -> Reader:
    reader = Reader(datagram)
    require(reader.uint(1) == kind and reader.uint(1) == VERSION, "kind, or version")
    return reader
