//! The program: see `--help`.

mod args;
mod plot;
mod screen;
mod serve;
mod warnings;

use args::{Command, Player, Secret};
use std::error::Error;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};
use tower_defence::bots::Bot;
use tower_defence::client::Game as _;
use tower_defence::headless;
use tower_defence::lab::wired;
use tower_defence::play::{Hosting, Key, Lobbying, Local, Peer, Relay, Remote, state_dir, ticket};
use tower_defence::wire::Hello;

fn main() -> ExitCode {
    let command = match args::parse(std::env::args().skip(1)) {
        Ok(command) => command,
        Err(wrong) => {
            eprintln!("tower-defence: {wrong} (--help tells more)");
            return ExitCode::from(2);
        }
    };
    match run(command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(wrong) => {
            eprintln!("tower-defence: {wrong}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<(), Box<dyn Error>> {
    match command {
        Command::Help => println!("{}", args::HELP),
        Command::Play(Player { name, wish, bots, link, seed, .. }) => {
            screen::show(&mut Local::new(&name, wish, bots, &link.unwrap_or_default(), seed))?;
        }
        Command::Server { at, secret, bots, seed } => {
            run_server(Hosting::bind(at, &key(secret)?, bots, seed)?)?
        }
        Command::Serve { page, web, at, secret, bots, seed } => {
            let (key, path) = match secret {
                Some(secret) => (key(secret)?, None),
                None => serve::own_key()?,
            };
            let mut hosting = Hosting::bind(at, &key, bots, seed)?;
            serve::start(&mut hosting, &key, page, web)?;
            if let Some(path) = path {
                let at = hosting.local_addr()?;
                say(&format!("play in a terminal: tower-defence join {at} --token {}", path.display()));
            }
            run_server(hosting)?;
        }
        Command::Join { at, secret, player } => join(at, &key(secret)?, player)?,
        Command::Lobby { at, secret, relay, relay_key } => {
            let bytes = std::fs::read(&relay_key)?.try_into();
            let relay_key = bytes.map_err(|_| format!("{}: it has to have 32 bytes", relay_key.display()))?;
            run_lobby(Lobbying::bind(at, &key(secret)?, relay, relay_key)?)?;
        }
        Command::Meet { at, secret, player, seconds } => meet(at, &key(secret)?, player, seconds)?,
        Command::Headless { settings, compares: true, .. } => {
            let mut text = String::new();
            headless::compare(&mut text, &settings)?;
            print!("{text}");
        }
        Command::Headless { settings, plot, .. } => {
            let ((samples, outcome), mut text) = (headless::run(&settings), String::new());
            headless::print(&mut text, &samples, &outcome)?;
            print!("{text}");
            if let Some(path) = plot {
                plot::draw(&path, &samples)?;
            }
        }
        Command::Wired { at, transport, bots: None, seconds, seed } => {
            wired::serve(at, transport, seconds, seed)?
        }
        Command::Wired { at, transport, bots: Some(bots), seconds, seed } => {
            let (samples, mut text) = (wired::play(at, transport, bots, seconds, seed)?, String::new());
            headless::print_row(&mut text, &format!("{transport:?}"), &samples)?;
            print!("{text}");
        }
        Command::Token(path) => {
            Key::create(&path).map_err(|wrong| format!("{}: {wrong}", path.display()))?;
            println!("{}: give it to those who may play, and to nobody else", path.display());
        }
    }
    Ok(())
}

/// Runs a server, and prints a line every five seconds. It ends only by an error, which says when.
fn run_server(mut hosting: Hosting) -> Result<(), Box<dyn Error>> {
    warnings::show();
    say(&format!("listening on {}", hosting.local_addr()?));
    let begun = Instant::now();
    let mut told = begun;
    loop {
        if let Err(error) = hosting.pump() {
            let (tick, seconds) = (hosting.game().world().tick, begun.elapsed().as_secs());
            return Err(format!("the server ends after {seconds} s, at tick {tick}: {error}").into());
        }
        if told.elapsed() >= Duration::from_secs(5) {
            told = Instant::now();
            let (world, counts) = (hosting.game().world(), hosting.game().counts());
            let (tick, wave, base) = (world.tick, world.wave, world.base);
            let peers = hosting.game().peers().count();
            say(&format!("tick {tick}, wave {wave}, base {base}, {peers} peers, {counts:?}"));
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// Prints a line. A server goes on if nobody reads it: `println!` would end it by a panic.
fn say(line: &str) {
    let _ = writeln!(io::stdout(), "{line}");
}

fn join(at: SocketAddr, key: &Key, player: Player) -> Result<(), Box<dyn Error>> {
    let Player { name, wish, is_bot, seed, link, .. } = player;
    let hello = Hello { ticket: ticket(at, state_dir().as_deref())?, name, wish };
    let relay = link.map(|link| Relay::start(at, &link, seed)).transpose()?;
    let mut remote = Remote::connect(relay.as_ref().map_or(at, Relay::addr), key, &hello)?;
    if is_bot {
        remote.steer_by(Bot::new(seed));
    }
    let shown = screen::show(&mut remote);
    remote.leave();
    Ok(shown?)
}

/// Runs a lobby, and prints who hosts.
fn run_lobby(mut lobby: Lobbying) -> Result<(), Box<dyn Error>> {
    warnings::show();
    say(&format!("listening on {}", lobby.local_addr()?));
    let mut told = (0, None);
    loop {
        lobby.pump()?;
        let now = lobby.lobby().term();
        if now != told {
            let host = now.1.map_or("nobody".to_owned(), |host| format!("player {host}"));
            say(&format!("term {}: {host} hosts, {} players are here", now.0, lobby.lobby().present()));
            told = now;
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// Plays in a match that players host. With `seconds`: without a screen, and for so long if that is given.
fn meet(
    at: SocketAddr,
    key: &Key,
    player: Player,
    seconds: Option<Option<u32>>,
) -> Result<(), Box<dyn Error>> {
    let Player { name, wish, is_bot, seed, .. } = player;
    let hello = Hello { ticket: ticket(at, state_dir().as_deref())?, name, wish };
    let mut peer = Peer::connect(at, key, &hello, is_bot.then(|| Bot::new(seed)), seed)?;
    let shown = match seconds {
        Some(seconds) => run_quietly(&mut peer, seconds),
        None => screen::show(&mut peer),
    };
    peer.leave();
    Ok(shown?)
}

fn run_quietly(peer: &mut Peer, seconds: Option<u32>) -> io::Result<()> {
    let (begun, mut told) = (Instant::now(), Instant::now());
    while seconds.is_none_or(|seconds| begun.elapsed() < Duration::from_secs(seconds.into())) {
        peer.pump()?;
        if told.elapsed() >= Duration::from_secs(1) {
            told = Instant::now();
            let (term, role) = (peer.member().term(), if peer.member().hosts() { "host" } else { "guest" });
            say(&match peer.view() {
                Some(view) => {
                    let (tick, money, is_live) = (view.tick, view.purse.money, view.is_live);
                    let you = view.you.map_or("a spectator".to_owned(), |you| format!("player {you}"));
                    let state = if is_live { "live" } else { "waits for a host" };
                    format!("term {term}, {role}, {you}: tick {tick}, money {money}, {state}")
                }
                None => format!("term {term}, {role}: connecting"),
            });
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

fn key(secret: Secret) -> Result<Key, String> {
    match secret {
        Secret::File(path) => Key::of_file(&path).map_err(|wrong| format!("{}: {wrong}", path.display())),
        Secret::Phrase(phrase) => Key::of_pass(&phrase).map_err(|wrong| wrong.to_string()),
    }
}
