"""A client's session over a UDP socket: connects, then sends and receives frames."""

import os
import select
import socket
import time

import datagrams
import frames
import handshake
import kem
from fields import Refused
from kcp import Kcp
from seal import Opener, Sealer, in_clear

DATAGRAM_MAX = 1200
KCP_LESS = 28  # how much shorter a KCP frame is than the longest datagram
RESEND_SECONDS = 0.1
MASKS = 4  # the bit of the features
BYTES = 0x48bfd42b6d1a6ae1  # FNV-1a of "bytes" and 0xff, the type of messages that are bytes
ORDERED = [(0, BYTES, (0, 0, 1 << 20))]  # one channel, ordered, of bytes


class NoAnswer(Exception):
    """The server gave no valid answer."""


def connected(server: tuple[str, int]) -> socket.socket:
    new = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    new.connect(server)
    return new


def arriving(of: socket.socket, seconds: float):
    """The datagrams that arrive within this time."""
    end = time.monotonic() + seconds
    while select.select([of], [], [], max(0, end - time.monotonic()))[0]:
        yield of.recv(2048)


def ask(of: socket.socket, question: bytes, decode, seconds: float):
    """Resends `question` until a datagram arrives that `decode` accepts."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        of.send(question)
        for datagram in arriving(of, RESEND_SECONDS):
            try:
                return decode(datagram)
            except Refused:
                pass
    raise NoAnswer


class Session:
    """A connected session. `accepted` is what the server sent in the handshake."""

    def __init__(self, server: tuple[str, int], suite: int, protocol_id: int, secrets, token: bytes = b"", seconds=5.0, channels=ORDERED):
        self.socket = connected(server)
        cid, client_sid = (int.from_bytes(os.urandom(n), "little") for n in (8, 4))
        self.attempt = handshake.Attempt(suite, protocol_id, cid, client_sid, token)
        self.acked: set[int] = set()
        self.paths_asked = 0
        self.updates = 0  # of our key
        self.tokens: dict[int, bytes] = {}  # the numbers that the server has told, and their reset tokens
        self.used: set[int] = set()
        self.connect(secrets, seconds, handshake.shape(channels))

    def connect(self, secrets, seconds: float, shape: bytes) -> None:
        attempt = self.attempt
        question = self.question(secrets, seconds, shape)
        end = self.end
        accept = ask(self.socket, question, datagrams.Accept.decode, seconds)
        assert (accept.suite, accept.cid) == (attempt.suite, attempt.cid), accept
        self.accepted = handshake.Msg2.decode(end.read(accept.msg2))
        if attempt.suite & datagrams.HYBRID:
            self.socket.send(end.encapsulate(self.kem_key(seconds), self.accepted.server_sid))
        out, back = end.protection()
        mask = out.mask() if self.accepted.features & MASKS else in_clear
        self.sealer = Sealer(out, self.accepted.server_sid, mask)
        self.opener = Opener(back, attempt.client_sid, mask)
        self.kcp = Kcp(self.accepted.server_sid, min(DATAGRAM_MAX, self.accepted.max_datagram) - KCP_LESS)

    def kem_key(self, seconds: float) -> datagrams.KemKey:
        """The key that follows the ACCEPT."""
        for datagram in arriving(self.socket, seconds):
            try:
                return datagrams.KemKey.decode(datagram)
            except Refused:
                pass
        raise NoAnswer

    def question(self, secrets, seconds: float, shape: bytes) -> bytes:
        """A CONNECT with a good cookie."""
        attempt = self.attempt
        self.end = (kem.Hybrid if attempt.suite & datagrams.HYBRID else handshake.end)(attempt, secrets, True)
        hello = datagrams.Hello(attempt.suite, attempt.protocol_id, attempt.cid, stamp=int(time.time()) % 2**32)
        challenge = ask(self.socket, hello.encode(DATAGRAM_MAX), datagrams.Challenge.decode, seconds)
        assert (challenge.suite, challenge.cid, challenge.stamp) == (hello.suite, hello.cid, hello.stamp), challenge
        numbers = (attempt.suite, attempt.protocol_id, attempt.cid, challenge.epoch, challenge.cookie)
        msg1 = self.end.write(handshake.Msg1(features=MASKS, shape=shape).encode())
        return datagrams.Connect(*numbers, attempt.client_sid, attempt.token, msg1).encode()

    def rebind(self) -> None:
        """Continues from another port, and with other numbers if there are some."""
        if spare := self.tokens.keys() - self.used:
            self.sealer.sid = min(spare)
            self.opener.sid = self.sealer.mask.sid_for(self.sealer.sid)
            self.used.add(self.sealer.sid)
        server = self.socket.getpeername()
        self.socket.close()
        self.socket = connected(server)

    def send(self, *of_frames: tuple[int, bytes]) -> bytes:
        """Sends one packet and returns its datagram."""
        datagram = self.sealer.seal(frames.encode(list(of_frames)))
        self.socket.send(datagram)
        return datagram

    def take(self, seconds: float) -> list[tuple[int, bytes]]:
        """Receives one packet and returns its frames, except those that are handled here, such as ACK and KCP."""
        now = int(time.monotonic() * 1000)
        for segments in self.kcp.output(now):
            self.send((frames.KCP, segments))
        for datagram in arriving(self.socket, seconds):
            try:
                number, body = self.opener.open(datagram)
                found = frames.decode(body)
            except Refused:
                continue
            if found and found[0][0] == frames.COPY:
                number -= 1
                if number in self.opener.opened:
                    continue
                self.opener.opened.add(number)
            return [frame for frame in found if not self.deal(number, *frame)]
        return []

    def deal(self, number: int, kind: int, content: bytes) -> bool:
        if kind == frames.KCP:
            self.kcp.input(content)
        elif kind == frames.ACK:
            self.acked |= frames.acked(content, self.sealer.number - 1)
        elif kind == frames.PING:
            self.send((frames.PONG, content))
        elif kind == frames.PATH_CHALLENGE:
            self.send((frames.PATH_RESPONSE, content))
            self.paths_asked += 1
        elif kind == frames.NEW_ID:
            self.tokens[int.from_bytes(content[:4], "little")] = content[4:]
            self.send(frames.ack(number, self.opener.opened))
        elif kind == frames.COPY:
            pass
        elif kind == frames.DGRAM:
            self.send(frames.ack(number, self.opener.opened))
            return False
        else:
            return False
        return True

    def until(self, kind: int, content: bytes | None = None, seconds: float = 5.0) -> bytes:
        """Receives packets until such a frame arrives, and returns its content."""
        return self.wait(lambda found: [c for k, c in found if k == kind and content in (None, c)], seconds)[0]

    def wait(self, wanted, seconds: float = 5.0):
        """Receives packets until `wanted` returns something for the frames of one, or for no frames."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if result := wanted(self.take(0.02)):
                return result
        raise NoAnswer
