"""Checks every block of hex in docs/WIRE.md against what the modules in this directory make of the text around it."""

import re

import bits
import datagrams
import frames
import handshake
import packet
import repair
import segment
import token_bytes
from document import Group, blocks
from fields import Refused
from primitives import siphash128
from seal import Opener, Sealer, in_clear

CONV = 0x11223344
PACKETS = 0x7061636B
PROTOCOL, CID = 0x1122334455667788, 0x0102030405060708
CLIENT_SID, SERVER_SID = 0x0A0B0C0D, 0x0E0F1011
STAMP, EPOCH = 1000, 7


def count(first: int, length: int) -> bytes:
    return bytes(range(first, first + length))


CLIENT_RANDOM, SERVER_RANDOM, PSK, SERVER_PRIVATE = (count(first, 32) for first in (0x20, 0x40, 0x60, 0x80))
MSG1 = handshake.Msg1()


def equal(found, expected, what: str) -> None:
    assert found == expected, f"{what}:\n  {found!r}\n  {expected!r}"


def refused(reason: str, attempt, what: str) -> None:
    try:
        attempt()
    except Refused as error:
        equal(str(error), reason, what)
    else:
        raise AssertionError(f"{what}: accepted")


def segments(groups: list[Group]) -> None:
    """Lines with segments, which the comments describe."""
    names = {segment.PUSH: "PUSH", segment.ACK: "ACK", segment.WASK: "WASK", segment.WINS: "WINS"}
    for group in groups:
        decoded = segment.decode(group.bytes)
        equal(len(decoded), len(group.lines), group.title)
        for found, (data, comment) in zip(decoded, group.lines):
            said = f"{names[found.cmd]} frg {found.frg} wnd {found.wnd} ts {found.ts} sn {found.sn} una {found.una}"
            said += f' "{found.data.decode()}"' if found.cmd == segment.PUSH else ""
            equal((found.conv, said, found.encode()), (CONV, comment, data), comment)


def compact_segments(groups: list[Group]) -> None:
    """Frames of segments, which their titles describe. What these leave out is as known, or as in the segment before."""
    known = {"conv": CONV, "una": 0, "wnd": 128}
    for group in groups:
        channel = re.match(r"channel (\d+): ", group.title)
        equal(group.bytes[1] if group.bytes[0] & segment.CHANNEL else 0, int(channel[1]) if channel else 0, group.title)
        found, una, ts = segment.expand(group.bytes, **known, expected=0), 0, 0
        said = group.title[channel.end() if channel else 0 :].split("; ")
        equal(len(found), len(said), group.title)
        for each, text in zip(found, said):
            fields = {name: int(number, 0) for name, number in re.findall(r"(una|ts|sn) (\w+)", text)}
            una, ts = fields.get("una", una), fields.get("ts", ts)
            data = re.search(r'"(.*)"', text)
            expected = (text.split()[0], una, ts, fields.get("sn", una - 1), data[1].encode() if data else b"")
            name = {segment.PUSH: "PUSH", segment.ACK: "ACK"}[each.cmd]
            equal((name, each.una, each.ts, each.sn, each.data), expected, text)


def repairs(groups: list[Group]) -> None:
    coefficients = [[repair.coefficient(sn, index) for sn in range(8)] for index in range(2)]
    equal(coefficients, [[1, 81, 49, 134, 37, 204, 93, 25], [18, 177, 126, 166, 154, 117, 241, 246]], "coefficients")
    (group,) = groups
    equal(repair.encode(1, {5: (0, b"hi"), 7: (0, b"kcp")}), group.bytes, "repair")


def ignored(groups: list[Group]) -> None:
    for first, second in zip(groups[::2], groups[1::2], strict=True):
        equal(second.title, "as", first.title)
        effects = [[segment.effect(each) for each in segment.decode(group.bytes)] for group in (first, second)]
        equal(*effects, first.title)


def refused_segments(groups: list[Group]) -> None:
    for group in groups:
        for data, comment in group.lines:
            reason = comment.partition(":")[0]
            refused(reason, lambda: segment.check(segment.decode(data), CONV, window=128, snd_nxt=2), comment)


def packets(groups: list[Group]) -> None:
    told = {"nothing before it": 0, "and the one before it": 1, "and the 32 before it": 2**32 - 1}
    for data, comment in (line for group in groups for line in group.lines):
        found = packet.decode(data, PACKETS)
        equal(found.sequence, int(re.search(r"packet (\d+)", comment)[1]), comment)
        fragment = re.search(r"fragment (\d+) of 0 to (\d+)", comment)
        equal(found.fragment, fragment and tuple(int(n) for n in fragment.groups()), comment)
        ack = re.search(r"ack (\d+)(?: - (\d+))?", comment)
        equal(found.ack, (int(ack[1]) - int(ack[2] or 0)) % 2**16 if ack else None, comment)
        for words, ack_bits in told.items():
            assert words not in comment or found.ack_bits == ack_bits, comment
        text = re.search(r'"(.*)"', comment)
        equal(found.payload.decode(), text[1] if text else "", comment)


