//! What can go wrong, and what to do then.

errors! {
    /// Why a client was not sent to another server. Nothing has changed.
    RedirectError {
        /// It does not fit into one datagram of the session: put fewer addresses into it.
        "a token of {len} bytes, longer than the maximum of {max}" TooLong { len: usize, max: usize },
        /// It is empty, or not the result of `PublicToken::encode`.
        "these bytes are not a connect token" NoToken,
        /// There is no such session, or it is closing.
        "the session is closed" Closed,
    }

    /// Why a client that asks to join was neither admitted nor rejected. Nothing has changed.
    DecisionError {
        /// There is no such request: it was answered, waited too long, or others needed its room.
        "there is no request of a client with this id any more" NoRequest,
        "{len} bytes for the client, more than the maximum of {max}" TooLong { len: usize, max: usize },
        /// The code is one of the library's own: use one below [`RESERVED`](super::code::RESERVED).
        "the code {code:#06x} is not below 0xff00, where the library's own codes begin" Reserved { code: u16 },
    }

    /// Why a session was not closed with a code and a text. Nothing has changed.
    CloseTextError {
        /// The code is one of the library's own: use one below [`RESERVED`](super::code::RESERVED).
        "the code {code:#06x} is not below 0xff00, where the library's own codes begin" Reserved { code: u16 },
        "a text of {len} bytes, longer than the maximum of {max}" TooLong { len: usize, max: usize },
        "the text has control characters" Control,
    }
}
