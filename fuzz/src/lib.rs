//! What must hold for every input, as functions of bytes. The fuzz targets search for inputs that break it;
//! `tests/regressions.rs` of the library replays those found.

pub mod bits;
pub mod channel;
pub mod code;
pub mod compact;
pub mod crowd;
pub mod datagram;
pub mod derive;
pub mod endpoint;
pub mod fragment;
pub mod frames;
pub mod inbox;
pub mod input;
pub mod knobs;
mod log;
#[cfg(feature = "crypto")]
pub mod networks;
pub mod packet;
pub mod pair;
pub mod protection;
pub mod replay;
pub mod script;
pub mod seeds;
pub mod segment;
pub mod session;
#[cfg(feature = "net")]
pub mod threads;
#[cfg(feature = "crypto")]
pub mod token;
#[cfg(feature = "crypto")]
pub mod underlays;

/// A property and the name of its fuzz target.
pub type Target = (&'static str, fn(&[u8]));

/// Every property of the library.
pub const TARGETS: &[Target] = &[
    ("compact_decode", compact::compact),
    ("segment_decode", segment::segment_decode),
    ("kcp_input", input::kcp_input),
    ("kcp_pair", pair::kcp_pair),
    ("code_decode", code::code_decode),
    ("protection", protection::protection),
    ("packet_read", packet::packet_read),
    ("fragment_reassembly", fragment::fragment_reassembly),
    ("bits_read", bits::bits_read),
    ("message_unpack", derive::message_unpack),
    ("channel_pair", channel::channel_pair),
    ("dgram_decode", datagram::dgram_decode),
    ("frames_decode", frames::frames_decode),
    ("replay_window", replay::replay_window),
    ("server_endpoint", endpoint::server_endpoint),
    ("client_endpoint", endpoint::client_endpoint),
    ("server_crowd", crowd::server_crowd),
    ("session_script", session::session_script),
    #[cfg(feature = "crypto")]
    ("token_open", token::token_open),
    #[cfg(feature = "crypto")]
    ("server_underlays", underlays::server_underlays),
    #[cfg(feature = "crypto")]
    ("client_networks", networks::client_networks),
];
