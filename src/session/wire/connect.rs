//! CONNECT and ACCEPT: the messages of the handshake, with what has to be known before they can be read.

use super::{COOKIE_LEN, MESSAGE_MAX, MESSAGE_MIN, PacketError, TOKEN_MAX, VERSION, begin, kind, length};

/// The client brings the cookie back and begins the handshake.
#[derive(Clone, Copy, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "the packet is what it is: the next version is another")]
pub struct Connect<'a> {
    /// As in the [`Hello`](super::Hello).
    pub suite: u16,
    /// As in the [`Hello`](super::Hello).
    pub protocol_id: u64,
    /// As in the [`Hello`](super::Hello).
    pub cid: u64,
    /// As in the [`Challenge`](super::Challenge).
    pub epoch: u32,
    /// As in the [`Challenge`](super::Challenge).
    pub cookie: [u8; COOKIE_LEN],
    /// What the server has to write into the packets that it sends to this client.
    pub client_sid: u32,
    /// A sealed connect token, or nothing; at most [`TOKEN_MAX`] bytes.
    pub token: &'a [u8],
    /// The first message of the handshake, [`MESSAGE_MIN`] to [`MESSAGE_MAX`] bytes.
    pub msg1: &'a [u8],
}

/// The server ends the handshake.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "the packet is what it is: the next version is another")]
pub struct Accept<'a> {
    /// As in the [`Hello`](super::Hello).
    pub suite: u16,
    /// As in the [`Hello`](super::Hello).
    pub cid: u64,
    /// The second message of the handshake, [`MESSAGE_MIN`] to [`MESSAGE_MAX`] bytes.
    pub msg2: &'a [u8],
}

impl<'a> Connect<'a> {
    /// Appends the datagram.
    ///
    /// # Errors
    ///
    /// When the token or the message is too long. Nothing was appended.
    pub fn encode(&self, datagram: &mut Vec<u8>) -> Result<(), PacketError> {
        let Self { suite, protocol_id, cid, epoch, cookie, client_sid, token, msg1 } = self;
        let token_len = length("token", token, 0, TOKEN_MAX)?;
        let msg1_len = length("msg1", msg1, MESSAGE_MIN, MESSAGE_MAX)?;
        datagram.extend_from_slice(&[kind::CONNECT, VERSION]);
        datagram.extend_from_slice(&suite.to_le_bytes());
        datagram.extend_from_slice(&protocol_id.to_le_bytes());
        datagram.extend_from_slice(&cid.to_le_bytes());
        datagram.extend_from_slice(&epoch.to_le_bytes());
        datagram.extend_from_slice(cookie);
        datagram.extend_from_slice(&client_sid.to_le_bytes());
        datagram.extend_from_slice(&token_len.to_le_bytes());
        datagram.extend_from_slice(token);
        datagram.extend_from_slice(&msg1_len.to_le_bytes());
        datagram.extend_from_slice(msg1);
        Ok(())
    }

    /// The packet that `datagram` is.
    ///
    /// # Errors
    ///
    /// When it is another, or none.
    pub fn decode(datagram: &'a [u8]) -> Result<Self, PacketError> {
        let mut reader = begin(kind::CONNECT, datagram)?;
        let (suite, protocol_id, cid) = (reader.u16()?, reader.u64()?, reader.u64()?);
        let (epoch, cookie, client_sid) = (reader.u32()?, reader.array()?, reader.u32()?);
        let token_len = reader.u16()?;
        let token = reader.bytes(token_len)?;
        let msg1_len = reader.u16()?;
        let msg1 = reader.bytes(msg1_len)?;
        reader.finish()?;
        length("token", token, 0, TOKEN_MAX)?;
        length("msg1", msg1, MESSAGE_MIN, MESSAGE_MAX)?;
        Ok(Self { suite, protocol_id, cid, epoch, cookie, client_sid, token, msg1 })
    }
}

impl std::fmt::Debug for Connect<'_> {
    /// Without the token and the cookie: who has them can use them.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { suite, protocol_id, cid, epoch, cookie: _, client_sid, token, msg1 } = self;
        f.debug_struct("Connect")
            .field("suite", suite)
            .field("protocol_id", protocol_id)
            .field("cid", cid)
            .field("epoch", epoch)
            .field("client_sid", client_sid)
            .field("token_len", &token.len())
            .field("msg1_len", &msg1.len())
            .finish_non_exhaustive()
    }
}

impl<'a> Accept<'a> {
    /// Appends the datagram.
    ///
    /// # Errors
    ///
    /// When the message is too long. Nothing was appended.
    pub fn encode(&self, datagram: &mut Vec<u8>) -> Result<(), PacketError> {
        let Self { suite, cid, msg2 } = self;
        let msg2_len = length("msg2", msg2, MESSAGE_MIN, MESSAGE_MAX)?;
        datagram.extend_from_slice(&[kind::ACCEPT, VERSION]);
        datagram.extend_from_slice(&suite.to_le_bytes());
        datagram.extend_from_slice(&cid.to_le_bytes());
        datagram.extend_from_slice(&msg2_len.to_le_bytes());
        datagram.extend_from_slice(msg2);
        Ok(())
    }

    /// The packet that `datagram` is.
    ///
    /// # Errors
    ///
    /// When it is another, or none.
    pub fn decode(datagram: &'a [u8]) -> Result<Self, PacketError> {
        let mut reader = begin(kind::ACCEPT, datagram)?;
        let (suite, cid) = (reader.u16()?, reader.u64()?);
        let msg2_len = reader.u16()?;
        let msg2 = reader.bytes(msg2_len)?;
        reader.finish()?;
        length("msg2", msg2, MESSAGE_MIN, MESSAGE_MAX)?;
        Ok(Self { suite, cid, msg2 })
    }
}
