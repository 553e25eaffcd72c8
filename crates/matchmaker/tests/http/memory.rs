//! What a connection costs the program, whatever its client does.

use crate::program::Program;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::time::timeout;

/// Each opens as many connections as an address may at once. A debug build takes long for the handshakes.
const ADDRESSES: u8 = if cfg!(debug_assertions) { 2 } else { 8 };
const EACH: usize = 50;
/// Most bytes for a connection, with its socket's buffers in the program but not in the system.
const MOST: u64 = 128 * 1024;
/// For how long a client goes on sending what is not read.
const PRESSES: Duration = Duration::from_secs(3);

/// Prints the figures:
///
/// ```sh
/// cargo test --release -p whitewater-matchmaker --test http -- --nocapture a_connection_costs
/// ```
#[tokio::test]
async fn a_connection_costs_128_kb_at_most_whatever_its_client_does() {
    let head = "POST /join HTTP/1.1\r\nhost: x\r\n";
    for (client, sent) in [
        ("is idle", "GET /health HTTP/1.1\r\nhost: x\r\n\r\n".to_owned()),
        ("sends 15 kB of a head", format!("{head}x: {}", "x".repeat(15_000))),
        ("sends 400 kB of a head", format!("{head}x: {}", "x".repeat(400_000))),
        ("sends many headers", format!("{head}{}", "x: x\r\n".repeat(2_500))),
        ("sends most of a body", format!("{head}content-length: 32000\r\n\r\n{}", "[".repeat(31_999))),
        (
            "sends a body of small chunks",
            format!("{head}transfer-encoding: chunked\r\n\r\n{}", "1\r\nx\r\n".repeat(32_000)),
        ),
        ("reads no answers", "GET / HTTP/1.1\r\nhost: x\r\n\r\n".repeat(10_000)),
    ] {
        let program = Program::start(&[]);
        let before = program.peak();
        let mut sending = Vec::new();
        for address in (1..=ADDRESSES).flat_map(|address| [address; EACH]) {
            let mut stream = program.connect(address).await;
            let sent = sent.clone();
            sending.push(tokio::spawn(async move {
                let _ = timeout(PRESSES, stream.write_all(sent.as_bytes())).await; // it may be cut off
                stream
            }));
        }
        let mut open = Vec::new();
        for sent in sending {
            open.push(sent.await.unwrap());
        }
        let cost = (program.peak() - before) / u64::try_from(open.len()).unwrap();
        println!("a client that {client} costs {cost} bytes");
        assert!(cost <= MOST, "a client that {client} costs {cost} bytes");
    }
}
