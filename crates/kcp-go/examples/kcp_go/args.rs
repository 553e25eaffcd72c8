//! The command line.

use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;
use std::time::Duration;
use whitewater::kcp::{Config, Conv, Recovery};
use whitewater_kcp_go::{Config as Wire, Key, Mode, Shards};

pub(crate) const USAGE: &str = "\
kcp_go server|client|pipe ADDRESS [--option VALUE]..
  --crypt NAME     null none xor aes aes-128 aes-192 salsa20 sm4 twofish blowfish
                   cast5 3des xtea aes-128-gcm; aes unless given
  --key PHRASE     kcptun's --key; its default unless given, which is no secret
  --fec D,P        data and parity shards, 0,0 for none; 10,3 unless given
  --mtu BYTES      longest datagram, all of it; 1350 unless given
  --mode NAME      normal fast fast2 fast3; fast unless given
  --windows S,R    segments sent and received; 1024,1024 unless given
  --classic        detect losses as ikcp.c does, not by timing
  --conv NUMBER    conversation of a client or pipe; random unless given
  --bytes NUMBER   how much a client sends; 100000 unless given
  --seconds N      when a client gives up; 30 unless given
  --linger MS      how long a pipe waits for more after its input has ended; 1000 unless given";

#[derive(Clone, Copy, Debug)]
pub(crate) enum Command {
    /// Echoes everything.
    Server,
    /// Sends bytes and checks the echo.
    Client,
    /// Connects standard input and output to a session.
    Pipe,
}

/// The parsed command line.
#[derive(Clone, Debug)]
pub(crate) struct Args {
    pub(crate) command: Command,
    pub(crate) address: SocketAddr,
    pub(crate) wire: Wire,
    pub(crate) config: Config,
    pub(crate) conv: Conv,
    pub(crate) bytes: usize,
    pub(crate) patience: Duration,
    pub(crate) linger: Duration,
}

impl Args {
    /// Parses the command line. An error is one line that says what is wrong.
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let command = match words.next().as_deref() {
            Some("server") => Command::Server,
            Some("client") => Command::Client,
            Some("pipe") => Command::Pipe,
            Some(other) => return Err(format!("unknown command {other}: use server, client or pipe")),
            None => return Err("the command is missing: use server, client or pipe".into()),
        };
        let address = words.next().ok_or("the address is missing")?;
        let mut args = Self {
            command,
            address: resolved(&address)?,
            wire: Wire::kcptun(Key::kcptun("it's a secrect")),
            config: Config { snd_wnd: 1024, rcv_wnd: 1024, ..Mode::Fast.config() },
            conv: random_conv()?,
            bytes: 100_000,
            patience: Duration::from_secs(30),
            linger: Duration::from_millis(1000),
        };
        while let Some(name) = words.next() {
            if name == "--classic" {
                args.config.recovery = Recovery::Classic;
                continue;
            }
            let value = words.next().ok_or_else(|| format!("{name} needs a value"))?;
            args.set(&name, &value)?;
        }
        Ok(args)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "--crypt" => self.wire.crypt = parsed(name, value)?,
            "--key" => self.wire.key = Key::kcptun(value),
            "--fec" => {
                let (data, parity) = pair(name, value)?;
                self.wire.shards = (data > 0 && parity > 0).then_some(Shards { data, parity });
            }
            "--mtu" => self.config.mtu = parsed(name, value)?,
            "--mode" => {
                let mode = match value {
                    "normal" => Mode::Normal,
                    "fast" => Mode::Fast,
                    "fast2" => Mode::Fast2,
                    "fast3" => Mode::Fast3,
                    _ => return Err(format!("unknown mode {value}")),
                };
                let Config { nodelay, interval, .. } = mode.config();
                self.config = Config { nodelay, interval, ..self.config };
            }
            "--windows" => (self.config.snd_wnd, self.config.rcv_wnd) = pair(name, value)?,
            "--conv" => self.conv = Conv(parsed(name, value)?),
            "--bytes" => self.bytes = parsed(name, value)?,
            "--seconds" => self.patience = Duration::from_secs(parsed(name, value)?),
            "--linger" => self.linger = Duration::from_millis(parsed(name, value)?),
            _ => return Err(format!("unknown option {name}")),
        }
        Ok(())
    }
}

fn parsed<T: FromStr<Err: std::fmt::Display>>(name: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|error| format!("{name} {value}: {error}"))
}

fn pair<T: FromStr<Err: std::fmt::Display>>(name: &str, value: &str) -> Result<(T, T), String> {
    let (first, second) =
        value.split_once(',').ok_or_else(|| format!("{name} needs two numbers, for example 10,3"))?;
    Ok((parsed(name, first)?, parsed(name, second)?))
}

fn resolved(address: &str) -> Result<SocketAddr, String> {
    let found = address.to_socket_addrs().map_err(|error| format!("{address}: {error}"))?.next();
    found.ok_or_else(|| format!("{address} does not resolve to an address"))
}

fn random_conv() -> Result<Conv, String> {
    let mut bytes = [0; 4];
    getrandom::fill(&mut bytes).map_err(|error| error.to_string())?;
    Ok(Conv(u32::from_le_bytes(bytes)))
}
