//! The package `kcp` from PyPI: ikcp.c in message mode only, with its own client and server.
//!
//! Looks for it in the interpreter that `WHITEWATER_PYTHON` names, or in `python3`. If it is missing, these tests say
//! so and pass, unless `WHITEWATER_NO_SKIP` is set.

use interop::exchange::{CONV, Case};
use interop::program::Program;
use interop::{cases, skip};
use std::env;
use std::process::Command;

#[test]
fn our_socket_has_its_messages_echoed_by_a_server_in_python() {
    let Some(python) = python() else { return };
    cases::run(&Case::all(&[false]), |case| {
        let mut server = Program::start(peer(&python).args(["server", &CONV.to_string()]));
        let port: u16 = server.says("listening on ").expect("a port").parse().unwrap();
        case.we_ask(([127, 0, 0, 1], port).into())
    });
}

#[test]
fn our_listener_echoes_the_messages_of_a_client_in_python() {
    let Some(python) = python() else { return };
    cases::run(&Case::all(&[false]), |case| {
        case.they_ask(|server, sent| {
            let words = [CONV, server.port().into(), u32::try_from(sent.len()).unwrap()]
                .map(|number| number.to_string());
            let mut client = Program::start(peer(&python).arg("client").args(words));
            let end = client.end();
            assert!(end.success(), "{end}");
            sent.to_vec()
        })
    });
}

fn peer(python: &str) -> Command {
    let mut command = Command::new(python);
    command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/peer.py")).env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// An interpreter with the package.
fn python() -> Option<String> {
    let python = env::var("WHITEWATER_PYTHON").unwrap_or_else(|_| "python3".into());
    let has_all = Command::new(&python).args(["-c", "import kcp; kcp.KCP"]).output();
    if has_all.is_ok_and(|output| output.status.success()) {
        return Some(python);
    }
    skip(&format!("{python} with interop/requirements.txt is missing"));
    None
}
