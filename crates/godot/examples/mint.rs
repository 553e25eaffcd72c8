//! A connect token for the tests, as a matchmaker makes it: `mint SERVER_ID PORT` prints it in hexadecimal.

use std::env;
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{SystemTime, UNIX_EPOCH};
use whitewater::session::Suite;
use whitewater::session::token::{Order, ServerKey};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = env::args().skip(1);
    let mut next = || args.next().ok_or("mint SERVER_ID PORT");
    let (server_id, port) = (next()?.parse()?, next()?.parse()?);
    let key: Vec<u8> = (1..=8).cycle().take(32).collect(); // of tests/project/case.gd
    let created = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let addresses = [SocketAddr::from((Ipv4Addr::LOCALHOST, port))];
    let order = Order {
        protocol_id: 0,
        suite: Suite::TOKEN,
        client_id: 7,
        match_id: [0; 16],
        created,
        expires: created + 60,
        addresses: &addresses,
        server_key: None,
        routing_token: b"",
        user: b"player 7",
    };
    let (mut psk, mut nonce) = ([0; 32], [0; 24]);
    getrandom::fill(&mut psk)?;
    getrandom::fill(&mut nonce)?;
    let token = ServerKey::new(server_id, 0, key.as_slice().try_into()?).mint(&order, psk, nonce)?;
    println!("{}", token.encode().iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    Ok(())
}
