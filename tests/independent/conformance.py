"""Checks the modules in this directory against every line of docs/vectors, as docs/CONFORMANCE.md asks of an implementation."""

import hashlib
import ipaddress
import json
from pathlib import Path

import datagrams
import frames
import handshake
import kem
import token_bytes
from cryptography.exceptions import InvalidTag
from fields import Refused, le
from noise.exceptions import NoiseInvalidMessage
from primitives import siphash128
from seal import REPLAY_WINDOW, Checksum, Cipher, Opener, exchanged, in_clear, nearest

FOLDER = Path(__file__).parents[2] / "docs" / "vectors"
FORMAT = "ww1-vectors/1"


def wide(text: str) -> int:
    return int(text, 16)


def equal(found, expected, what: str = "") -> None:
    assert found == expected, f"{what}:\n  {found!r}\n  {expected!r}"


def refused(attempt) -> None:
    try:
        taken = attempt()
    except (Refused, InvalidTag, NoiseInvalidMessage):
        return
    raise AssertionError(f"accepted: {taken!r}")


def data(line: dict, name: str) -> bytes:
    return bytes.fromhex(line[name])


def packet(line: dict) -> None:
    fields = line["fields"]
    values = {name: wide(value) if name in ("cid", "protocol_id") else value for name, value in fields.items()}
    for name in ("cookie", "token", "msg1", "msg2", "sealed", "key"):
        if name in values:
            values[name] = data(fields, name)
    match line["packet"]:
        case "HELLO":
            size = values.pop("size")
            taken = datagrams.Hello(**values)
            equal(taken.encode(size), data(line, "bytes"))
        case "CHALLENGE":
            taken = datagrams.Challenge(**values)
        case "CONNECT":
            taken = datagrams.Connect(client_sid=values.pop("sid"), **values)
        case "ACCEPT":
            taken = datagrams.Accept(**values)
        case "DENY":
            taken = datagrams.Deny((values.pop("lowest"), values.pop("highest")), **values)
        case "KEM_KEY":
            taken = datagrams.KemKey(**values)
        case "KEM_CIPHERTEXT":
            taken = datagrams.KemCiphertext(**values)
        case "RESET":
            taken = datagrams.Reset(**values)
        case "DATA":
            head = le(datagrams.DATA + values["phase"], 1) + le(values["sid"], 4) + le(values["pn"], 4)
            equal(head + values["sealed"], data(line, "bytes"))
            return
    equal(type(taken).decode(data(line, "bytes")), taken)
    if line["packet"] != "HELLO":
        equal(taken.encode(), data(line, "bytes"))


def payload(line: dict) -> None:
    fields = dict(line["fields"], user=data(line["fields"], "user"))
    if line["message"] == 1:
        expected = handshake.Msg1(**dict(fields, shape=data(fields, "shape")))
    else:
        fields["ticket"] = data(fields, "ticket") if "ticket" in fields else None
        fields["reset_token"] = bytes.fromhex(fields["reset_token"])
        expected = handshake.Msg2(server_sid=fields.pop("sid"), rejected=fields.pop("rejected", None), **fields)
    equal(type(expected).decode(data(line, "bytes")), expected)
    equal(expected.encode(), data(line, "bytes"))


NUMBERS = {
    "ACK": (("ack", 2), ("bits", 4), ("delay", 2)),
    "ECN": (("unmarked", 4), ("ect0", 4), ("ce", 4)),
    "KCP_PART": (("number", 2), ("id", 1), ("last", 1)),
    "NEW_ID": (("sid", 4),),
    "LOSS": (("newest", 2), ("rebuilt", 4), ("share", 1)),
    "REKEY": (("phase", 2),),
    "REPAIR": (("first", 4),),
}


