//! An independent implementation in Python, written from docs/WIRE.md alone. It checks the bytes in that
//! document, and talks to our server.
//!
//! It needs Python 3.10 or later with the packages in tests/independent/requirements.txt, in the interpreter
//! that `WHITEWATER_PYTHON` names or `python3`. Without it these tests print a note and pass, unless
//! `WHITEWATER_NO_SKIP` is set.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that panics has found something")]

#[path = "common/echo.rs"]
mod echo;

use echo::Echo;
use std::env;
use std::process::Command;
use whitewater::session::token::FleetKey;
use whitewater::session::{Suite, public_key};
use whitewater::{Server, ServerConfig, SessionConfig, SessionId};

const PROTOCOL_ID: u64 = 7;
const SERVER_ID: u64 = 5;
const PSK: [u8; 32] = [7; 32];
const SERVER_KEY: [u8; 32] = [8; 32];
const FLEET_KEY: [u8; 32] = [9; 32];

#[test]
fn the_document_explains_all_of_its_example_bytes() {
    let Some(python) = python() else { return };
    run(Command::new(python).arg("vectors.py"));
}

#[test]
fn the_vectors_hold_for_an_independent_implementation() {
    let Some(python) = python() else { return };
    run(Command::new(python).arg("conformance.py"));
}

#[test]
fn a_client_written_from_the_document_works_with_our_server() {
    let Some(python) = python() else { return };
    let session = SessionConfig { protocol_id: PROTOCOL_ID, ..SessionConfig::default() };
    let config = ServerConfig {
        suites: [&[Suite::Checked][..], &Suite::ALL].concat(),
        psk: Some(PSK.into()),
        server_key: Some(SERVER_KEY.into()),
        reset_key: Some([10; 16]),
        accept_burst: 100,
        deny_protocol: true,
        ..ServerConfig::insecure(session.clone())
    };
    let key = FleetKey::new(FLEET_KEY).server_key(SERVER_ID, 0);
    let by_token =
        ServerConfig { deny_protocol: true, accept_burst: 100, ..ServerConfig::tokens(session, key) };
    let [open, by_token] =
        [config, by_token].map(|config| Echo::start(Server::bind("127.0.0.1:0", &config).unwrap(), answer));
    let hex = |key: [u8; 32]| key.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let mut client = Command::new(python);
    client.arg("client.py").args([&open, &by_token].map(|echo| echo.address.port().to_string()));
    run(client.args([PSK, public_key(&SERVER_KEY), FLEET_KEY].map(hex)));
    let accepted = [open, by_token].map(|echo| echo.shut_down(0).accepted);
    assert_eq!(accepted, [19, 1], "each suite, one that the server closes, one that it loses; a token");
}

fn answer(server: &Server, id: SessionId, question: &[u8]) -> Option<Vec<u8>> {
    match (question, server.machine().pass(id)) {
        (b"close", _) => None,
        (b"who", Some(pass)) => Some([format!("{} ", pass.client_id).as_bytes(), &pass.user].concat()),
        _ => Some(question.to_vec()),
    }
}

/// An interpreter with everything that is needed.
fn python() -> Option<String> {
    let python = env::var("WHITEWATER_PYTHON").unwrap_or_else(|_| "python3".into());
    let has_all = Command::new(&python).args(["-c", "import noise, cryptography, kyber_py"]).output();
    if has_all.is_ok_and(|output| output.status.success()) {
        return Some(python);
    }
    let missing = format!("{python} with tests/independent/requirements.txt is missing");
    assert!(env::var_os("WHITEWATER_NO_SKIP").is_none(), "{missing}");
    println!("skipped: {missing}");
    None
}

/// Runs a program in tests/independent and prints its output.
fn run(command: &mut Command) {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/independent");
    let output = command.current_dir(directory).env("PYTHONDONTWRITEBYTECODE", "1").output().unwrap();
    let [stdout, stderr] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    println!("{stdout}");
    assert!(output.status.success(), "{stdout}{stderr}");
}