def refused_packets(groups: list[Group]) -> None:
    def alice(data: bytes) -> None:
        packet.check(packet.decode(data, PACKETS), next_sequence=2, received={65535}, newest=65535, remembered=256)

    for data, comment in (line for group in groups for line in group.lines):
        refused(comment.partition(":")[0], lambda: alice(data), comment)


def messages(groups: list[Group]) -> None:
    equal(bits.channels(groups[0].bytes), [[(0, "hi")], [(0, (5, 1000))]], "messages")


def expired(groups: list[Group]) -> None:
    equal(bits.channels(groups[0].bytes), [[(0, None)], []], "expired")


def plain(groups: list[Group]) -> None:
    equal(bits.channels(groups[0].bytes, bits.plain), [[(0, b"hi")], [(0, b"hi")]], "bytes")


def beside(groups: list[Group]) -> None:
    equal(bits.channels(groups[0].bytes, bits.plain), [[(0, bits.BY_KCP), (1, b"hi")], []], "beside")


def cookie(family: int, ip: bytes, port: int, suite: int) -> bytes:
    key = siphash128(count(0, 16), EPOCH.to_bytes(4, "little"))
    numbers = ((port, 2), (datagrams.VERSION, 1), (suite, 2), (PROTOCOL, 8), (CID, 8), (EPOCH, 4))
    text = bytes([family]) + ip.ljust(16, b"\0") + b"".join(n.to_bytes(size, "little") for n, size in numbers)
    return siphash128(key, text)


def cookies(groups: list[Group]) -> None:
    equal(groups[0].bytes, cookie(4, bytes([192, 0, 2, 1]), 4000, 0x0201), "192.0.2.1")
    v6 = bytes.fromhex("20010db8000000000000000000000001")
    equal(groups[1].bytes, cookie(6, v6, 4000, 0x0201), "2001:db8::1")


def every_frame(groups: list[Group]) -> None:
    everything = [
        (frames.REPAIR, bytes.fromhex("04030201 0100") + b"sum"),
        (frames.ACK, bytes.fromhex("0605 04030201 1900")),
        (frames.PING, (1).to_bytes(8, "little")),
        (frames.PONG, (2).to_bytes(8, "little")),
        (frames.PATH_CHALLENGE, count(0x30, 8)),
        (frames.PATH_RESPONSE, count(0x38, 8)),
        frames.close(3, "bye"),
        (frames.KCP, b"segment"),
        (frames.DGRAM, b""),
        (frames.REDIRECT, b"token"),
        (frames.PACKED, b"bits"),
        (frames.KCP_PART, bytes.fromhex("0600 01 02") + b"segm"),
        (frames.ECN, bytes.fromhex("01000000 02000000 03000000")),
        (frames.LOSS, bytes.fromhex("0807 05000000 0d")),
        (frames.REKEY, bytes.fromhex("0100") + count(0x40, 32)),
        (frames.NEW_ID, bytes.fromhex("12100f0e") + count(0x40, 16)),
        (frames.PAD, bytes(2)),
    ]
    copy = [(frames.COPY, b""), (frames.PING, (1).to_bytes(8, "little"))]
    for group, expected in zip(groups, (everything, [(frames.DGRAM, b"last")], copy), strict=True):
        equal(frames.decode(group.bytes), expected, group.title)
        equal(frames.encode(expected), group.bytes, group.title)


def ping(kind: int) -> bytes:
    return frames.encode([(kind, (9).to_bytes(8, "little"))])


def of_server() -> handshake.Msg2:
    return handshake.Msg2(SERVER_SID, 0, 1200, 128, 500, None, siphash128(count(0x10, 16), SERVER_SID.to_bytes(4, "little")), b"")


def both_ends(suite: int, msg1: bytes, msg2: bytes, token: bytes = b"", masked: bool = False) -> tuple:
    """Client and server after a handshake with these messages."""
    attempt = handshake.Attempt(suite, PROTOCOL, CID, CLIENT_SID, token)
    server = handshake.end(attempt, handshake.Secrets(PSK, SERVER_PRIVATE, random=SERVER_RANDOM), False)
    public = attempt.needs_server_key() and server.noise.noise_protocol.keypairs["s"].public_bytes
    client = handshake.end(attempt, handshake.Secrets(PSK, server_public=public, random=CLIENT_RANDOM), True)
    equal(client.write(MSG1.encode()), msg1, "msg1")
    equal(server.read(msg1), MSG1.encode(), "payload of msg1")
    equal(server.write(of_server().encode()), msg2, "msg2")
    equal(handshake.Msg2.decode(client.read(msg2)), of_server(), "payload of msg2")
    (client_out, client_in), (server_out, server_in) = client.protection(), server.protection()
    mask = client_out.mask() if masked else in_clear
    at_client = Sealer(client_out, SERVER_SID, mask), Opener(client_in, CLIENT_SID, mask)
    return *at_client, Sealer(server_out, CLIENT_SID, mask), Opener(server_in, SERVER_SID, mask)


