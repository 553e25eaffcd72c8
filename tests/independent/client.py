"""Talks WW/1 to an echo server in every suite, and prints what was checked.

client.py PORT PORT_WITH_TOKENS PSK SERVER_PUBLIC FLEET_KEY, with keys in hex. The server on the first port accepts every suite
and echoes datagrams and messages of channel 0; on "close" it closes the session. The server on the second port accepts only connect
tokens; on "who" it says whose token it was.
"""

import os
import sys
import time

import datagrams
import frames
import handshake
from fields import le
from seal import exchanged, half
from session import BYTES, NoAnswer, ORDERED, Session, ask, connected
from token_bytes import Token, server_key

PROTOCOL_ID, SERVER_ID = 7, 5
SHAPE = 0xFF07  # other channels
REPLACED = 0xFF05  # the same client has connected with a newer token
NOISE = [pattern << 8 | cipher for pattern in handshake.PATTERNS for cipher in handshake.CIPHERS]
SUITES = [0x0000] + NOISE + [datagrams.HYBRID | suite for suite in NOISE]


def ping(session: Session, number: int) -> bytes:
    """Sends a PING, waits for its PONG, and returns the datagram with the PING."""
    content = number.to_bytes(8, "little")
    datagram = session.send((frames.PING, content))
    session.until(frames.PONG, content)
    return datagram


def datagram(session: Session, text: bytes) -> None:
    """Sends an unreliable datagram and waits for its echo and its acknowledgement."""
    number = session.sealer.number
    session.send((frames.DGRAM, text))
    session.until(frames.DGRAM, text)
    session.wait(lambda _: number in session.acked)


def message(session: Session, size: int) -> None:
    """Sends a message of several fragments on channel 0 and checks its echo."""
    text = bytes(index * 7 % 251 for index in range(size))
    assert size > 3 * session.kcp.mss
    session.kcp.send(text)
    assert session.wait(lambda _: session.kcp.messages) == [text]
    session.wait(lambda _: session.kcp.idle())
    session.kcp.messages.clear()


def changed_or_repeated(session: Session, old: bytes) -> None:
    """Duplicate and damaged packets get no answer: the first answer is the one to a later PING."""
    session.socket.send(old)
    for at in (0, 1, 5, 9, len(old) - 1):
        damaged = bytearray(session.sealer.seal(frames.encode([(frames.PING, bytes(8))])))
        damaged[at] ^= 1
        session.socket.send(damaged)
    session.send((frames.PING, b"after it"))
    answers = session.wait(lambda found: [c for k, c in found if k == frames.PONG])
    assert answers == [b"after it"], answers


def update(session: Session, agreed=None) -> None:
    """Updates our key; the server follows with an update of its own."""
    session.sealer.update(agreed)
    session.updates += 1
    ping(session, 1000 + session.sealer.phase)
    assert session.opener.phase == session.sealer.phase


def exchange(session: Session) -> None:
    """Both ends get keys that nobody can compute from those of before. The server answers once a second has passed."""
    private, phase = os.urandom(32), le(session.updates + 1, 2)
    now, answers = [session.sealer.protection, session.opener.protection], []
    while not answers:
        session.send((frames.REKEY, phase + half(private)), (frames.PING, b"an offer"))
        answers = [content for kind, content in session.take(0.25) if kind == frames.REKEY]
    assert answers[0][:2] == phase, answers
    to_server, session.opener.agreed = exchanged(now, private, answers[0][2:], is_client=True)
    update(session, to_server)


def move(session: Session) -> None:
    """The session continues on another port, under other numbers, once that port has answered the challenge."""
    session.wait(lambda _: len(session.tokens) >= 2)
    told = dict(session.tokens)
    session.rebind()
    assert session.sealer.sid in told and session.sealer.sid != session.accepted.server_sid
    session.send((frames.PING, b"from new"))
    session.wait(lambda _: session.paths_asked > 0)
    message(session, 4000)
    ping(session, 2)
    session.wait(lambda _: session.tokens[session.sealer.sid] != told[session.sealer.sid] or session.send((frames.PING, bytes(8))) and None)


def close(session: Session) -> None:
    """The server answers a CLOSE with a CLOSE, and after that answers nothing."""
    session.send(frames.close(1000, "good bye"))
    session.until(frames.CLOSE)
    session.send((frames.PING, bytes(8)))
    assert session.take(0.1) == [], "a closed session answers"


def whole(session: Session) -> None:
    """Everything that a session does, in one run."""
    assert session.accepted.rejected is None and session.accepted.server_sid != 0
    first = ping(session, 1)
    datagram(session, b"a datagram")
    for size in (5000, 16_383, 16_384, 16_385, 40_000):
        message(session, size)
    changed_or_repeated(session, first)
    if session.attempt.suite != handshake.CHECKED:
        for _ in range(3):
            update(session)
            message(session, 4000)
        exchange(session)
        message(session, 4000)
        move(session)
    datagram(session, b"x" * 1100)
    close(session)


