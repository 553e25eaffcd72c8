//! A driver in an event loop of the program, which waits for its socket. tokio's reactor is that loop here.

#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

use std::io::ErrorKind;
use std::os::fd::AsFd as _;
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::UdpSocket;
use tokio::time::{sleep, timeout};
use whitewater::machine::Machine;
use whitewater::net::Driver;
use whitewater::{Channel, Client, ClientConfig, Event, Server, ServerConfig, SessionConfig};

const CHAT: Channel = Channel::ordered(0);
/// Long enough for any machine; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(20);

/// Pumps a driver when its socket is readable or something is due, until `is_done`. Returns how often it was pumped.
async fn drive<M: Machine>(driver: &mut Driver<M>, mut is_done: impl FnMut(&mut Driver<M>) -> bool) -> u32 {
    let socket = UdpSocket::from_std(driver.as_fd().try_clone_to_owned().unwrap().into()).unwrap();
    let mut pumps = 0;
    loop {
        let wait = driver.pump().unwrap();
        pumps += 1;
        if is_done(driver) {
            driver.flush();
            return pumps;
        }
        tokio::select! {
            ready = socket.readable() => {
                ready.unwrap(); // and the pump reads all
                socket.try_io(Interest::READABLE, || Err::<(), _>(ErrorKind::WouldBlock.into())).unwrap_err();
            }
            () = sleep(wait.unwrap_or(PATIENCE)) => {}
        }
    }
}

#[tokio::test]
async fn a_driver_needs_no_pump_but_when_its_socket_is_readable_or_it_has_said() {
    let session = SessionConfig::default();
    let mut server = Server::bind("127.0.0.1:0", &ServerConfig::insecure(session.clone())).unwrap();
    let mut client = Client::connect(server.local_addr().unwrap(), &ClientConfig::insecure(session)).unwrap();
    let mut echoed = 0;
    let echo = drive(&mut server, |server| {
        while let Some((id, event)) = server.poll_event() {
            if event == Event::Readable {
                while let Some(message) = server.recv(id, CHAT) {
                    server.send(id, CHAT, &message).unwrap();
                    server.flush();
                    echoed += 1;
                }
            }
        }
        echoed == 20
    });
    let (mut sent, mut back) = (0, 0);
    let play = drive(&mut client, |client| {
        while client.recv(CHAT).is_some() {
            back += 1;
        }
        if client.is_connected() && sent == back && sent < 20 {
            client.send(CHAT, b"hello").unwrap();
            client.flush();
            sent += 1;
        }
        back == 20
    });
    let (echo, play) = timeout(PATIENCE, async { tokio::join!(echo, play) }).await.unwrap();
    assert!(echo < 400 && play < 400, "{echo} and {play} pumps for 20 messages each way");
}
