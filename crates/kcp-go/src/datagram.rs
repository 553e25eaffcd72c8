//! What is inside a datagram when it is no longer protected.

/// Longest datagram, bytes: what kcp-go has room for. A longer one is cut there, and then its checksum is wrong.
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

/// Why a datagram is of no use.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Useless {
    /// A data shard that says it is longer than it is, or too short for its size.
    Malformed,
    /// Something beside KCP, which new versions of kcp-go can send.
    OutOfBand,
}

/// A shard of a group, data or parity.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Shard<'a> {
    pub(super) seqid: u32,
    pub(super) is_parity: bool,
    /// What the code is made over: of data, its size and the datagram of KCP.
    pub(super) bytes: &'a [u8],
}

impl<'a> Inner<'a> {
    /// Says what it is by the two bytes where KCP has the command: no command looks like that.
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

/// The datagram of KCP in a data shard: a shard may have zeros behind it. `None`: it says that it is longer than there is.
pub(super) fn kcp_of(shard: &[u8]) -> Option<&[u8]> {
    let (size, rest) = shard.split_first_chunk::<SIZE>()?;
    rest.get(..usize::from(u16::from_le_bytes(*size)).checked_sub(SIZE)?)
}

/// Bytes before a shard: its number and its kind.
pub(super) const HEAD: usize = 6;
/// Bytes of the size that a data shard starts with. It counts itself.
pub(super) const SIZE: usize = 2;
pub(super) const DATA: u16 = 0xf1;
pub(super) const PARITY: u16 = 0xf2;
const OUT_OF_BAND: u16 = 0xf3;
