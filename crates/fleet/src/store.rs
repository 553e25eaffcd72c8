//! What a shared memory of used tokens has to do.

use std::time::Duration;
use whitewater::session::token::TokenId;

/// Why a store did not answer: any error of its client.
pub type StoreError = Box<dyn std::error::Error + Send + Sync>;

/// A memory of used tokens that several servers share. It is called on a thread of its own, so it may block.
///
/// After an error, [`connect`](Self::connect) comes next. Whether the tokens of a failed [`claim`](Self::claim) count as used is open.
pub trait Store: Send + 'static {
    /// Connects, in place of any earlier connection, and checks that the store answers. May take a second.
    ///
    /// # Errors
    ///
    /// It cannot be reached. It is tried again, ever more seldom.
    fn connect(&mut self) -> Result<(), StoreError>;

    /// Claims each of these tokens for this server until no server accepts it any more. Returns for each, in their order, whether it is now
    /// this server's. Who claimed it first keeps it: for anybody else the answer is no, and for the same server it is yes again.
    ///
    /// # Errors
    ///
    /// There was no answer within `limit`, or none that makes sense.
    fn claim(&mut self, tokens: &[TokenId], limit: Duration) -> Result<Vec<bool>, StoreError>;

    /// Checks that the store is still there. Called once a second while there is nothing to claim.
    ///
    /// # Errors
    ///
    /// There was no answer within `limit`.
    fn ping(&mut self, limit: Duration) -> Result<(), StoreError>;
}
