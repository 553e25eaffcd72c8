//! Sessions without I/O, in virtual time. Each file covers a promise or two.

#[cfg(test)]
mod common;

#[cfg(test)]
mod raw_peers;
mod session;
mod session_admission;
mod session_bulk;
mod session_bursts;
#[cfg(feature = "crypto")]
mod session_bytes;
mod session_channels;
mod session_close;
mod session_configs;
mod session_doc;
#[cfg(feature = "crypto")]
mod session_early;
mod session_ecn;
mod session_events;
#[cfg(test)]
mod session_exchange;
mod session_fairness;
mod session_greedy;
mod session_handshake;
mod session_in_place;
mod session_knobs;
mod session_lessons;
mod session_long;
mod session_loss;
mod session_lossless;
mod session_memory;
mod session_mtu;
mod session_mtu_random;
#[cfg(feature = "crypto")]
mod session_networks;
#[cfg(feature = "crypto")] // only authentic packets may move a session
mod session_paths;
mod session_proxies;
mod session_race;
mod session_redirect;
mod session_refused;
mod session_rest;
mod session_riding;
mod session_room;
mod session_routing;
mod session_states;
mod session_strangers;
mod session_tickets;
mod session_timers;
#[cfg(feature = "crypto")]
mod session_tokens;
mod session_wire;
mod session_writable;
