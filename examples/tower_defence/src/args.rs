//! The command line.

use std::fmt::Display;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use tower_defence::headless::Settings;
use tower_defence::lab::{LinkSpec, Transport};
use tower_defence::wire::{NAME_MAX, Wish};

/// What to do.
#[derive(Debug)]
pub(crate) enum Command {
    Help,
    /// Server, player and bots in this process.
    Play(Player),
    /// A server for others.
    Server {
        at: SocketAddr,
        secret: Secret,
        bots: u8,
        seed: u64,
    },
    /// A server for others and for browsers, with the page that they play on.
    Serve {
        /// Where the page is.
        page: SocketAddr,
        /// Where browsers connect to.
        web: SocketAddr,
        /// Where native players connect to.
        at: SocketAddr,
        secret: Option<Secret>,
        bots: u8,
        seed: u64,
    },
    /// A player on somebody else's server.
    Join {
        at: SocketAddr,
        secret: Secret,
        player: Player,
    },
    /// A lobby for players who host.
    Lobby {
        at: SocketAddr,
        secret: Secret,
        relay: SocketAddr,
        relay_key: PathBuf,
    },
    /// A player in a match that players host.
    Meet {
        at: SocketAddr,
        secret: Secret,
        player: Player,
        /// Prints a line a second instead of showing a screen, and leaves after this many if that is given.
        seconds: Option<Option<u32>>,
    },
    /// Without a screen.
    Headless {
        settings: Settings,
        plot: Option<PathBuf>,
        compares: bool,
    },
    /// Makes a key.
    Token(PathBuf),
    /// One side of a comparison over real sockets; with `bots`, the clients' side.
    Wired {
        at: SocketAddr,
        transport: Transport,
        bots: Option<u8>,
        seconds: u32,
        seed: u64,
    },
}

/// The player, and the network.
#[derive(Debug)]
pub(crate) struct Player {
    pub(crate) name: String,
    pub(crate) wish: Wish,
    pub(crate) bots: u8,
    /// The simulated network. `None`: the usual one in a local game, none on the way to a real server.
    pub(crate) link: Option<LinkSpec>,
    pub(crate) seed: u64,
    /// Whether a bot plays.
    pub(crate) is_bot: bool,
}

/// Where the key comes from.
#[derive(Debug)]
pub(crate) enum Secret {
    File(PathBuf),
    Phrase(String),
}

/// All arguments; each command accepts some of them.
#[derive(Default)]
struct Words {
    bots: Option<u8>,
    seconds: Option<u32>,
    seed: Option<u64>,
    link: Option<LinkSpec>,
    transport: Transport,
    plot: Option<PathBuf>,
    compares: bool,
    secret: Option<Secret>,
    page: Option<SocketAddr>,
    web: Option<SocketAddr>,
    at: Option<SocketAddr>,
    name: Option<String>,
    wish: Wish,
    is_bot: bool,
    is_quiet: bool,
    relay: Option<SocketAddr>,
    relay_key: Option<PathBuf>,
    plain: Vec<String>,
}

/// Parses the command line. An error is one line that says what is wrong.
pub(crate) fn parse(words: impl IntoIterator<Item = String>) -> Result<Command, String> {
    let mut words = words.into_iter();
    let mut read = Words::default();
    while let Some(word) = words.next() {
        if matches!(word.as_str(), "-h" | "--help") {
            return Ok(Command::Help);
        }
        let (name, value) = match word.split_once('=').filter(|_| word.starts_with("--")) {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (word.as_str(), None),
        };
        let value = || value.or_else(|| words.next()).ok_or_else(|| format!("{name} wants a value"));
        read.take(name, value)?;
    }
    read.command()
}

