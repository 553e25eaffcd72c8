//! A chat in terminals, encrypted by a secret that all of them know.
//!
//! ```text
//! cargo run --release --features crypto --example chat -- serve 127.0.0.1:4000
//! cargo run --release --features crypto --example chat -- join 127.0.0.1:4000 NAME
//! cargo run --release --features crypto --example chat -- demo      both ends in one process, which ends by itself
//! ```
//!
//! Whoever sits at the server types a line to all, or `/kick NAME WHY`. A member types lines, and `/quit`.
//!
//! The secret is in the environment: `CHAT_SECRET`, 64 random hex digits, the same for the server and its members. Without it the programs
//! use one that anybody can read below.

mod demo;
mod member;
mod room;

use member::Member;
use room::Room;
use std::env;
use std::error::Error;
use std::fmt;
use std::io::{self, BufRead};
use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::thread;
use std::time::Duration;
use whitewater::{Channel, Message, SessionConfig};

type Done = Result<(), Box<dyn Error>>;

/// What a member says. A text of more than 200 bytes is an error of `send`.
#[derive(Debug, Message)]
struct Said {
    #[max_len(200)]
    text: String,
}

/// What the server tells its members.
#[derive(Clone, Debug, Message, PartialEq)]
enum Told {
    /// To a new member: who is in.
    Welcome {
        #[max_len(64, NAME_MAX)]
        members: Vec<String>,
    },
    Joined {
        #[max_len(NAME_MAX)]
        name: String,
    },
    Left {
        #[max_len(NAME_MAX)]
        name: String,
        #[max_len(200)]
        why: String,
    },
    Line {
        #[max_len(NAME_MAX)]
        name: String,
        #[max_len(200)]
        text: String,
    },
}

/// A channel has one type of messages for both directions. These are for one direction each.
const SAID: Channel<Said> = Channel::ordered(0);
const TOLD: Channel<Told> = Channel::ordered(1);

/// Bytes of a name.
const NAME_MAX: usize = 24;

/// Both ends have the same.
fn session() -> SessionConfig {
    SessionConfig::new(0x0063_6861_7400_0001, [SAID.into(), TOLD.into()])
}

fn main() -> ExitCode {
    let words: Vec<_> = env::args().skip(1).collect();
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    let done = match *words {
        ["serve", at] => serve(at),
        ["join", at, name] => join(at, name),
        ["demo"] => demo::run(),
        _ => Err("it is serve ADDRESS, join ADDRESS NAME or demo".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(wrong) => {
            eprintln!("chat: {wrong}");
            ExitCode::FAILURE
        }
    }
}

fn serve(at: &str) -> Done {
    let (mut room, lines) = (Room::open(at, secret()?)?, typed());
    println!("open at {}", room.address()?);
    loop {
        for told in room.turn(TURN)? {
            println!("{told}");
        }
        for line in lines.try_iter() {
            match line.strip_prefix("/kick ") {
                Some(of) => {
                    let (name, why) = of.split_once(' ').unwrap_or((of, "kicked"));
                    if let Err(wrong) = room.kick(name, why) {
                        println!("{wrong}");
                    }
                }
                None => room.say(&line),
            }
        }
    }
}

fn join(at: &str, name: &str) -> Done {
    let (mut member, lines) = (Member::join(at, name, secret()?)?, typed());
    loop {
        for told in member.turn(TURN)? {
            println!("{told}");
        }
        if let Some(why) = member.end() {
            println!("it is over: {why}");
            return Ok(());
        }
        if !member.is_in() {
            continue; // what is typed before waits
        }
        match lines.try_recv() {
            Ok(line) if line != "/quit" => {
                if let Err(wrong) = member.say(&line) {
                    println!("not sent: {wrong}");
                }
            }
            Ok(_) | Err(TryRecvError::Disconnected) => member.leave(),
            Err(TryRecvError::Empty) => {}
        }
    }
}

/// Lines of the terminal. Reading it blocks, so a thread does.
fn typed() -> Receiver<String> {
    let (lines, taken) = mpsc::channel();
    thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            if lines.send(line).is_err() {
                return;
            }
        }
    });
    taken
}

fn secret() -> Result<[u8; 32], Box<dyn Error>> {
    let Ok(digits) = env::var("CHAT_SECRET") else {
        eprintln!("CHAT_SECRET is not set: with the secret of the example, anybody can listen");
        return Ok(*b"an example is no place for it...");
    };
    let of_digits = || {
        let pairs = digits.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).ok());
        let bytes: Option<Vec<_>> = pairs.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect();
        bytes?.try_into().ok()
    };
    of_digits().ok_or_else(|| "CHAT_SECRET is not 64 hex digits".into())
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Nobody shall move the cursor of others.
        let plain = |text: &str| text.replace(char::is_control, " ");
        match self {
            Self::Welcome { members } if members.is_empty() => f.write_str("* nobody else is here"),
            Self::Welcome { members } => write!(f, "* with you: {}", plain(&members.join(", "))),
            Self::Joined { name } => write!(f, "* {} comes in", plain(name)),
            Self::Left { name, why } => write!(f, "* {} is gone: {}", plain(name), plain(why)),
            Self::Line { name, text } => write!(f, "{}: {}", plain(name), plain(text)),
        }
    }
}

/// How long one turn of a loop waits for the network, before it looks at the terminal again.
const TURN: Duration = Duration::from_millis(20);
