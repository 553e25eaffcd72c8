"""The body of DATA: "Frames"."""

from fields import Reader, Refused, le, require

PAD, KCP, DGRAM, ACK, PING, PONG, PATH_CHALLENGE, PATH_RESPONSE, CLOSE, REDIRECT, PACKED, KCP_PART, ECN, REPAIR, LOSS, REKEY = range(16)
NEW_ID, COPY = 16, 17
ANY_LENGTH = (KCP, DGRAM, REDIRECT, PACKED, KCP_PART, REPAIR)
FIXED = {NEW_ID: 20, COPY: 0, REKEY: 34, LOSS: 7, ECN: 12, ACK: 8, PING: 8, PONG: 8, PATH_CHALLENGE: 8, PATH_RESPONSE: 8}
TO_THE_END = 0x80


def decode(body: bytes) -> list[tuple[int, bytes]]:
    """The type and the content of each frame."""
    reader, found = Reader(body), []
    while reader.data:
        kind = reader.uint(1)
        require(len(found) < 64, "more than 64 frames")
        require(kind & 0x7F != REPAIR or not found, "a REPAIR behind another frame")
        require(kind != COPY or not found, "a COPY behind another frame")
        if kind & TO_THE_END and kind & 0x7F in ANY_LENGTH:
            found.append((kind & 0x7F, reader.rest()))
        elif kind in ANY_LENGTH:
            found.append((kind, reader.take(reader.uint(2))))
            require(bool(reader.data), "a length in the last frame")
        elif kind in FIXED:
            found.append((kind, reader.take(FIXED[kind])))
        elif kind == CLOSE:
            head = reader.take(3)
            require(head[2] <= 128, "a text of more than 128 bytes")
            found.append((kind, head + reader.take(head[2])))
            text(found[-1][1][3:])
        elif kind == PAD:
            found.append((kind, reader.data))
            reader.zeros(len(reader.data))
        else:
            raise Refused("no type of a frame")
        if found[-1][0] == KCP_PART:
            part(found[-1][1])
        require(found[-1][0] != REPAIR or len(found[-1][1]) >= 4, "a REPAIR without the number of a packet")
    return found


def text(content: bytes) -> str:
    """The text of a CLOSE."""
    try:
        words = content.decode()
    except UnicodeDecodeError:
        raise Refused("no UTF-8") from None
    require(not any(ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0 for c in words), "a control character")
    return words


def part(content: bytes) -> tuple[int, int, int, bytes]:
    """The number of the frame, of this part and of the last part, and the bytes of this part."""
    reader = Reader(content)
    number, which, last = reader.uint(2), reader.uint(1), reader.uint(1)
    require(bool(reader.data) and 1 <= last and which <= last, "no part")
    return number, which, last, reader.rest()


def encode(frames: list[tuple[int, bytes]]) -> bytes:
    body = b""
    for index, (kind, content) in enumerate(frames):
        if kind not in ANY_LENGTH:
            body += le(kind, 1) + content
        elif index == len(frames) - 1:
            body += le(kind | TO_THE_END, 1) + content
        else:
            body += le(kind, 1) + le(len(content), 2) + content
    return body


def close(why: int, text: str) -> tuple[int, bytes]:
    return (CLOSE, le(why, 2) + le(len(text.encode()), 1) + text.encode())


def ack(newest: int, received: set[int], delay: int = 0) -> tuple[int, bytes]:
    bits = sum(1 << i for i in range(32) if newest - 1 - i in received)
    return (ACK, le(newest % 2**16, 2) + le(bits, 4) + le(delay, 2))


def acked(content: bytes, newest_sent: int) -> set[int]:
    """The packet numbers that an ACK acknowledges, if the newest packet sent is `newest_sent`."""
    low, bits = int.from_bytes(content[:2], "little"), int.from_bytes(content[2:6], "little")
    newest = newest_sent - (newest_sent - low) % 2**16
    return {newest} | {newest - 1 - i for i in range(32) if bits >> i & 1}
