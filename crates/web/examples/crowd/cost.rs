//! What this process has used, from Linux's `/proc`.

use std::fs;
use std::io;

/// The CPU time of this process so far, user and system, ns: of the thread that carries browsers, and of all others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cpu {
    pub(crate) transport_ns: u64,
    pub(crate) game_ns: u64,
}

impl Cpu {
    pub(crate) fn now() -> io::Result<Self> {
        let mut cpu = Self { transport_ns: 0, game_ns: 0 };
        for task in fs::read_dir("/proc/self/task")? {
            let task = task?.path();
            let name = fs::read_to_string(task.join("comm"))?;
            let used = fs::read_to_string(task.join("schedstat"))?;
            let used: u64 =
                used.split(' ').next().and_then(|ns| ns.parse().ok()).ok_or(io::ErrorKind::InvalidData)?;
            *(if name.starts_with("whitewater-web") { &mut cpu.transport_ns } else { &mut cpu.game_ns }) +=
                used;
        }
        Ok(cpu)
    }
}

/// The memory that this process has now, bytes.
pub(crate) fn memory() -> io::Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.map(|kib| kib << 10).ok_or_else(|| io::ErrorKind::InvalidData.into())
}
