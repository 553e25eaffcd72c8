//! Half a minute of a small game: a server and a player over a phone's link, in virtual time, and what it costs.
//!
//! The server sends a level in slices, and positions 20 times a second, of which only the newest counts. Both ends
//! chat, reliably and in order. To reuse: [`Positions`], [`config`] and [`End`]. Replace the simulated links by a UDP
//! socket, and the counted milliseconds by a clock. A session would do more for you: it cuts and joins a level itself.
//!
//! ```text
//! cargo run --release --example messages
//! ```

use std::error::Error;
use std::time::Duration;
use whitewater::channel::{Carrier, Channels, ChannelsConfig, Resend};
use whitewater::machine::DatagramQueue;
use whitewater::message::{BitReader, BitWriter, BitsError, shape};
use whitewater::packet::{Endpoint, PacketConfig};
use whitewater::{Channel, ChannelConfig, Message, Time};
use whitewater_sim::{IP_AND_UDP, Link, LinkConfig};

/// The positions of all players.
struct Positions {
    tick: u32,
    runners: Vec<Runner>,
}

struct Runner {
    x: f32,
    y: f32,
    is_alive: bool,
}

impl Message for Positions {
    const SHAPE: u64 = shape("Positions: u32, up to 64", &[Runner::SHAPE]);

    fn pack(&self, to: &mut BitWriter) -> Result<(), BitsError> {
        self.tick.pack(to)?;
        to.list(&self.runners, 64, |to, runner| runner.pack(to))
    }

    fn unpack(from: &mut BitReader<'_>) -> Result<Self, BitsError> {
        Ok(Self { tick: u32::unpack(from)?, runners: from.list(64, Runner::unpack)? })
    }
}

/// 14 + 14 + 1 bits.
impl Message for Runner {
    const SHAPE: u64 = shape("Runner: two of 0..=128 by 0.01, bool", &[]);

    fn pack(&self, to: &mut BitWriter) -> Result<(), BitsError> {
        to.float(self.x, 0.0..=128.0, 0.01)?;
        to.float(self.y, 0.0..=128.0, 0.01)?;
        self.is_alive.pack(to)
    }

    fn unpack(from: &mut BitReader<'_>) -> Result<Self, BitsError> {
        Ok(Self {
            x: from.float(0.0..=128.0, 0.01)?,
            y: from.float(0.0..=128.0, 0.01)?,
            is_alive: bool::unpack(from)?,
        })
    }
}

/// The channels, the most urgent first. The same at both ends.
const POSITIONS: Channel<Positions> = Channel::sequenced(0);
const CHAT: Channel<String> = Channel::ordered(1);
const LEVEL: Channel = Channel::ordered(2);

fn config() -> ChannelsConfig {
    let (carrier, expire_after) = (Carrier::Packets, Some(Duration::from_secs(10)));
    let chat = ChannelConfig { carrier, expire_after, ..CHAT.config() };
    // Distant peers acknowledge later than after the default 100 ms, and resending the many slices of a level
    // needlessly is expensive.
    let level = ChannelConfig { carrier, resend: Resend::Rtt(150), ..LEVEL.config() };
    ChannelsConfig { channels: vec![POSITIONS.into(), chat, level], ..ChannelsConfig::default() }
}

/// One end of the connection: channels over numbered packets.
struct End {
    channels: Channels,
    packets: Endpoint<DatagramQueue>,
    datagrams: usize,
    bytes: usize,
}

impl End {
    fn new() -> Result<Self, Box<dyn Error>> {
        let packets = PacketConfig { protocol_id: 0x6761_6d65, ..PacketConfig::default() };
        Ok(Self {
            channels: Channels::new(&config())?,
            packets: Endpoint::new(&packets, DatagramQueue::new())?,
            datagrams: 0,
            bytes: 0,
        })
    }

    /// Sends one packet per tick, with or without messages, because it also acknowledges.
    fn send_packet(&mut self, now: Time, link: &mut Link) -> Result<(), Box<dyn Error>> {
        let payload = self.channels.write(now, self.packets.stats().rtt)?;
        let sequence = self.packets.send(now, payload)?;
        self.channels.on_sent(now, sequence);
        while let Some(datagram) = self.packets.output_mut().pop() {
            link.send(now, datagram);
            self.datagrams += 1;
            self.bytes += datagram.len() + IP_AND_UDP;
        }
        Ok(())
    }

