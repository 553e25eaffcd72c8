//! The command line.

use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

/// What to do.
#[derive(Debug)]
pub(crate) enum Command {
    Help,
    Run(Args),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Args {
    pub(crate) clients: u8,
    /// Share of the datagrams that get lost in each direction.
    pub(crate) loss: f64,
    pub(crate) rtt: Duration,
    pub(crate) seconds: u32,
    pub(crate) seed: u64,
}

/// Parses the command line. An error is one line that says what is wrong.
pub(crate) fn parse(words: impl IntoIterator<Item = String>) -> Result<Command, String> {
    let mut args = Args { clients: 4, loss: 0.05, rtt: Duration::from_millis(60), seconds: 10, seed: 1 };
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        if matches!(word.as_str(), "-h" | "--help") {
            return Ok(Command::Help);
        }
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (word.as_str(), None),
        };
        let mut value =
            || value.clone().or_else(|| words.next()).ok_or_else(|| format!("{name} wants a value"));
        match name {
            "--clients" => args.clients = number(name, &value()?, 1, 32)?,
            "--loss" => args.loss = number(name, &value()?, 0.0, 50.0)? / 100.0,
            "--rtt" => args.rtt = Duration::from_millis(number(name, &value()?, 0, 1000)?),
            "--seconds" => args.seconds = number(name, &value()?, 1, 3600)?,
            "--seed" => args.seed = number(name, &value()?, 0, u64::MAX >> 1)?,
            _ => return Err(format!("there is no argument {name}")),
        }
    }
    Ok(Command::Run(args))
}

fn number<T: FromStr + PartialOrd + Display>(name: &str, text: &str, min: T, max: T) -> Result<T, String> {
    let number = text.trim_end_matches('%').parse().ok().filter(|number| (&min..=&max).contains(&number));
    number.ok_or_else(|| format!("{name} wants a number from {min} to {max}, not '{text}'"))
}

pub(crate) const HELP: &str = "\
A server and a few players over encrypted sessions, with a network between them that loses datagrams.

  --clients N      players, 1 to 32 (4)
  --loss PERCENT   datagrams lost each way, 0 to 50 (5)
  --rtt MS         round trip of the network, 0 to 1000 (60)
  --seconds S      how long they play, 1 to 3600 (10)
  --seed N         same seed, same map and losses (1)";

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Command, String> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, wrong) in [
            ("--loss", "--loss wants a value"),
            ("--loss nan", "--loss wants a number from 0 to 50, not 'nan'"),
            ("--clients 0", "--clients wants a number from 1 to 32, not '0'"),
            ("--seconds=0", "--seconds wants a number from 1 to 3600, not '0'"),
            ("--lose 5", "there is no argument --lose"),
        ] {
            assert_eq!(parsed(line).unwrap_err(), wrong);
        }
        let Ok(Command::Run(args)) = parsed("--loss=20% --clients 8 --rtt 100") else {
            panic!("that is right")
        };
        assert_eq!((args.loss, args.clients, args.rtt.as_millis(), args.seconds), (0.2, 8, 100, 10));
    }
}
