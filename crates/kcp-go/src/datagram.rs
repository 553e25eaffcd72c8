//! The content of a datagram once its protection is removed.

/// Longest datagram, bytes: what kcp-go has room for. It truncates longer ones, whose checksum is then wrong.
pub(super) const MOST: usize = 1500;

/// A datagram without its protection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Inner<'a> {
    /// KCP, or what may be KCP.
    Kcp(&'a [u8]),
    /// KCP, as a data shard of a group.
    Data { kcp: &'a [u8], shard: Shard<'a> },
    /// A parity shard.
    Parity(Shard<'a>),
}

/// Why a datagram is useless.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Useless {
    /// A data shard that claims to be longer than it is, or that is too short for its size field.
    Malformed,
    /// Something other than KCP, which new versions of kcp-go can send.
    OutOfBand,
}

/// A shard of a group, data or parity.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Shard<'a> {
    pub(super) seqid: u32,
    pub(super) is_parity: bool,
    /// What the code covers: for a data shard, its size field and the KCP datagram.
    pub(super) bytes: &'a [u8],
}

impl<'a> Inner<'a> {
    /// Tells the kinds apart by the two bytes where KCP has the command: no command has these values.
    pub(super) fn of(datagram: &'a [u8]) -> Result<Self, Useless> {
        let Some((head, bytes)) = datagram.split_first_chunk::<HEAD>() else {
            return Ok(Self::Kcp(datagram));
        };
        let [a, b, c, d, kind @ ..] = *head;
        let shard = |is_parity| Shard { seqid: u32::from_le_bytes([a, b, c, d]), is_parity, bytes };
        match u16::from_le_bytes(kind) {
            DATA => {
                let kcp = kcp_of(bytes).ok_or(Useless::Malformed)?;
                Ok(Self::Data { kcp, shard: shard(false) })
            }
            PARITY => Ok(Self::Parity(shard(true))),
            OUT_OF_BAND => Err(Useless::OutOfBand),
            _ => Ok(Self::Kcp(datagram)),
        }
    }
}

/// The KCP datagram in a data shard, which may be padded with zeros. `None` if it claims to be longer than it
/// is.
pub(super) fn kcp_of(shard: &[u8]) -> Option<&[u8]> {
    let (size, rest) = shard.split_first_chunk::<SIZE>()?;
    rest.get(..usize::from(u16::from_le_bytes(*size)).checked_sub(SIZE)?)
}

/// Bytes before a shard: its number and its kind.
pub(super) const HEAD: usize = 6;
/// Bytes of the size field at the start of a data shard. The size includes them.
pub(super) const SIZE: usize = 2;
pub(super) const DATA: u16 = 0xf1;
pub(super) const PARITY: u16 = 0xf2;
const OUT_OF_BAND: u16 = 0xf3;
