//! Programs of others, which end with their test.

use crate::PATIENCE;
use std::collections::HashMap;
use std::env;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Runs until it is dropped.
#[derive(Debug)]
pub struct Program {
    child: Child,
    lines: Receiver<String>,
    /// What it has said so far.
    said: String,
}

impl Program {
    /// What it says is kept line by line, from both of its outputs.
    ///
    /// # Panics
    ///
    /// When it does not start.
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

    /// What follows `words` in the next line that has them. `None`: it has ended before.
    ///
    /// # Panics
    ///
    /// When that takes too long.
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

    /// Waits for something that it does. Whether it still runs then.
    ///
    /// # Panics
    ///
    /// When that takes too long.
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

    /// Waits for its end.
    ///
    /// # Panics
    ///
    /// When that takes too long.
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

    /// The number by which signals find it.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill(); // fails when it has ended already
        let _ = self.child.wait();
        if thread::panicking() {
            let rest: String = self.lines.try_iter().map(|line| line + "\n").collect();
            println!("the program said:\n{}{rest}", self.said);
        }
    }
}

/// kcp-go's counters by their names, from a program that prints them.
///
/// # Panics
///
/// When it does not.
#[must_use]
pub fn counted(program: &mut Program) -> HashMap<String, u64> {
    let line = program.says("KCP SNMP:&{").expect("it runs");
    let pairs = line.trim_end_matches('}').split(' ').filter_map(|pair| pair.split_once(':'));
    pairs.map(|(name, value)| (name.to_owned(), value.parse().unwrap())).collect()
}

/// Where a program of this name is.
#[must_use]
pub fn find(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|place| place.join(name)).find(|file| file.is_file())
}
