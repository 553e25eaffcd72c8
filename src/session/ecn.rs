//! Explicit congestion notification: what a path writes into the IP header of a datagram.

/// What the IP header of a datagram says of congestion. Source: RFC 3168 (5), RFC 9331 (4.1).
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[expect(clippy::exhaustive_enums, reason = "two bits, one value of which is `None`")]
pub enum Ecn {
    /// The sender heeds marks, and there was none: ECT(0).
    Capable,
    /// The same, of a sender of L4S: ECT(1).
    Scalable,
    /// A queue on the path was filling: CE.
    Congested,
}
