//! Why a token is none.

use crate::session::wire::Short;
use thiserror::Error;

/// Why a token does not let anybody in, in the order in which it is looked at.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum TokenError {
    /// It does not have its length.
    #[error("{have} bytes are no token")]
    Length { have: usize },
    /// It is of another version.
    #[error("version {found} of tokens is not ours")]
    Version { found: u8 },
    /// It is for another server.
    #[error("the token is for server {found}")]
    Server { found: u64 },
    /// It is sealed with a key that we do not have, or not any more.
    #[error("the token is sealed with key {found}")]
    Key { found: u8 },
    /// It is over.
    #[error("the token ended at {expires}")]
    Expired { expires: u64 },
    /// It would hold for longer than any may.
    #[error("the token ends at {expires}, too far in the future")]
    TooLong { expires: u64 },
    /// It is not what the matchmaker sealed, or for another protocol.
    #[error("the token is not authentic")]
    Forged,
    /// It is for another suite.
    #[error("the token is for suite {found:#06x}")]
    Suite { found: u16 },
    /// The matchmaker sealed what no token has in it.
    #[error("there is no token under the seal")]
    Content,
    /// It is older than this server.
    #[error("the token was made at {created}, before the server")]
    BeforeStart { created: u64 },
    /// It was used before.
    #[error("the token was used before")]
    Used,
    /// So many tokens were used that no more can be remembered: the client may try again later.
    #[error("no room to remember another token")]
    Full,
    /// The program was built without the feature `crypto`, which tokens take.
    #[error("tokens are not built in")]
    NotBuiltIn,
}

/// What no token can be made with.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
#[error("no token has such a {field}")]
pub struct MintError {
    /// The field.
    pub field: &'static str,
}

impl From<Short> for TokenError {
    fn from(Short { have }: Short) -> Self {
        Self::Length { have }
    }
}
