"""SipHash-2-4-128 and XChaCha20-Poly1305, which the package `cryptography` does not have."""

from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

MASK = 2**64 - 1


def siphash128(key: bytes, data: bytes) -> bytes:
    """Like siphash.c of the reference implementation, https://github.com/veorq/SipHash, with 16 bytes of output."""
    k0, k1 = int.from_bytes(key[:8], "little"), int.from_bytes(key[8:], "little")
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D ^ 0xEE, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]
    whole = len(data) // 8 * 8
    words = [int.from_bytes(data[at : at + 8], "little") for at in range(0, whole, 8)]
    words.append(len(data) % 256 << 56 | int.from_bytes(data[whole:], "little"))
    for word in words:
        v[3] ^= word
        sip_rounds(v, 2)
        v[0] ^= word
    out = b""
    for index, mark in ((2, 0xEE), (1, 0xDD)):
        v[index] ^= mark
        sip_rounds(v, 4)
        out += (v[0] ^ v[1] ^ v[2] ^ v[3]).to_bytes(8, "little")
    return out


def sip_rounds(v: list[int], rounds: int) -> None:
    for _ in range(rounds):
        for a, b, c, d, x, y in ((0, 1, 2, 3, 13, 16), (2, 1, 0, 3, 17, 21)):
            v[a] = v[a] + v[b] & MASK
            v[b] = rotate(v[b], x, 64) ^ v[a]
            v[a] = rotate(v[a], 32, 64)
            v[c] = v[c] + v[d] & MASK
            v[d] = rotate(v[d], y, 64) ^ v[c]


def rotate(value: int, by: int, width: int) -> int:
    return (value << by | value >> width - by) & (1 << width) - 1


def hchacha20(key: bytes, nonce: bytes) -> bytes:
    """The key of draft-irtf-cfrg-xchacha-03, section 2.2."""
    state = [int.from_bytes((b"expand 32-byte k" + key + nonce)[at : at + 4], "little") for at in range(0, 64, 4)]
    for _ in range(10):
        for a, b, c, d in (
            *((n, n + 4, n + 8, n + 12) for n in range(4)),
            *((n, 4 + (n + 1) % 4, 8 + (n + 2) % 4, 12 + (n + 3) % 4) for n in range(4)),
        ):
            for x, y, z, by in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
                state[x] = (state[x] + state[y]) % 2**32
                state[z] = rotate(state[z] ^ state[x], by, 32)
    return b"".join(word.to_bytes(4, "little") for word in state[:4] + state[12:])


class XChaCha20Poly1305:
    def __init__(self, key: bytes):
        self.key = key

    def encrypt(self, nonce: bytes, data: bytes, associated: bytes) -> bytes:
        return self.inner(nonce).encrypt(bytes(4) + nonce[16:], data, associated)

    def decrypt(self, nonce: bytes, data: bytes, associated: bytes) -> bytes:
        return self.inner(nonce).decrypt(bytes(4) + nonce[16:], data, associated)

    def inner(self, nonce: bytes) -> ChaCha20Poly1305:
        return ChaCha20Poly1305(hchacha20(self.key, nonce[:16]))
