//! The suite: which handshake and cipher both ends use.

/// How a session is protected. The client asks for one suite, the server has a set of them. There is no negotiation,
/// and the handshake authenticates the suite.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum Suite {
    /// A checksum mixed with a secret that crosses the network in the clear. Protects against noise and blind spoofers,
    /// not against anybody who sees a packet. For local networks and tests.
    Checked,
    /// A Noise handshake and authenticated encryption. Needs the feature `crypto`.
    Noise(Pattern, Cipher),
    /// The same, with keys that also come from ML-KEM-768 (FIPS 203). Whoever records a session today and has a quantum
    /// computer later cannot read it. Needs the feature `pq`, and paths that carry datagrams of 1200 bytes.
    Hybrid(Pattern, Cipher),
}

/// What each end proves in the handshake. Source: the Noise Protocol Framework, revision 34, sections 7.5 and 9.4.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum Pattern {
    /// Neither end proves anything. Protects against passive eavesdroppers only.
    Nn = 1,
    /// Both ends prove that they know a secret of 32 random bytes: from a connect token, or shared before. Not a
    /// password, because an eavesdropper can try out words.
    NnPsk0 = 2,
    /// The server proves that it has the private half of a key that the client knows.
    Nk = 3,
    /// Both ends as in `NnPsk0`, and the server also as in `Nk`.
    NkPsk0 = 4,
}

/// The cipher of a session. The handshake uses BLAKE2s and X25519.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum Cipher {
    /// ChaCha20-Poly1305, RFC 8439: fast everywhere.
    ChaChaPoly = 1,
    /// AES-256-GCM, NIST SP 800-38D: fast on machines with AES instructions.
    AesGcm = 2,
}

impl Suite {
    /// The suite for a game with a backend that issues connect tokens.
    pub const TOKEN: Self = Self::Noise(Pattern::NnPsk0, Cipher::ChaChaPoly);

    /// [`TOKEN`](Self::TOKEN), and recordings stay closed to quantum computers.
    pub const HYBRID_TOKEN: Self = Self::Hybrid(Pattern::NnPsk0, Cipher::ChaChaPoly);

    /// Every suite that encrypts.
    pub const ALL: [Self; 16] = [
        Self::Noise(Pattern::Nn, Cipher::ChaChaPoly),
        Self::Noise(Pattern::Nn, Cipher::AesGcm),
        Self::Noise(Pattern::NnPsk0, Cipher::ChaChaPoly),
        Self::Noise(Pattern::NnPsk0, Cipher::AesGcm),
        Self::Noise(Pattern::Nk, Cipher::ChaChaPoly),
        Self::Noise(Pattern::Nk, Cipher::AesGcm),
        Self::Noise(Pattern::NkPsk0, Cipher::ChaChaPoly),
        Self::Noise(Pattern::NkPsk0, Cipher::AesGcm),
        Self::Hybrid(Pattern::Nn, Cipher::ChaChaPoly),
        Self::Hybrid(Pattern::Nn, Cipher::AesGcm),
        Self::Hybrid(Pattern::NnPsk0, Cipher::ChaChaPoly),
        Self::Hybrid(Pattern::NnPsk0, Cipher::AesGcm),
        Self::Hybrid(Pattern::Nk, Cipher::ChaChaPoly),
        Self::Hybrid(Pattern::Nk, Cipher::AesGcm),
        Self::Hybrid(Pattern::NkPsk0, Cipher::ChaChaPoly),
        Self::Hybrid(Pattern::NkPsk0, Cipher::AesGcm),
    ];

    /// Its number on the wire: pattern × 256 + cipher, + 0x8000 if it is hybrid; 0 for `Checked`.
    #[must_use]
    pub const fn code(self) -> u16 {
        match self {
            Self::Checked => 0,
            Self::Noise(pattern, cipher) => (pattern as u16) << 8 | cipher as u16,
            Self::Hybrid(pattern, cipher) => HYBRID | Self::Noise(pattern, cipher).code(),
        }
    }

    /// The suite with this number on the wire. `None`: unknown.
    #[must_use]
    pub fn from_code(code: u16) -> Option<Self> {
        [Self::Checked].into_iter().chain(Self::ALL).find(|suite| suite.code() == code)
    }

    /// Whether both ends need to know the same secret beforehand.
    #[must_use]
    pub const fn needs_psk(self) -> bool {
        matches!(self.pattern(), Some(Pattern::NnPsk0 | Pattern::NkPsk0))
    }

    /// Whether the client needs to know the server's public key beforehand.
    #[must_use]
    pub const fn needs_server_key(self) -> bool {
        matches!(self.pattern(), Some(Pattern::Nk | Pattern::NkPsk0))
    }

    /// Whether recordings of a session stay closed to quantum computers.
    #[must_use]
    pub const fn is_hybrid(self) -> bool {
        matches!(self, Self::Hybrid(..))
    }

    const fn pattern(self) -> Option<Pattern> {
        match self {
            Self::Checked => None,
            Self::Noise(pattern, _) | Self::Hybrid(pattern, _) => Some(pattern),
        }
    }

    /// The feature that the suite needs.
    pub(super) const fn missing(self) -> &'static str {
        match self {
            Self::Hybrid(..) => "takes the feature `pq`, which this program was built without",
            _ => "takes the feature `crypto`, which this program was built without",
        }
    }
}

/// The bit of the number of a hybrid suite.
pub(super) const HYBRID: u16 = 0x8000;
