//! What a lobby and its players tell each other. Terms count hosts from 1: what is said about an earlier one is out of date.

use super::fields::{Fields, message};
use std::net::SocketAddr;
use whitewater::message::BitsError;

/// What a lobby tells a player.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Post {
    /// You host from now on.
    Host {
        /// The term.
        term: u32,
        /// The player's own number, as in its connect token.
        you: u64,
        /// Whether to begin a new match if the last host has left no will.
        may_begin: bool,
        /// The relay.
        relay: SocketAddr,
        /// A [`HostTicket`](whitewater::session::HostTicket) for it.
        ticket: Vec<u8>,
        /// The key that seals the connect tokens of this term.
        key: Vec<u8>,
    },
    /// To the host: who gets its wills.
    Heirs {
        /// Their numbers, the first heir first.
        heirs: Vec<u64>,
    },
    /// Somebody hosts: this is how to join them.
    Join {
        /// The term.
        term: u32,
        /// A [`PublicToken`](whitewater::session::token::PublicToken).
        token: Vec<u8>,
    },
    /// To the host: somebody does not hear you. Are you there?
    Ask {
        /// The term.
        term: u32,
    },
}

/// What a player tells a lobby.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Report {
    /// I host, and this is where guests can reach me.
    At {
        /// The term.
        term: u32,
        /// At most [`ADDRESSES_MAX`], the relay's among them.
        addresses: Vec<SocketAddr>,
    },
    /// I cannot host: the last host has left me no will, or I have no socket.
    Decline {
        /// The term.
        term: u32,
    },
    /// I do not hear the host.
    Lost {
        /// The term.
        term: u32,
        /// My session with it is over, so I need another token.
        is_over: bool,
    },
    /// I am there: the answer to a question, and to being told of a host.
    Here {
        /// The term.
        term: u32,
    },
}

message!(Post, "posts of a lobby of the tower defence", Self::Ask { term: 0 });
message!(Report, "reports to a lobby of the tower defence", Self::Here { term: 0 });

impl Post {
    fn pass<F: Fields>(&mut self, fields: &mut F) -> Result<(), BitsError> {
        let mut kind = match self {
            Self::Host { .. } => 0,
            Self::Heirs { .. } => 1,
            Self::Join { .. } => 2,
            Self::Ask { .. } => 3_u8,
        };
        fields.int(&mut kind, 0..=3)?;
        if F::READS {
            let (term, relay) = (0, NOWHERE);
            *self = match kind {
                0 => {
                    Self::Host { term, you: 0, may_begin: false, relay, ticket: Vec::new(), key: Vec::new() }
                }
                1 => Self::Heirs { heirs: Vec::new() },
                2 => Self::Join { term, token: Vec::new() },
                _ => Self::Ask { term },
            };
        }
        match self {
            Self::Host { term, you, may_begin, relay, ticket, key } => {
                fields.int(term, 0..=u32::MAX)?;
                fields.u64(you)?;
                fields.bool(may_begin)?;
                address(fields, relay)?;
                bytes(fields, ticket)?;
                bytes(fields, key)
            }
            Self::Heirs { heirs } => fields.list(heirs, HEIRS_MAX, |fields, heir| fields.u64(heir)),
            Self::Join { term, token } => {
                fields.int(term, 0..=u32::MAX)?;
                bytes(fields, token)
            }
            Self::Ask { term } => fields.int(term, 0..=u32::MAX),
        }
    }
}

impl Report {
    fn pass<F: Fields>(&mut self, fields: &mut F) -> Result<(), BitsError> {
        let mut kind = match self {
            Self::At { .. } => 0,
            Self::Decline { .. } => 1,
            Self::Lost { .. } => 2,
            Self::Here { .. } => 3_u8,
        };
        fields.int(&mut kind, 0..=3)?;
        if F::READS {
            let term = 0;
            *self = match kind {
                0 => Self::At { term, addresses: Vec::new() },
                1 => Self::Decline { term },
                2 => Self::Lost { term, is_over: false },
                _ => Self::Here { term },
            };
        }
        match self {
            Self::At { term, addresses } => {
                fields.int(term, 0..=u32::MAX)?;
                let mut all: Vec<Where> = addresses.iter().copied().map(Where).collect();
                fields.list(&mut all, ADDRESSES_MAX, |fields, at| address(fields, &mut at.0))?;
                *addresses = all.into_iter().map(|at| at.0).collect();
                Ok(())
            }
            Self::Lost { term, is_over } => {
                fields.int(term, 0..=u32::MAX)?;
                fields.bool(is_over)
            }
            Self::Decline { term } | Self::Here { term } => fields.int(term, 0..=u32::MAX),
        }
    }
}

/// An address that can be blank.
struct Where(SocketAddr);

impl Default for Where {
    fn default() -> Self {
        Self(NOWHERE)
    }
}

fn address<F: Fields>(fields: &mut F, at: &mut SocketAddr) -> Result<(), BitsError> {
    let mut text = if F::READS { String::new() } else { at.to_string() };
    fields.string(&mut text, 64)?;
    *at = text.parse().map_err(|_| BitsError::Bounds)?;
    (at.to_string() == text).then_some(()).ok_or(BitsError::Bounds) // there is one way to write it
}

fn bytes<F: Fields>(fields: &mut F, bytes: &mut Vec<u8>) -> Result<(), BitsError> {
    fields.list(bytes, BYTES_MAX, |fields, byte| fields.int(byte, 0..=u8::MAX))
}

const NOWHERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED), 0);
/// Most heirs that are named at a time.
const HEIRS_MAX: usize = 8;
/// Most addresses of a host: one less than a connect token has room for.
pub const ADDRESSES_MAX: usize = 3;
/// Most bytes of a token or a ticket.
const BYTES_MAX: usize = 600;