def content(frame: dict) -> tuple[int, bytes]:
    """A frame as the module `frames` represents it: its type and its content."""
    name = frame["frame"]
    kind = getattr(frames, name)
    match name:
        case "PAD":
            return kind, bytes(frame["bytes"] - 1)
        case "CLOSE":
            return frames.close(frame["why"], frame["text"])
        case _:
            head = b"".join(le(frame[field], size) for field, size in NUMBERS.get(name, ()))
            return kind, head + bytes.fromhex(frame.get("content", ""))


def body(line: dict) -> None:
    expected = [content(frame) for frame in line["frames"]]
    equal(frames.decode(data(line, "body")), expected)
    equal(frames.encode(expected), data(line, "body"))


def number(line: dict) -> None:
    if line["is"] == "number":
        expected = wide(line["highest"]) + 1 if "highest" in line else 0
        return equal(nearest(line["low"], expected), wide(line["number"]))
    highest, taken = -1, []
    for found in map(wide, line["numbers"]):
        is_new = found > highest - REPLAY_WINDOW and found not in taken
        equal(is_new, line["taken"].pop(0), hex(found))
        if is_new:
            taken.append(found)
            highest = max(highest, found)


def cookie(line: dict) -> None:
    host, port = line["address"].rsplit(":", 1)
    ip = ipaddress.ip_address(host.strip("[]"))
    if line["is"] == "reset":
        packed = ip.packed if ip.version == 6 else bytes(10) + b"\xff\xff" + ip.packed
        text = le(line["sid"], 4) + packed + le(int(port), 2)
        return equal(siphash128(data(line, "key"), text), data(line, "token"))
    text = le(ip.version, 1) + ip.packed.ljust(16, b"\0") + le(int(port), 2) + le(datagrams.VERSION, 1) + le(line["suite"], 2)
    text += le(wide(line["protocol_id"]), 8) + le(wide(line["cid"]), 8) + le(line["epoch"], 4)
    key = siphash128(data(line, "key"), le(line["epoch"], 4))
    equal(siphash128(key, text), data(line, "cookie"))


def ends(line: dict) -> tuple:
    """The client and the server before their handshake."""
    numbers = (line["suite"], wide(line["protocol_id"]), wide(line["cid"]), line["client_sid"])
    attempt = handshake.Attempt(*numbers, data(line, "token"))
    secret = {name: data(line, name) for name in ("psk", "server_private", "server_public") if name in line}
    both = ((True, data(line, "client_random")), (False, data(line, "server_random")))
    return attempt, *(handshake.end(attempt, handshake.Secrets(**secret, random=random), is_client) for is_client, random in both)


def shake(line: dict) -> None:
    attempt, client, server = ends(line)
    equal(attempt.prologue(), data(line, "prologue"))
    equal(client.write(data(line, "payload1")), data(line, "msg1"))
    equal(server.read(data(line, "msg1")), data(line, "payload1"))
    equal(server.write(data(line, "payload2")), data(line, "msg2"))
    equal(client.read(data(line, "msg2")), data(line, "payload2"))
    for protection, sid, name in ((server.protection(), line["server_sid"], "server"), (client.protection(), line["client_sid"], "client")):
        equal(Opener(protection[1], sid).open(data(line, f"to_{name}")), (0, data(line, f"body_to_{name}")))
    for broken in line["refused"]:
        _, client, server = ends(line)
        if "msg1" in broken:
            refused(lambda: server.read(data(broken, "msg1")))
        else:
            client.write(data(line, "payload1"))
            refused(lambda: client.read(data(broken, "msg2")))


