//! What two ends agree with which ciphers: the suite.

/// How a session is protected. The client asks for one suite, the server has a set of them; nothing is negotiated, and the suite
/// is part of what the handshake authenticates.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum Suite {
    /// A checksum mixed with a secret that crosses the network in clear: against noise and blind spoofers, not against anybody who
    /// sees a packet. For local networks and tests.
    Checked,
    /// A Noise handshake and authenticated encryption; the feature `crypto` has it.
    Noise(Pattern, Cipher),
}

/// Who proves what in the handshake. Source: the Noise Protocol Framework, revision 34, sections 7.5 and 9.4.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum Pattern {
    /// Nobody anything: shuts out who only listens.
    Nn = 1,
    /// Both that they know a secret of 32 random bytes: from a connect token, or shared before. No password: who listens can try
    /// words.
    NnPsk0 = 2,
    /// The server that it has the private half of a key that the client knows.
    Nk = 3,
    /// Both as `NnPsk0`, the server also as `Nk`.
    NkPsk0 = 4,
}

/// The cipher of a session; the handshake hashes with BLAKE2s and agrees by X25519.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum Cipher {
    /// ChaCha20-Poly1305, RFC 8439: fast everywhere.
    ChaChaPoly = 1,
    /// AES-256-GCM, NIST SP 800-38D: fast where the machine has instructions for it.
    AesGcm = 2,
}

impl Suite {
    /// The suite for a game with a backend that issues connect tokens.
    pub const TOKEN: Self = Self::Noise(Pattern::NnPsk0, Cipher::ChaChaPoly);

    /// Every suite that encrypts.
    pub const ALL: [Self; 8] = [
        Self::Noise(Pattern::Nn, Cipher::ChaChaPoly),
        Self::Noise(Pattern::Nn, Cipher::AesGcm),
        Self::Noise(Pattern::NnPsk0, Cipher::ChaChaPoly),
        Self::Noise(Pattern::NnPsk0, Cipher::AesGcm),
        Self::Noise(Pattern::Nk, Cipher::ChaChaPoly),
        Self::Noise(Pattern::Nk, Cipher::AesGcm),
        Self::Noise(Pattern::NkPsk0, Cipher::ChaChaPoly),
        Self::Noise(Pattern::NkPsk0, Cipher::AesGcm),
    ];

    /// Its number on the wire: pattern × 256 + cipher, 0 for `Checked`.
    #[must_use]
    pub const fn code(self) -> u16 {
        match self {
            Self::Checked => 0,
            Self::Noise(pattern, cipher) => (pattern as u16) << 8 | cipher as u16,
        }
    }

    /// The suite of a number from the wire; `None`: we know none.
    #[must_use]
    pub fn from_code(code: u16) -> Option<Self> {
        [Self::Checked].into_iter().chain(Self::ALL).find(|suite| suite.code() == code)
    }

    /// Whether both ends need the same secret beforehand.
    #[must_use]
    pub const fn needs_psk(self) -> bool {
        matches!(self, Self::Noise(Pattern::NnPsk0 | Pattern::NkPsk0, _))
    }

    /// Whether the client needs the server's public key beforehand.
    #[must_use]
    pub const fn needs_server_key(self) -> bool {
        matches!(self, Self::Noise(Pattern::Nk | Pattern::NkPsk0, _))
    }
}