    fn receive(&mut self, now: Time, link: &mut Link) {
        let Self { channels, packets, .. } = self;
        while let Some(datagram) = link.arrive(now) {
            // Damaged, late and duplicate datagrams are counted and change nothing.
            let _ = packets.receive_if(now, datagram, |payload| channels.read(payload).is_ok());
        }
        while let Some(sequence) = packets.pop_acked() {
            channels.on_acked(sequence);
        }
        while let Some(sequence) = packets.pop_lost() {
            channels.on_lost(sequence);
        }
    }
}

/// What the player has seen.
#[derive(Default)]
struct Seen {
    positions: u32,
    age: u64,
    chats: u32,
    level: Vec<u8>,
    level_at: Option<Time>,
}

impl Seen {
    fn take(&mut self, now: Time, channels: &mut Channels) {
        while let Some(Positions { tick, runners }) = channels.recv(POSITIONS) {
            self.positions += u32::from(runners.iter().any(|runner| runner.is_alive));
            self.age += now.as_millis() - u64::from(tick) * TICK;
        }
        while let Some(text) = channels.recv(CHAT) {
            self.chats += u32::from(text.starts_with("Wave"));
        }
        while let Some(slice) = channels.recv(LEVEL) {
            self.level.extend_from_slice(&slice);
            self.level_at = Some(now).filter(|_| self.level.len() == LEVEL_BYTES);
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let link = |stream| Link::new(LinkConfig::mobile(), 7, stream);
    let (mut there, mut back) = (link(1)?, link(2)?);
    let (mut server, mut player, mut seen) = (End::new()?, End::new()?, Seen::default());
    for slice in vec![7; LEVEL_BYTES].chunks(SLICE) {
        server.channels.send(Time::ZERO, LEVEL, slice)?; // there is room for all of them
    }
    for tick in 0..TICKS {
        let now = Time::from_millis(u64::from(tick) * TICK);
        if tick % 3 == 0 {
            server.channels.send(now, POSITIONS, &positions(tick))?;
        }
        if tick % 60 == 0 {
            server.channels.send(now, CHAT, &format!("Wave {} begins", tick / 60))?;
            player.channels.send(now, CHAT, &"ready".to_owned())?;
        }
        server.send_packet(now, &mut there)?;
        player.send_packet(now, &mut back)?;
        player.receive(now, &mut there);
        server.receive(now, &mut back);
        seen.take(now, &mut player.channels);
        while server.channels.recv(CHAT).is_some() {}
    }
    print(&server, &player, &seen);
    Ok(())
}

fn positions(tick: u32) -> Positions {
    let runner = |number: u8| Runner { x: f32::from(number) * 2.0, y: 64.0, is_alive: number > 0 };
    Positions { tick, runners: (0..24).map(runner).collect() }
}

fn print(server: &End, player: &End, seen: &Seen) {
    let seconds = (u64::from(TICKS) * TICK) as f64 / 1000.0;
    println!(
        "{seconds} s, {:.0} % of the server's packets lost lately\n",
        100.0 * server.packets.stats().loss
    );
    println!(
        "positions seen   {} of {}, {} ms old",
        seen.positions,
        TICKS / 3,
        seen.age / u64::from(seen.positions.max(1))
    );
    println!("chats seen       {} of {}", seen.chats, TICKS.div_ceil(60));
    match seen.level_at {
        Some(at) => println!("level            {LEVEL_BYTES} bytes after {at}"),
        None => println!("level            not yet"),
    }
    for (name, end) in [("server", server), ("player", player)] {
        let resends = end.channels.stats(CHAT).resends + end.channels.stats(LEVEL).resends;
        let rate = 8e-3 * end.bytes as f64 / seconds;
        println!(
            "{name} sent      {} packets, {rate:.0} kbit/s with headers, {resends} messages and slices again",
            end.datagrams
        );
    }
}

/// Length of a tick, ms.
const TICK: u64 = 16;
/// Half a minute.
const TICKS: u32 = 1875;
const LEVEL_BYTES: usize = 200_000;
/// Bytes of the level per message: less than a packet has room for.
const SLICE: usize = 1000;
