//! Packets, messages and the erasure code. Each file covers a promise or two.

#[cfg(test)]
mod common;

mod channel;
mod channel_alloc;
mod code;
mod derive;
mod fragments;
mod pack;
mod packet;
mod packet_hostile;
mod wire_doc;