impl Words {
    fn take(&mut self, name: &str, value: impl FnOnce() -> Result<String, String>) -> Result<(), String> {
        match name {
            "--bots" => self.bots = Some(number(name, &value()?, 0, 23)?),
            "--seconds" => self.seconds = Some(number(name, &value()?, 1, 36_000)?),
            "--seed" => self.seed = Some(number(name, &value()?, 0, u64::MAX)?),
            "--link" => self.link = Some(value()?.parse().map_err(|wrong| format!("{wrong}"))?),
            "--transport" => {
                self.transport = match value()?.as_str() {
                    "sessions" => Transport::Sessions,
                    "kcp" => Transport::Kcp,
                    "tcp" => Transport::Tcp,
                    other => return Err(format!("--transport is sessions, kcp or tcp, not '{other}'")),
                };
            }
            "--plot" => self.plot = Some(value()?.into()),
            "--compare" => self.compares = true,
            "--token" => self.secret = Some(Secret::File(value()?.into())),
            "--pass" => self.secret = Some(Secret::Phrase(value()?)),
            "--page" => self.page = Some(address(&value()?)?),
            "--web" => self.web = Some(address(&value()?)?),
            "--udp" => self.at = Some(address(&value()?)?),
            "--name" => self.name = Some(name_of(&value()?)?),
            "--role" => {
                self.wish = match value()?.as_str() {
                    "a" => Wish::Build,
                    "b" => Wish::Run,
                    other => return Err(format!("--role is a (builds) or b (runs), not '{other}'")),
                };
            }
            "--spectate" => self.wish = Wish::Watch,
            "--bot" => self.is_bot = true,
            "--quiet" => self.is_quiet = true,
            "--relay" => self.relay = Some(address(&value()?)?),
            "--relay-key" => self.relay_key = Some(value()?.into()),
            _ if name.starts_with('-') => return Err(format!("there is no argument {name}")),
            _ => self.plain.push(name.to_owned()),
        }
        Ok(())
    }

    fn command(mut self) -> Result<Command, String> {
        let plain = std::mem::take(&mut self.plain);
        let plain: Vec<&str> = plain.iter().map(String::as_str).collect();
        match plain.as_slice() {
            [] => Ok(Command::Play(self.player())),
            ["server", at] => Ok(Command::Server {
                at: address(at)?,
                bots: self.bots.unwrap_or(0),
                seed: self.seed.unwrap_or(1),
                secret: self.secret()?,
            }),
            ["serve"] => {
                let local =
                    |port, given: Option<SocketAddr>| given.unwrap_or_else(|| ([127, 0, 0, 1], port).into());
                Ok(Command::Serve {
                    page: local(8080, self.page),
                    web: local(4433, self.web),
                    at: local(4000, self.at),
                    bots: self.bots.unwrap_or(5),
                    seed: self.seed.unwrap_or(1),
                    secret: self.secret.take(),
                })
            }
            ["join", at] => {
                let (at, secret) = (address(at)?, self.secret()?);
                Ok(Command::Join { at, secret, player: self.player() })
            }
            ["lobby", at] => {
                let wrong = "a lobby has a relay: --relay ADDR --relay-key FILE";
                let relay = self.relay.zip(self.relay_key.take());
                let (relay, relay_key) = relay.ok_or_else(|| wrong.to_owned())?;
                Ok(Command::Lobby { at: address(at)?, secret: self.secret()?, relay, relay_key })
            }
            ["meet", at] => {
                let (at, secret, seconds) =
                    (address(at)?, self.secret()?, self.is_quiet.then_some(self.seconds));
                Ok(Command::Meet { at, secret, player: self.player(), seconds })
            }
            ["headless"] if self.transport == Transport::Tcp => {
                Err("TCP is not simulated: see `wired`".to_owned())
            }
            ["headless"] => Ok(self.headless()),
            ["wired", side @ ("server" | "bots"), at] => Ok(Command::Wired {
                at: address(at)?,
                transport: self.transport,
                bots: (*side == "bots").then_some(self.bots.unwrap_or(Settings::default().bots)),
                seconds: self.seconds.unwrap_or(Settings::default().seconds),
                seed: self.seed.unwrap_or(1),
            }),
            ["token", path] => Ok(Command::Token(path.into())),
            [other, ..] => Err(format!("there is no command '{other}' with these words")),
        }
    }

    fn player(self) -> Player {
        Player {
            name: self.name.unwrap_or_else(|| "you".to_owned()),
            wish: self.wish,
            bots: self.bots.unwrap_or(7),
            link: self.link,
            seed: self.seed.unwrap_or(1),
            is_bot: self.is_bot,
        }
    }

    fn headless(self) -> Command {
        let usual = Settings::default();
        let settings = Settings {
            bots: self.bots.unwrap_or(usual.bots),
            seconds: self.seconds.unwrap_or(usual.seconds),
            link: self.link.unwrap_or(usual.link),
            transport: self.transport,
            seed: self.seed.unwrap_or(usual.seed),
        };
        Command::Headless { settings, plot: self.plot, compares: self.compares }
    }