def data(sealer: Sealer, opener: Opener, body: bytes, expected: bytes) -> None:
    equal(sealer.seal(body), expected, "DATA")
    equal(opener.open(expected), (sealer.number - 1, body), "body")
    refused("a number that came before", lambda: opener.open(expected), "DATA again")


def session(groups: list[Group]) -> None:
    hello, challenge, connect, accept, ping_, pong, hi, deny, reset = (group.bytes for group in groups)
    equal(datagrams.Hello(0, PROTOCOL, CID, STAMP).encode(512), hello.ljust(512, b"\0"), "HELLO")
    its_cookie = cookie(4, bytes([192, 0, 2, 1]), 4000, 0)
    expected = datagrams.Challenge(0, CID, STAMP, EPOCH, its_cookie)
    equal(datagrams.Challenge.decode(challenge), expected, "CHALLENGE")
    equal(expected.encode(), challenge, "CHALLENGE")
    msg1, msg2 = connect[48:], datagrams.Accept.decode(accept).msg2
    equal(datagrams.Connect(0, PROTOCOL, CID, EPOCH, its_cookie, CLIENT_SID, b"", msg1).encode(), connect, "CONNECT")
    equal(datagrams.Accept(0, CID, msg2).encode(), accept, "ACCEPT")
    to_server, at_client, to_client, at_server = both_ends(0, msg1, msg2)
    data(to_server, at_server, ping(frames.PING), ping_)
    data(to_client, at_client, ping(frames.PONG), pong)
    data(to_server, at_server, frames.encode([(frames.DGRAM, b"hi")]), hi)
    equal(datagrams.Deny.decode(deny), datagrams.Deny((1, 1), 4, CID, 3000), "DENY")
    equal(datagrams.Reset.decode(reset), datagrams.Reset(SERVER_SID, of_server().reset_token), "RESET")


def noise(suite: int, groups: list[Group], masked: bool = False) -> None:
    msg1, msg2, ping_, pong, hi, *sids = (group.bytes for group in groups)
    to_server, at_client, to_client, at_server = both_ends(suite, msg1, msg2, masked=masked)
    data(to_server, at_server, ping(frames.PING), ping_)
    data(to_client, at_client, ping(frames.PONG), pong)
    to_server.update()
    data(to_server, at_server, frames.encode([(frames.DGRAM, b"hi")]), hi)
    for sid in sids:
        equal(to_server.mask.sid_for(SERVER_SID + 1), int.from_bytes(sid, "little"), "another sid")


def token(groups: list[Group]) -> None:
    key, sealed, part, connect, accept = (group.bytes for group in groups)
    made, end = 1900000000, 1900000045
    equal(token_bytes.server_key(count(0xA0, 32), 5, 1), key, "key of the server")
    content = token_bytes.Token(1, 0x0201, 5, end, 99, PSK, made, count(0xC0, 16), b"red team")
    equal(token_bytes.Token.open(sealed, key, PROTOCOL), content, "token")
    equal(content.seal(key, PROTOCOL, count(0xE0, 24)), sealed, "sealed token")
    addresses = [("192.0.2.1", 4000), ("2001:db8::1", 4000)]
    expected = token_bytes.ClientPart(PROTOCOL, 0x0201, made, end, PSK, None, addresses, b"", sealed)
    equal(token_bytes.ClientPart.decode(part + sealed), expected, "the client's part")
    msg1, msg2 = connect[46 + 384 + 2 :], datagrams.Accept.decode(accept).msg2
    both_ends(0x0201, msg1, msg2, sealed)
    its_cookie = cookie(4, bytes([192, 0, 2, 1]), 4000, 0x0201)
    whole = datagrams.Connect(0x0201, PROTOCOL, CID, EPOCH, its_cookie, CLIENT_SID, sealed, msg1)
    equal(whole.encode(), connect, "CONNECT")


CHECKS = {
    "exchange": segments,
    "fragments": segments,
    "stream": segments,
    "probe": segments,
    "compact": compact_segments,
    "repair": repairs,
    "ignored": ignored,
    "refused": refused_segments,
    "packets": packets,
    "steady": packets,
    "packets refused": refused_packets,
    "messages": messages,
    "expired": expired,
    "bytes": plain,
    "beside": beside,
    "cookies": cookies,
    "frames": every_frame,
    "session": session,
    "token": token,
}


def main() -> None:
    found = blocks()
    assert CHECKS.keys() <= found.keys(), CHECKS.keys() - found.keys()
    for name, groups in found.items():
        suite = re.fullmatch(r"noise-([0-9a-f]{4})", name)
        try:
            if name == "masked":
                noise(0x0201, found["noise-0201"][:2] + groups, masked=True)
            else:
                noise(int(suite[1], 16), groups) if suite else CHECKS[name](groups)
        except KeyError:
            raise AssertionError(f"block {name}: no check") from None
        except AssertionError as error:
            raise AssertionError(f"block {name}: {error}") from None
    lines = sum(len(group.lines) for groups in found.values() for group in groups)
    print(f"{len(found)} blocks, {lines} lines of hex, of docs/WIRE.md hold")


if __name__ == "__main__":
    main()
