//! Builds a crate for browsers.
