#![doc = "Game packets over UDP."]

pub mod arq;
#[cfg(feature = "net")]
pub mod net;
pub mod ring;
pub mod seq;
pub mod time;
pub mod wire;

pub use arq::{
    Config, ConfigError, InputError, Kcp, Recovery, RecvError, Rejected, SendError, Stats,
    congestion::CongestionControl,
};
pub use seq::{Conv, Sn};
pub use time::{Millis, Time};
pub use wire::{DatagramQueue, Output};
