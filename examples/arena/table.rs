//! Prints what each player's session does, once a second.

use crate::bot::Bot;
use crate::server::Arena;
use whitewater::session::ConnectionStats;

/// The counters at the last time.
pub(crate) struct Table {
    before: Vec<Counted>,
}

#[derive(Clone, Copy, Default)]
struct Counted {
    client: ConnectionStats,
    server: ConnectionStats,
    positions: u32,
}

impl Table {
    pub(crate) const fn new() -> Self {
        Self { before: Vec::new() }
    }

    pub(crate) fn print(&mut self, second: u32, arena: &Arena, bots: &[Bot]) {
        if self.before.is_empty() {
            println!("  time  player      rtt   lost up  down    kB/s up   down   positions/s");
        }
        self.before.resize(bots.len(), Counted::default());
        for (bot, before) in bots.iter().zip(&mut self.before) {
            let (Some(client), Some(server)) = (bot.stats(), arena.stats(bot)) else {
                println!("{second:4} s {:>7}   connects", bot.number());
                continue;
            };
            let now = Counted { client, server, positions: bot.positions };
            println!(
                "{second:4} s {:>7} {:>5.1} ms {:>7.1} % {:>3.1} % {:>9.1} {:>6.1} {:>13}",
                bot.number(),
                client.rtt.as_secs_f64() * 1e3,
                lost(&before.client, &client, &before.server, &server),
                lost(&before.server, &server, &before.client, &client),
                (client.bytes_sent - before.client.bytes_sent) as f64 / 1e3,
                (client.bytes_received - before.client.bytes_received) as f64 / 1e3,
                now.positions - before.positions,
            );
            *before = now;
        }
    }
}

/// Percent of what one end has sent and the other has not received. What is on its way counts as lost until it arrives.
fn lost(
    from: &ConnectionStats,
    from_now: &ConnectionStats,
    to: &ConnectionStats,
    to_now: &ConnectionStats,
) -> f64 {
    let sent = from_now.sent - from.sent;
    let received = to_now.received - to.received;
    100.0 * sent.saturating_sub(received) as f64 / sent.max(1) as f64
}
