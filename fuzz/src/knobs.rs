//! A [`Config`] in a script: 25 bytes, two per setting.

use super::script::Script;
use whitewater::Repairs;
use whitewater::kcp::{Config, Congestion, Modern, Recovery};

/// Reads a config. Every setting is in range unless the first byte says otherwise.
pub fn read(script: &mut Script<'_>) -> Config {
    let flags = script.u8();
    let mut knob = |min, max| if flags & RAW != 0 { script.u16() } else { script.in_range(min, max) };
    let mtu = knob(50, u16::MAX - 28);
    Config {
        mtu,
        rcv_mtu: knob(mtu.clamp(50, 65_507), 65_507),
        snd_wnd: knob(1, u16::MAX),
        rcv_wnd: knob(128, u16::MAX),
        nodelay: u8::try_from(knob(0, 2)).unwrap_or(u8::MAX),
        interval: knob(10, 5000),
        fast_resend: knob(0, u16::MAX),
        min_rto: Some(knob(0, 60_000)).filter(|_| flags & MIN_RTO != 0),
        fast_limit: knob(0, u16::MAX),
        dead_link: knob(1, u16::MAX),
        snd_queue: knob(1, u16::MAX).into(),
        snd_queue_bytes: u32::from(mtu) + u32::from(knob(0, u16::MAX)) * QUEUE_UNIT,
        congestion: if flags & NC != 0 { Congestion::None } else { Congestion::Kcp },
        stream: flags & STREAM != 0,
        recovery: recovery(flags),
    }
}

/// By timing, at once or at intervals, or as in ikcp.c.
fn recovery(flags: u8) -> Recovery {
    if flags & MODERN == 0 {
        return Recovery::Classic;
    }
    Recovery::Modern(Modern { at_once: flags & AT_ONCE != 0, repairs: Repairs::Off })
}

/// Writes a valid config so that [`read`] returns it, except for limits of the send queue that a script
/// cannot express exactly.
pub fn write(config: &Config, script: &mut Vec<u8>) {
    let flag = |set, flag| if set { flag } else { 0 };
    let modern = config.recovery != Recovery::Classic;
    script.push(
        flag(config.stream, STREAM)
            | flag(config.congestion == Congestion::None, NC)
            | flag(config.min_rto.is_some(), MIN_RTO)
            | flag(modern, MODERN | AT_ONCE),
    );
    let queue_bytes = config.snd_queue_bytes.saturating_sub(config.mtu.into()) / QUEUE_UNIT;
    for knob in [
        config.mtu - 50,
        config.rcv_mtu - config.mtu,
        config.snd_wnd - 1,
        config.rcv_wnd - 128,
        config.nodelay.into(),
        config.interval - 10,
        config.fast_resend,
        config.min_rto.unwrap_or_default(),
        config.fast_limit,
        config.dead_link - 1,
        u16::try_from(config.snd_queue - 1).unwrap_or(u16::MAX - 1),
        u16::try_from(queue_bytes).unwrap_or(u16::MAX),
    ] {
        script.extend_from_slice(&knob.to_le_bytes());
    }
}

const STREAM: u8 = 1;
const NC: u8 = 2;
const MIN_RTO: u8 = 4;
const MODERN: u8 = 8;
const AT_ONCE: u8 = 16;
const RAW: u8 = 0x80;
/// Step of `snd_queue_bytes` in a script.
const QUEUE_UNIT: u32 = 256;
