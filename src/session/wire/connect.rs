//! CONNECT and ACCEPT: the messages of the handshake, with what has to be known before they can be read.

use super::reader::{Reader, Short, Value, values};
use super::{COOKIE_LEN, MESSAGE_MAX, MESSAGE_MIN, PacketError, TOKEN_MAX, append, in_length, kind, whole};

values! {
    /// The client brings the cookie back and begins the handshake.
    #[derive(Clone, Copy, Eq, PartialEq)]
    Connect<'a> {
        /// As in the [`Hello`](super::Hello).
        suite: u16,
        /// As in the [`Hello`](super::Hello).
        protocol_id: u64,
        /// As in the [`Hello`](super::Hello).
        cid: u64,
        /// As in the [`Challenge`](super::Challenge).
        epoch: u32,
        /// As in the [`Challenge`](super::Challenge).
        cookie: [u8; COOKIE_LEN],
        /// What the server has to write into the packets that it sends to this client.
        client_sid: u32,
        /// A sealed connect token, or nothing; at most [`TOKEN_MAX`] bytes.
        token: &'a [u8],
        /// The first message of the handshake, [`MESSAGE_MIN`] to [`MESSAGE_MAX`] bytes.
        msg1: &'a [u8],
    }

    /// The server ends the handshake.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    Accept<'a> {
        /// As in the [`Hello`](super::Hello).
        suite: u16,
        /// As in the [`Hello`](super::Hello).
        cid: u64,
        /// The second message of the handshake, [`MESSAGE_MIN`] to [`MESSAGE_MAX`] bytes.
        msg2: &'a [u8],
    }
}

impl<'a> Connect<'a> {
    /// Appends the datagram.
    pub fn encode(&self, datagram: &mut Vec<u8>) -> Result<(), PacketError> {
        self.check()?;
        append(kind::CONNECT, self, datagram);
        Ok(())
    }

    /// The packet that `datagram` is.
    pub fn decode(datagram: &'a [u8]) -> Result<Self, PacketError> {
        let packet: Self = whole(kind::CONNECT, datagram)?;
        packet.check().map(|()| packet)
    }

    fn check(&self) -> Result<(), PacketError> {
        in_length("token", self.token, 0..=TOKEN_MAX)?;
        in_length("msg1", self.msg1, MESSAGE_MIN..=MESSAGE_MAX)
    }
}

impl std::fmt::Debug for Connect<'_> {
    /// Without the token and the cookie: who has them can use them.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connect")
            .field("suite", &self.suite)
            .field("cid", &self.cid)
            .field("client_sid", &self.client_sid)
            .field("token_len", &self.token.len())
            .finish_non_exhaustive()
    }
}

impl<'a> Accept<'a> {
    /// Appends the datagram.
    pub fn encode(&self, datagram: &mut Vec<u8>) -> Result<(), PacketError> {
        self.check()?;
        append(kind::ACCEPT, self, datagram);
        Ok(())
    }

    /// The packet that `datagram` is.
    pub fn decode(datagram: &'a [u8]) -> Result<Self, PacketError> {
        let packet: Self = whole(kind::ACCEPT, datagram)?;
        packet.check().map(|()| packet)
    }

    fn check(&self) -> Result<(), PacketError> {
        in_length("msg2", self.msg2, MESSAGE_MIN..=MESSAGE_MAX)
    }
}
