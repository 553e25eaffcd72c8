//! Programs that are not ours, in the background, with files in a directory of their own.

#![allow(dead_code, reason = "each test binary uses its part")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;
use std::{env, fs, process, thread};

/// Runs until it is dropped. If that is because a test has failed, what it has printed is shown.
pub(crate) struct Daemon {
    child: Child,
    log: PathBuf,
}

impl Daemon {
    /// What it prints goes to `log` in the directory.
    pub(crate) fn start(command: &mut Command, directory: &Directory) -> Self {
        let log = directory.path("log");
        let file = fs::File::create(&log).unwrap();
        command.stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file);
        Self { child: command.spawn().unwrap(), log }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        if thread::panicking() {
            println!("{}", self.log());
        }
    }
}

/// A directory that is removed on drop.
pub(crate) struct Directory(PathBuf);

impl Directory {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        // A process in a namespace has a low number that others have, too.
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos();
        let directory = env::temp_dir().join(format!("whitewater-{}-{count}-{now}", process::id()));
        fs::create_dir(&directory).unwrap();
        Self(directory)
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.0.join(file)
    }

    /// Returns the path of the file.
    pub(crate) fn write(&self, file: &str, text: &str) -> PathBuf {
        let path = self.path(file);
        fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

/// Whether the program can be run with this argument. If not, a note is printed; if `WHITEWATER_NO_SKIP` is set, the test fails.
pub(crate) fn is_there(program: &Path, argument: &str) -> bool {
    let output = Command::new(program).arg(argument).output();
    found(output.is_ok_and(|output| output.status.success()), &format!("{} is missing", program.display()))
}

/// Prints what is missing if it is, or fails.
pub(crate) fn found(is_there: bool, missing: &str) -> bool {
    assert!(is_there || env::var_os("WHITEWATER_NO_SKIP").is_none(), "{missing}");
    if !is_there {
        println!("skipped: {missing}");
    }
    is_there
}
