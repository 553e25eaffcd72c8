//! Runs tshark with the dissectors of tools/wireshark and returns what it shows of a capture.

use super::pcap::{self, Captured};
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process};

/// What is shown of a frame: for each requested field, all its values in order.
pub(crate) type Row = Vec<Vec<String>>;

/// Shows these fields of each datagram. `settings` are preferences, such as `kcp.ports:4000`. `None`: tshark
/// is not installed.
///
/// Fails if a dissector has a Lua error.
pub(crate) fn show(datagrams: &[Captured], settings: &[&str], fields: &[&str]) -> Option<Vec<Row>> {
    show_by(&[], datagrams, settings, fields)
}

/// Shows them in two passes, as Wireshark does: it reads everything before it shows anything, so a datagram
/// may refer to later ones.
pub(crate) fn show_again(datagrams: &[Captured], settings: &[&str], fields: &[&str]) -> Option<Vec<Row>> {
    show_by(&["-2"], datagrams, settings, fields)
}

fn show_by(options: &[&str], datagrams: &[Captured], settings: &[&str], fields: &[&str]) -> Option<Vec<Row>> {
    let scratch = Scratch::new();
    let file = scratch.directory.join("capture.pcap");
    pcap::write(&file, datagrams).unwrap();
    let mut command = scratch.command();
    command.arg("-r").arg(&file).args(options);
    command.args(["-n", "-T", "fields", "-E", "separator=/t", "-E", "occurrence=a"]);
    command.args(["-E", "aggregator=|", "-e", "_ws.expert.message"]);
    fields.iter().for_each(|field| _ = command.args(["-e", field]));
    settings.iter().for_each(|setting| _ = command.args(["-o", setting]));
    let output = run(&mut command)?;
    let shown = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && !errors.contains(".lua"), "{errors}");
    let rows: Vec<Row> = shown.lines().map(row).collect();
    assert_eq!(rows.len(), datagrams.len(), "{errors}");
    let (experts, rows): (Vec<_>, _) = rows.into_iter().map(|mut row| (row.remove(0).concat(), row)).unzip();
    for (expert, (.., datagram)) in experts.iter().zip(datagrams) {
        assert!(!expert.contains("Lua Error"), "{expert} of {datagram:02x?}");
    }
    Some(rows)
}

fn row(line: &str) -> Row {
    let values =
        |field: &str| field.split('|').filter(|value| !value.is_empty()).map(str::to_owned).collect();
    line.split('\t').map(values).collect()
}

fn run(command: &mut Command) -> Option<Output> {
    if let Ok(output) = command.output() {
        return Some(output);
    }
    let missing = "tshark is missing";
    assert!(env::var_os("WHITEWATER_NO_SKIP").is_none(), "{missing}");
    println!("skipped: {missing}");
    None
}

/// A directory that is removed on drop.
struct Scratch {
    directory: PathBuf,
}

impl Scratch {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let directory = env::temp_dir().join(format!("whitewater-tshark-{}-{count}", process::id()));
        fs::create_dir(&directory).unwrap();
        Self { directory }
    }

    /// Uses our dissectors, and none of the user's settings.
    fn command(&self) -> Command {
        let mut command = Command::new("tshark");
        command.env("WIRESHARK_CONFIG_DIR", &self.directory).env("LC_ALL", "C.UTF-8");
        for script in ["kcp.lua", "whitewater.lua", "whitewater_packet.lua"] {
            let tools = concat!(env!("CARGO_MANIFEST_DIR"), "/tools/wireshark");
            command.arg("-X").arg(format!("lua_script:{tools}/{script}"));
        }
        command
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.directory).unwrap();
    }
}
