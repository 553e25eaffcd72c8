//! What can go wrong, and what to do then.

errors! {
    /// Why a client is not sent to another server. Nothing has changed.
    RedirectError {
        /// It does not fit into one datagram of the session: give it fewer addresses.
        "a token of {len} bytes, where {max} is the most" TooLong { len: usize, max: usize },
        /// It is not what `PublicToken::encode` gives, or it is empty.
        "these bytes are no connect token" NoToken,
        /// There is no such session, or it is closing.
        "the session is closed" Closed,
    }

    /// Why a client that asks to come in is neither accepted nor rejected. Nothing has changed.
    DecisionError {
        /// There is no such request: it was answered, or not for too long, or others needed its room.
        "nobody asks to come in by this number any more" NoRequest,
        "{len} bytes for the client, where {max} is the most" TooLong { len: usize, max: usize },
    }

    /// Why a session is not closed with a text. Nothing has changed.
    CloseTextError {
        "a text of {len} bytes, where {max} is the most" TooLong { len: usize, max: usize },
        "the text has control characters" Control,
    }
}
