"""What the hybrid suites add to the handshake: "Hybrid suites"."""

import hashlib
import hmac
import os

from datagrams import KEM_CIPHERTEXT, KemCiphertext, KemKey
from fields import le, require
from handshake import Attempt, Noise, Secrets
from kyber_py.ml_kem import ML_KEM_768
from seal import Cipher

HASH = 32


class Hybrid(Noise):
    """One end. `kem` has its random bytes: d and z at the server, m at the client."""

    def __init__(self, attempt: Attempt, secrets: Secrets, is_client: bool, kem: bytes | None = None):
        super().__init__(attempt, secrets, is_client)
        self.cid, self.is_client = attempt.cid, is_client
        self.kem = kem or os.urandom(32 if is_client else 64)
        self.keys = None  # of packets to the server and to the client, once they are complete
        if not is_client:
            self.key, self.private = ML_KEM_768.key_derive(self.kem)

    def write(self, payload: bytes) -> bytes:
        said = b"" if self.is_client else hashlib.blake2s(self.key).digest()
        return super().write(said + payload)

    def read(self, message: bytes) -> bytes:
        said = super().read(message)
        if self.is_client:
            self.hash, said = said[:HASH], said[HASH:]
        return said

    def first(self) -> list[Cipher]:
        """The keys from the two messages, of packets to the server and to the client."""
        own, peers = super().protection()
        return [own, peers] if self.is_client else [peers, own]

    def key_datagram(self) -> bytes:
        return KemKey(self.cid, self.key).encode()

    def encapsulate(self, taken: KemKey, sid: int) -> bytes:
        """The datagram with the ciphertext."""
        require(taken.cid == self.cid and hashlib.blake2s(taken.key).digest() == self.hash, "the key of another server")
        shared, ciphertext = ML_KEM_768._encaps_internal(taken.key, self.kem)
        self.complete(shared, ciphertext, taken.key)
        to_server = self.first()[0]
        header = le(KEM_CIPHERTEXT, 1) + le(sid, 4)
        return header + to_server.aead.encrypt(to_server.nonce(0), ciphertext, header)

    def decapsulate(self, datagram: bytes) -> None:
        taken = KemCiphertext.decode(datagram)
        to_server = self.first()[0]
        ciphertext = to_server.aead.decrypt(to_server.nonce(0), taken.sealed, datagram[:5])
        self.complete(ML_KEM_768.decaps(self.private, ciphertext), ciphertext, self.key)

    def complete(self, shared: bytes, ciphertext: bytes, key: bytes) -> None:
        to_server, to_client = self.first()
        secret = hmac.digest(to_server.key, to_client.key + shared + ciphertext + key, hashlib.blake2s)
        first = hmac.digest(secret, b"\1", hashlib.blake2s)
        second = hmac.digest(secret, first + b"\2", hashlib.blake2s)
        self.keys = [Cipher(self.cipher, found) for found in (first, second)]

    def protection(self) -> tuple:
        return tuple(self.keys if self.is_client else self.keys[::-1])
