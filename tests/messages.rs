//! Packets, messages and codes. Each file is about one promise or two.

#[cfg(test)]
mod common;

#[cfg(test)]
mod bits;
#[cfg(test)]
mod channel;
#[cfg(test)]
mod channel_alloc;
#[cfg(test)]
mod code;
#[cfg(test)]
mod fragments;
#[cfg(test)]
mod packet;
#[cfg(test)]
mod packet_hostile;
#[cfg(test)]
mod wire_doc;
