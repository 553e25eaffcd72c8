//! Connect tokens.