def hybrid(line: dict) -> None:
    numbers = (line["suite"], wide(line["protocol_id"]), wide(line["cid"]), line["client_sid"])
    attempt = handshake.Attempt(*numbers, data(line, "token"))
    secret = {name: data(line, name) for name in ("psk", "server_private", "server_public") if name in line}
    for end in ("client", "server"):
        equal(part(line, end, "x25519"), data(line, f"{end}_x25519"))
    equal([part(line, *of) for of in (("client", "kem m"), ("server", "kem d"), ("server", "kem z"))], [data(line, name) for name in "mdz"])
    client, server = (
        kem.Hybrid(attempt, handshake.Secrets(**secret, random=data(line, f"{name}_x25519")), name == "client", random)
        for name, random in (("client", data(line, "m")), ("server", data(line, "d") + data(line, "z")))
    )
    equal(client.write(data(line, "payload1")), data(line, "msg1"))
    equal(server.read(data(line, "msg1")), data(line, "payload1"))
    equal(server.write(data(line, "payload2")), data(line, "msg2"))
    equal(client.read(data(line, "msg2")), data(line, "payload2"))
    equal(server.key_datagram(), data(line, "kem_key"))
    equal(client.encapsulate(datagrams.KemKey.decode(data(line, "kem_key")), line["server_sid"]), data(line, "kem_ciphertext"))
    for broken in line["refused"]:
        refused(lambda: server.decapsulate(data(broken, "kem_ciphertext")))
    server.decapsulate(data(line, "kem_ciphertext"))
    for protection, sid, name in ((server.protection(), line["server_sid"], "server"), (client.protection(), line["client_sid"], "client")):
        equal(Opener(protection[1], sid).open(data(line, f"to_{name}")), (0, data(line, f"body_to_{name}")))


def part(line: dict, end: str, use: str) -> bytes:
    """What the ends that made the vectors use their random bytes for."""
    return hashlib.blake2s(f"ww/1 {use}".encode(), key=data(line, f"{end}_random")).digest()


def sealed(line: dict) -> None:
    if line["cipher"] == "none":
        salt = bytes(a ^ b for a, b in zip(data(line, "client_salt"), data(line, "server_salt")))
        protection = Checksum(salt, wide(line["protocol_id"]))
    else:
        protection = Cipher(line["cipher"], data(line, "to_server" if line["from"] == "client" else "to_client"))
    mask = Cipher(line["cipher"], data(line, "to_server")).mask() if "masked" in line else in_clear
    opener = Opener(protection, line["sid"], mask)

    def opens(packet: dict) -> None:
        number, body = opener.open(data(packet, "bytes"))
        equal((number, body), (wide(packet["pn"]), data(packet, "body")))
        for kind, content in frames.decode(body):
            if kind == frames.REKEY:
                renew(line, opener, content)

    for packet in line["packets"]:
        opens(packet)
    for broken in line["refused"]:
        refused(lambda: opener.open(data(broken, "bytes")))
    opens(line["after"])


def renew(line: dict, opener: Opener, content: bytes) -> None:
    """The end that opens has its half of the exchange already, or answers now."""
    equal(content[:2], le(1, 2), "phase")
    now = [Cipher(line["cipher"], data(line, name)) for name in ("to_server", "to_client")]
    new = exchanged(now, data(line, "random"), content[2:], is_client=line["from"] == "server")
    opener.agreed = new[line["from"] == "server"]