    fn secret(&mut self) -> Result<Secret, String> {
        self.secret.take().ok_or_else(|| "a server has a secret: --token FILE or --pass PHRASE".to_owned())
    }
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let found = std::net::ToSocketAddrs::to_socket_addrs(text).ok().and_then(|mut found| found.next());
    found.ok_or_else(|| format!("'{text}' is no address with a port, such as 192.0.2.1:4000"))
}

fn name_of(text: &str) -> Result<String, String> {
    let is_name = (1..=NAME_MAX).contains(&text.len());
    is_name
        .then(|| text.to_owned())
        .ok_or_else(|| format!("--name wants 1 to {NAME_MAX} bytes, not '{text}'"))
}

fn number<T: FromStr + PartialOrd + Display>(name: &str, text: &str, min: T, max: T) -> Result<T, String> {
    let number = text.parse().ok().filter(|number| (&min..=&max).contains(&number));
    number.ok_or_else(|| format!("{name} wants a number from {min} to {max}, not '{text}'"))
}

pub(crate) const HELP: &str = "\
A tower defence over a bad network. Without a command: server, you and bots in this process.

  tower-defence [--bots N] [--link SPEC] [--role a|b] [--spectate] [--name NAME] [--seed N]
  tower-defence serve [--token FILE | --pass PHRASE] [--bots N] [--page ADDR] [--web ADDR] [--udp ADDR] [--seed N]
  tower-defence server ADDR (--token FILE | --pass PHRASE) [--bots N] [--seed N]
  tower-defence join ADDR (--token FILE | --pass PHRASE) [--role a|b] [--spectate] [--name NAME] [--bot]
                          [--link SPEC]
  tower-defence lobby ADDR (--token FILE | --pass PHRASE) --relay ADDR --relay-key FILE
  tower-defence meet ADDR (--token FILE | --pass PHRASE) [--role a|b] [--spectate] [--name NAME] [--bot]
                          [--quiet [--seconds T]]
  tower-defence headless [--bots N] [--seconds T] [--link SPEC] [--transport sessions|kcp] [--seed N]
                         [--plot FILE.svg] [--compare]
  tower-defence wired (server | bots) ADDR [--transport sessions|kcp|tcp] [--bots N] [--seconds T] [--seed N]
  tower-defence token FILE

  --bots N        players that need nobody at the keys (7; 8 headless; 0 at a server)
  --link SPEC     the simulated network, such as rtt=60ms,loss=5%,jitter=10ms,rate=2mbit (rtt=60ms,loss=5%;
                  at join there is none without this, and with it, it is added to the way to the server)
  --role a|b      build turrets (a) or run past them (b); as is needed without it
  --spectate      only look on
  --token FILE    the secret that all players share, as `token FILE` makes one
  --pass PHRASE   a secret from words, by Argon2id
  --bot           a bot is at your keys
  lobby, meet     players host the match behind a relay; when the host goes, another goes on with it
  --quiet         a line each second instead of a screen
  --compare       the same game over sessions and over KCP alone, at 0, 2, 5 and 10 % loss
  --plot FILE     draw what was measured
  wired           the same game over real sockets, to compare what carries it: bots print a line of figures";

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Command, String> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, wrong) in [
            ("--bots", "--bots wants a value"),
            ("--bots 24", "--bots wants a number from 0 to 23, not '24'"),
            ("--role c", "--role is a (builds) or b (runs), not 'c'"),
            ("server", "there is no command 'server' with these words"),
            ("server 127.0.0.1:4000", "a server has a secret: --token FILE or --pass PHRASE"),
            ("server nowhere --pass x", "'nowhere' is no address with a port, such as 192.0.2.1:4000"),
            ("--name=", "--name wants 1 to 24 bytes, not ''"),
            ("--lose 5", "there is no argument --lose"),
        ] {
            assert_eq!(parsed(line).unwrap_err(), wrong);
        }
        let Ok(Command::Headless { settings, .. }) = parsed("headless --bots 3 --link rtt=100ms,loss=2%")
        else {
            panic!("that is right")
        };
        assert_eq!((settings.bots, settings.link.loss, settings.link.rtt.as_millis()), (3, 0.02, 100));
        let Ok(Command::Join { player, .. }) = parsed("join 127.0.0.1:4000 --pass=words --link loss=9%")
        else {
            panic!("that is right, too")
        };
        assert!(player.link.is_some_and(|link| link.loss == 0.09 && link.rtt.is_zero()));
        assert!(matches!(parsed("join 127.0.0.1:4000 --pass=words --role b"), Ok(Command::Join { .. })));
    }
}