def closed_by_server(session: Session) -> None:
    """On request the server closes the session, with the code 7."""
    session.send((frames.DGRAM, b"close"))
    content = session.until(frames.CLOSE)
    assert content[:2] == b"\7\0", content
    session.send(frames.close(7, ""))


def forgotten(session: Session) -> None:
    """A packet for a session that ended long ago is answered with its reset token."""
    close(session)
    unknown = session.sealer.seal(frames.encode([(frames.PING, bytes(8))]))
    reset = ask(session.socket, unknown, datagrams.Reset.decode, 5.0)
    assert (reset.sid, reset.token) == (session.accepted.server_sid, session.accepted.reset_token), reset


def no_session(server, suite: int, secrets: handshake.Secrets) -> None:
    try:
        Session(server, suite, PROTOCOL_ID, secrets, seconds=0.3)
    except NoAnswer:
        return
    raise AssertionError(f"suite {suite:04x}: accepted")


def denied(server, why: int, hello: datagrams.Hello, version: int = datagrams.VERSION) -> None:
    """The server says why it refuses such a client, and which versions it speaks."""
    question = bytearray(hello.encode(1200))
    question[1] = version
    deny = ask(connected(server), bytes(question), datagrams.Deny.decode, 5.0)
    assert (deny.why, deny.cid, deny.versions) == (why, hello.cid, (1, 1)), deny


def refused(server, suite: int, why: int, secrets: handshake.Secrets) -> None:
    """A first message that the server cannot read, after a good cookie, is denied."""
    session = Session.__new__(Session)
    session.socket = connected(server)
    session.attempt = handshake.Attempt(suite, PROTOCOL_ID, int.from_bytes(os.urandom(8), "little"), 1)
    deny = ask(session.socket, session.question(secrets, 5.0, b""), datagrams.Deny.decode, 5.0)
    assert (deny.why, deny.cid) == (why, session.attempt.cid), deny


def other_channels(server, secrets: handshake.Secrets) -> None:
    """The server rejects who has other channels, and says which it has itself."""
    found = Session(server, 0x0201, PROTOCOL_ID, secrets, channels=[*ORDERED, (5, BYTES, (256, 64, 0))]).accepted
    assert (found.rejected, found.server_sid, found.user) == (SHAPE, 0, handshake.shape(ORDERED)), found


def by_token(server, fleet_key: bytes, created: int) -> Session:
    """Connects with a token that is minted here."""
    psk, nonce = os.urandom(32), os.urandom(24)
    token = Token(0, 0x0201, SERVER_ID, created + 45, 99, psk, created, bytes(16), b"red team")
    sealed = token.seal(server_key(fleet_key, SERVER_ID, 0), PROTOCOL_ID, nonce)
    return Session(server, 0x0201, PROTOCOL_ID, handshake.Secrets(psk), sealed)


def tokens(server, fleet_key: bytes) -> None:
    """The server repeats what it read in the token, and rejects a client with an older token."""
    now = int(time.time())
    session = by_token(server, fleet_key, now)
    session.send((frames.DGRAM, b"who"))
    session.until(frames.DGRAM, b"99 red team")
    message(session, 5000)
    late = by_token(server, fleet_key, now - 1).accepted
    assert (late.rejected, late.server_sid) == (REPLACED, 0), late
    close(session)


def main() -> None:
    server, server_by_token = (("127.0.0.1", int(port)) for port in sys.argv[1:3])
    psk, server_public, fleet_key = (bytes.fromhex(key) for key in sys.argv[3:])
    secrets = handshake.Secrets(psk, server_public=server_public)
    for suite in SUITES:
        whole(Session(server, suite, PROTOCOL_ID, secrets))
        print(f"suite {suite:04x} holds")
    closed_by_server(Session(server, 0x0101, PROTOCOL_ID, secrets))
    for suite in (0x0201, 0x0202, 0x0301, 0x0302, 0x0401, 0x0402):
        no_session(server, suite, handshake.Secrets(bytes(32), server_public=bytes([9] + [0] * 31)))
    denied(server, 1, datagrams.Hello(0, PROTOCOL_ID, 1, 1), version=2)
    denied(server, 2, datagrams.Hello(0x0701, PROTOCOL_ID, 2, 1))
    denied(server, 3, datagrams.Hello(0, PROTOCOL_ID + 1, 3, 1))
    refused(server, 0x0201, 5, handshake.Secrets(bytes(32)))
    refused(server_by_token, 0x0201, 6, handshake.Secrets(bytes(32)))
    other_channels(server, secrets)
    forgotten(Session(server, 0x0101, PROTOCOL_ID, secrets))
    tokens(server_by_token, fleet_key)
    print("a close by the server, wrong keys, five reasons to DENY, other channels, a RESET and tokens hold")


if __name__ == "__main__":
    main()
