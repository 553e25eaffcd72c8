//! kcptun, which carries TCP over KCP with forward error correction: Debian's package `kcptun`.

use super::PORT;
use super::spaces::SERVER;
use std::process::{Child, Command, Stdio};

/// Where TCP goes in at one end, and comes out at the other.
pub(super) const INSIDE: u16 = 7001;

/// A running program, which ends with this.
pub(super) struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

pub(super) fn is_there() -> bool {
    let version = Command::new("kcptun-client").arg("--version").stdout(Stdio::null()).status();
    version.is_ok_and(|status| status.success())
}

/// Runs in the namespace of the calling thread, as what follows.
pub(super) fn client() -> Program {
    run("kcptun-client", ["--localaddr", &format!("127.0.0.1:{INSIDE}"), "--remoteaddr", &outside()])
}

pub(super) fn server() -> Program {
    run("kcptun-server", ["--listen", &outside(), "--target", &format!("127.0.0.1:{INSIDE}")])
}

/// Encrypted with AES, and 3 packets of parity to 10 of data, as by default.
fn run(program: &str, ends: [&str; 4]) -> Program {
    let mut command = Command::new(program);
    command.args(ends).args(["--mode", "fast3", "--nocomp", "--quiet"]);
    Program(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it is installed"))
}

fn outside() -> String {
    format!("{SERVER}:{PORT}")
}
