//! Half a minute of a small game: a server and a player over a phone's link, in virtual time, and what it costs.
//!
//! The server sends a level as a block and positions 20 times a second, of which only the newest counts. Both chat, reliably and in
//! order. What you would take over is [`Game`], [`config`] and [`End`]; in place of the simulated links goes a UDP socket, and in
//! place of the counted milliseconds a clock.
//!
//! ```text
//! cargo run --release --example messages
//! ```

use std::error::Error;
use std::time::Duration;
use whitewater::Time;
use whitewater::machine::DatagramQueue;
use whitewater::message::channel::{ChannelConfig, Channels, ChannelsConfig, Received, Resend};
use whitewater::message::{BitsError, Message, Serialize, Stream};
use whitewater::packet::{Endpoint, PacketConfig};
use whitewater_sim::{IP_AND_UDP, Link, LinkConfig};

/// What the ends tell each other.
enum Game {
    Positions { tick: u32, runners: Vec<Runner> },
    Chat { text: String },
}

#[derive(Default)]
struct Runner {
    x: f32,
    y: f32,
    is_alive: bool,
}

impl Serialize for Game {
    fn serialize<S: Stream>(&mut self, stream: &mut S) -> Result<(), BitsError> {
        match self {
            Self::Positions { tick, runners } => {
                stream.bits(tick, 32)?;
                stream.vec(runners, 64, |stream, runner| runner.serialize(stream))
            }
            Self::Chat { text } => stream.string(text, 200),
        }
    }
}

impl Serialize for Runner {
    /// 14 + 14 + 1 bits.
    fn serialize<S: Stream>(&mut self, stream: &mut S) -> Result<(), BitsError> {
        stream.float(&mut self.x, 0.0..=128.0, 0.01)?;
        stream.float(&mut self.y, 0.0..=128.0, 0.01)?;
        stream.bool(&mut self.is_alive)
    }
}

impl Message for Game {
    const KINDS: u32 = 2;

    fn kind(&self) -> u32 {
        match self {
            Self::Positions { .. } => 0,
            Self::Chat { .. } => 1,
        }
    }

    fn blank(kind: u32) -> Option<Self> {
        match kind {
            0 => Some(Self::Positions { tick: 0, runners: Vec::new() }),
            1 => Some(Self::Chat { text: String::new() }),
            _ => None,
        }
    }
}

/// The channels, the most urgent first. Both ends have the same.
const POSITIONS: usize = 0;
const CHAT: usize = 1;
const LEVEL: usize = 2;

fn config() -> ChannelsConfig {
    let chat =
        ChannelConfig { expire_after: Some(Duration::from_secs(10)), ..ChannelConfig::reliable_ordered() };
    // Far peers acknowledge later than after the usual 100 ms, and a level is many slices to send in vain.
    let level = ChannelConfig { resend: Resend::Rtt(150), ..ChannelConfig::blocks() };
    ChannelsConfig {
        channels: vec![ChannelConfig::unreliable_sequenced(), chat, level],
        ..ChannelsConfig::default()
    }
}

/// One end of the connection: channels over numbered packets.
struct End {
    channels: Channels<Game>,
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

    /// One packet a tick, with messages or without: it tells the peer what has arrived as well.
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
            // What is damaged, late or doubled is counted and changes nothing.
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
    level_at: Option<Time>,
}

impl Seen {
    fn take(&mut self, now: Time, channels: &mut Channels<Game>) {
        for channel in [POSITIONS, CHAT, LEVEL] {
            while let Some(received) = channels.recv(channel) {
                match received {
                    Received::Message(Game::Positions { tick, runners }) => {
                        self.positions += u32::from(runners.iter().any(|runner| runner.is_alive));
                        self.age += now.as_millis() - u64::from(tick) * TICK;
                    }
                    Received::Message(Game::Chat { text }) => {
                        self.chats += u32::from(text.starts_with("Wave"));
                    }
                    Received::Block(_) => self.level_at = Some(now),
                }
            }
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let link = |stream| Link::new(LinkConfig::mobile(), 7, stream);
    let (mut there, mut back) = (link(1)?, link(2)?);
    let (mut server, mut player, mut seen) = (End::new()?, End::new()?, Seen::default());
    server.channels.send_block(LEVEL, &vec![7; LEVEL_BYTES])?;
    for tick in 0..TICKS {
        let now = Time::from_millis(u64::from(tick) * TICK);
        if tick % 3 == 0 {
            server.channels.send(POSITIONS, now, positions(tick))?;
        }
        if tick % 60 == 0 {
            server.channels.send(CHAT, now, Game::Chat { text: format!("Wave {} begins", tick / 60) })?;
            player.channels.send(CHAT, now, Game::Chat { text: "ready".into() })?;
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

fn positions(tick: u32) -> Game {
    let runner = |number: u8| Runner { x: f32::from(number) * 2.0, y: 64.0, is_alive: number > 0 };
    Game::Positions { tick, runners: (0..24).map(runner).collect() }
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
        let resends: u64 =
            [POSITIONS, CHAT, LEVEL].map(|channel| end.channels.stats(channel).resends).iter().sum();
        let rate = 8e-3 * end.bytes as f64 / seconds;
        println!(
            "{name} sent      {} packets, {rate:.0} kbit/s with headers, {resends} messages and slices again",
            end.datagrams
        );
    }
}

/// ms of a tick.
const TICK: u64 = 16;
/// Half a minute.
const TICKS: u32 = 1875;
const LEVEL_BYTES: usize = 200_000;
