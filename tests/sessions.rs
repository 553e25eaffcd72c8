//! Sessions without I/O, in virtual time. Each file is about one promise or two.

#[cfg(test)]
mod common;

#[cfg(test)]
mod session;
#[cfg(test)]
mod session_admission;
#[cfg(test)]
mod session_attacks;
#[cfg(test)]
mod session_bursts;
#[cfg(test)]
mod session_channels;
#[cfg(test)]
mod session_close;
#[cfg(test)]
mod session_doc;
#[cfg(test)]
mod session_ecn;
#[cfg(test)]
mod session_events;
#[cfg(test)]
mod session_fairness;
#[cfg(test)]
mod session_handshake;
#[cfg(test)]
mod session_in_place;
#[cfg(test)]
mod session_knobs;
#[cfg(test)]
mod session_lessons;
#[cfg(test)]
mod session_memory;
#[cfg(test)]
mod session_mtu;
#[cfg(test)]
mod session_mtu_random;
#[cfg(test)]
mod session_paths;
#[cfg(test)]
mod session_raw;
#[cfg(test)]
mod session_redirect;
#[cfg(test)]
mod session_riding;
#[cfg(test)]
mod session_states;
#[cfg(test)]
mod session_strangers;
#[cfg(test)]
mod session_timers;
#[cfg(all(test, feature = "crypto"))]
mod session_tokens;
#[cfg(test)]
mod session_wire;
#[cfg(test)]
mod session_writable;