def token(line: dict) -> None:
    if line["is"] == "key":
        made = token_bytes.server_key(data(line, "fleet_key"), wide(line["server_id"]), line["key_id"])
        return equal(made, data(line, "key"))
    times = {name: wide(line[name]) for name in ("expires", "created")}
    numbers = (line["key_id"], line["suite"], wide(line["server_id"]), times["expires"], wide(line["client"]))
    expected = token_bytes.Token(*numbers, data(line, "psk"), times["created"], data(line, "match"), data(line, "user"))
    key, protocol_id = data(line, "key"), wide(line["protocol_id"])
    equal(token_bytes.Token.open(data(line, "sealed"), key, protocol_id), expected)
    equal(expected.seal(key, protocol_id, data(line, "nonce")), data(line, "sealed"))
    part = token_bytes.ClientPart.decode(data(line, "client_part"))
    equal([f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}" for ip, port in part.addresses], line["addresses"])
    equal((part.suite, part.psk, part.sealed), (line["suite"], data(line, "psk"), data(line, "sealed")))
    equal(part.server_public, bytes.fromhex(line["server_public"]) if "server_public" in line else None)


def refused_packet(line: dict) -> None:
    found = data(line, "bytes")
    kinds = {0xA1: datagrams.Hello, 0xA2: datagrams.Challenge, 0xA3: datagrams.Connect, 0xA4: datagrams.Accept}
    kinds |= {0xA5: datagrams.Deny, 0xA8: datagrams.Reset}
    match line["is"]:
        case "msg1":
            refused(lambda: handshake.Msg1.decode(found))
        case "msg2":
            refused(lambda: handshake.Msg2.decode(found))
        case _ if found and found[0] in kinds:
            refused(lambda: kinds[found[0]].decode(found))
        case _:  # an unknown kind, or DATA too short for a checksum
            assert not found or not 0xA1 <= found[0] <= 0xA8 or len(found) < 13


def refused_frames(line: dict) -> None:
    refused(lambda: frames.decode(data(line, "body")))


def refused_request(line: dict) -> None:
    """A well-formed request that is not for this server; the fields say what it is for."""
    found = data(line, "bytes")
    if found[0] == datagrams.DATA:
        return equal(line["counter"], "unknown")
    asked = (datagrams.Hello if found[0] == datagrams.HELLO else datagrams.Connect).decode(found)
    order = (("protocol", asked.protocol_id != 0x1122334455667788), ("suite", asked.suite != 0), ("cookie", True))
    equal(line["counter"], next(counter for counter, is_wrong in order if is_wrong))


def refused_token(line: dict) -> None:
    if line["is"] == "client_part":
        return refused(lambda: token_bytes.ClientPart.decode(data(line, "client_part")))
    key = token_bytes.server_key(bytes(range(0xA0, 0xC0)), 5, 1)
    equal(server_refuses(data(line, "sealed"), key, wide(line["now"]), "before" in line), line["error"])


def server_refuses(found: bytes, key: bytes, now: int, is_used: bool) -> str | None:
    """The checks of a server in their order: "Connect tokens"."""
    if len(found) != token_bytes.SEALED:
        return "Length"
    end = int.from_bytes(found[12:20], "little")
    for error, is_wrong in (
        ("Version", found[0] != 1),
        ("Server", int.from_bytes(found[4:12], "little") != 5),
        ("Key", found[1] != 1),
        ("Expired", end <= now - 5),
        ("TooLong", end > now + 605),
    ):
        if is_wrong:
            return error
    try:
        content = token_bytes.Token.open(found, key, 0x1122334455667788)
    except Refused as error:
        if str(error) == "tag":
            return "Forged"
        return "Content"
    if content.suite != 0x0201:
        return "Suite"
    if content.created + 5 < 0x713FB300:
        return "BeforeStart"
    return "Used" if is_used else None


CHECKS = {
    "cookies": cookie,
    "data": sealed,
    "frames": body,
    "handshakes": shake,
    "hybrid": hybrid,
    "numbers": number,
    "packets": packet,
    "payloads": payload,
    "refused-frames": refused_frames,
    "refused-packets": refused_packet,
    "refused-requests": refused_request,
    "refused-tokens": refused_token,
    "tokens": token,
}


def main() -> None:
    count = 0
    equal({path.stem for path in FOLDER.glob("*.jsonl")}, CHECKS.keys(), "files")
    for name, check in CHECKS.items():
        head, *lines = (json.loads(line) for line in (FOLDER / f"{name}.jsonl").read_text().splitlines())
        equal((head["format"], head["file"], head["vectors"]), (FORMAT, name, len(lines)), name)
        for line in lines:
            try:
                check(line)
            except Exception as error:
                raise AssertionError(f"{name}, {line['name']}: {error!r}") from error
            count += 1
    print(f"{count} vectors of {len(CHECKS)} files hold")


if __name__ == "__main__":
    main()
