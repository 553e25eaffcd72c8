//! How well players are served.

use whitewater::Server;

/// The median of their round trips, ms, and the share of lost packets.
pub(crate) fn of(server: &Server) -> (f32, f32) {
    let stats: Vec<_> = server.clients().filter_map(|id| Some(server.connection(id)?.stats())).collect();
    let mut rtts: Vec<_> = stats.iter().map(|stats| stats.rtt.as_secs_f32() * 1000.0).collect();
    rtts.sort_by(f32::total_cmp);
    let lost: u64 = stats.iter().map(|stats| stats.packets_lost).sum();
    let judged: u64 = stats.iter().map(|stats| stats.packets_judged).sum();
    let per_mille = u16::try_from(lost * 1000 / judged.max(1)).unwrap_or(1000);
    (rtts.get(rtts.len() / 2).copied().unwrap_or_default(), f32::from(per_mille.min(1000)) / 1000.0)
}
