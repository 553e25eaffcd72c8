//! The command line.

use crate::relay::Link;
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
    pub(crate) link: Link,
    pub(crate) seconds: u64,
}

/// Parses the command line. An error is one line that says what is wrong.
pub(crate) fn parse(words: impl IntoIterator<Item = String>) -> Result<Command, String> {
    let mut words = words.into_iter();
    let (mut loss, mut delay, mut jitter, mut seconds, mut seed) = (None, None, None, None, None);
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
            "--loss" => once(name, &mut loss, number(name, &value()?, 0.0, 90.0)?)?,
            "--delay" => once(name, &mut delay, number(name, &value()?, 0, 400)?)?,
            "--jitter" => once(name, &mut jitter, number(name, &value()?, 0, 400)?)?,
            "--seconds" => once(name, &mut seconds, number(name, &value()?, 1, 3600)?)?,
            "--seed" => once(name, &mut seed, number(name, &value()?, 0, u64::MAX)?)?,
            _ => return Err(format!("there is no argument {name}")),
        }
    }
    let [delay, jitter] = [delay.unwrap_or(30), jitter.unwrap_or(0)].map(Duration::from_millis);
    let link = Link { loss: loss.unwrap_or(10.0) / 100.0, delay, jitter, seed: seed.unwrap_or(1) };
    Ok(Command::Run(Args { link, seconds: seconds.unwrap_or(8) }))
}

fn once<T>(name: &str, place: &mut Option<T>, value: T) -> Result<(), String> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(format!("{name} is there twice")),
    }
}

fn number<T: FromStr + PartialOrd + Display>(name: &str, text: &str, min: T, max: T) -> Result<T, String> {
    let number = text.trim_end_matches('%').parse().ok().filter(|number| (&min..=&max).contains(&number));
    number.ok_or_else(|| format!("{name} wants a number from {min} to {max}, not '{text}'"))
}

pub(crate) const HELP: &str = "\
A server's snapshots and a client's inputs over UDP, with a network between them that loses.

  --loss PERCENT   datagrams lost each way, 0 to 90 (10)
  --delay MS       time on the way, each way, 0 to 400 (30)
  --jitter MS      most of what is added to it at random, 0 to 400 (0)
  --seconds S      how long, 1 to 3600 (8)
  --seed N         same seed, same world and losses (1)";

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
            ("--loss nan", "--loss wants a number from 0 to 90, not 'nan'"),
            ("--loss -1", "--loss wants a number from 0 to 90, not '-1'"),
            ("--loss=100", "--loss wants a number from 0 to 90, not '100'"),
            ("--seconds 0", "--seconds wants a number from 1 to 3600, not '0'"),
            ("--seed 1 --seed 2", "--seed is there twice"),
            ("--lose 5", "there is no argument --lose"),
            ("5", "there is no argument 5"),
        ] {
            assert_eq!(parsed(line).unwrap_err(), wrong);
        }
        let Ok(Command::Run(Args { link, seconds })) = parsed("--loss=25% --seconds 3 --seed 9") else {
            panic!("that is right");
        };
        assert_eq!((link.loss, link.seed, seconds), (0.25, 9, 3));
    }
}
