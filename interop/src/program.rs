//! Other programs, which end with their test.

use crate::PATIENCE;
use std::collections::HashMap;
use std::env;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// A running program. Dropping it ends it.
#[derive(Debug)]
pub struct Program {
    child: Child,
    lines: Receiver<String>,
    /// Its output so far.
    said: String,
}

impl Program {
    /// Starts it. Both of its outputs are collected line by line.
    ///
    /// # Panics
    ///
    /// If it does not start.
    #[must_use]
    pub fn start(command: &mut Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let (sender, lines) = channel();
        let outputs: [Box<dyn Read + Send>; 2] =
            [Box::new(child.stdout.take().unwrap()), Box::new(child.stderr.take().unwrap())];
        for output in outputs {
            let sender = sender.clone();
            thread::spawn(move || {
                BufReader::new(output).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
            });
        }
        Self { child, lines, said: String::new() }
    }

    /// Waits for a line with `words` and returns the rest of that line. `None`: the program ended before.
    ///
    /// # Panics
    ///
    /// If that takes too long.
    pub fn says(&mut self, words: &str) -> Option<String> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "never said '{words}'");
            let Ok(line) = self.lines.recv_timeout(left) else { return None };
            self.said += &line;
            self.said.push('\n');
            if let Some((_, rest)) = line.split_once(words) {
                return Some(rest.to_owned());
            }
        }
    }

    /// Waits until `is_done`. Returns whether the program still runs.
    ///
    /// # Panics
    ///
    /// If that takes too long.
    pub fn waits(&mut self, is_done: impl Fn() -> bool) -> bool {
        let deadline = Instant::now() + PATIENCE;
        while self.child.try_wait().unwrap().is_none() {
            if is_done() {
                return true;
            }
            assert!(Instant::now() < deadline, "never done");
            thread::sleep(Duration::from_millis(5));
        }
        false
    }

    /// Waits until it ends.
    ///
    /// # Panics
    ///
    /// If that takes too long.
    pub fn end(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "never ended");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Its process id, for signals.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill(); // fails if it has already ended
        let _ = self.child.wait();
        if thread::panicking() {
            let rest: String = self.lines.try_iter().map(|line| line + "\n").collect();
            println!("the program said:\n{}{rest}", self.said);
        }
    }
}

/// kcp-go's counters by name, from a program that prints them.
///
/// # Panics
///
/// If it does not print them.
#[must_use]
pub fn counted(program: &mut Program) -> HashMap<String, u64> {
    let line = program.says("KCP SNMP:&{").expect("it runs");
    let pairs = line.trim_end_matches('}').split(' ').filter_map(|pair| pair.split_once(':'));
    pairs.map(|(name, value)| (name.to_owned(), value.parse().unwrap())).collect()
}

/// The path of the program with this name.
#[must_use]
pub fn find(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|place| place.join(name)).find(|file| file.is_file())
}
