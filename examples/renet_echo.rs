//! The echo example of renet 2 with `renet_netcode`, ported line by line: above a line, or behind it, is what it was there.
//!
//! ```text
//! cargo run --release --example renet_echo -- server 5000
//! cargo run --release --example renet_echo -- client 127.0.0.1:5000 NAME
//! cargo run --release --example renet_echo -- demo      both ends in one process, which ends by itself
//! ```
//!
//! What has no counterpart is not needed: the clock and the time since the last update, the transports, the buffer of user data.

use std::collections::HashMap; // the same
use std::error::Error;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::time::{Duration, Instant};
use std::{env, io, thread};
// use renet::{ClientId, ConnectionConfig, DefaultChannel, RenetClient, RenetServer, ServerEvent};
// use renet_netcode::{ClientAuthentication, NetcodeClientTransport, NetcodeServerTransport, ServerAuthentication, ServerConfig};
use whitewater::{
    Channel, Client, ClientConfig, CloseReason, Event, Server, ServerConfig, SessionConfig, SessionId,
};

// const PROTOCOL_ID: u64 = 7;
const PROTOCOL_ID: u64 = 7;

// DefaultChannel::Unreliable, which the example does not use, DefaultChannel::ReliableUnordered and DefaultChannel::ReliableOrdered.
// There messages are bytes. Here a channel has a type.
const UNRELIABLE: Channel = Channel::unreliable(0);
const RELIABLE_UNORDERED: Channel = Channel::unordered(1);
const RELIABLE_ORDERED: Channel<String> = Channel::ordered(2);

/// Of both ends.
fn session() -> SessionConfig {
    // let connection_config = ConnectionConfig::default();
    SessionConfig::new(PROTOCOL_ID, [UNRELIABLE.into(), RELIABLE_UNORDERED.into(), RELIABLE_ORDERED.into()])
}

struct EchoServer {
    // server: RenetServer,
    // transport: NetcodeServerTransport,
    server: Server,
    // usernames: HashMap<ClientId, String>,
    usernames: HashMap<SessionId, String>,
}

impl EchoServer {
    fn new(public_addr: impl ToSocketAddrs) -> io::Result<Self> {
        // let server_config = ServerConfig {
        //     current_time,
        //     max_clients: 64,
        //     protocol_id: PROTOCOL_ID,
        //     public_addresses: vec![public_addr],
        //     authentication: ServerAuthentication::Unsecure,
        // };
        let config = ServerConfig { max_sessions: 64, ..ServerConfig::insecure(session()) };
        // let mut server = RenetServer::new(connection_config);
        // let socket = UdpSocket::bind(public_addr).unwrap();
        // let mut transport = NetcodeServerTransport::new(server_config, socket).unwrap();
        let server = Server::bind(public_addr, &config)?;
        Ok(Self { server, usernames: HashMap::new() })
    }

    fn update(&mut self) -> io::Result<()> {
        // server.update(duration);
        // transport.update(duration, &mut server).unwrap();
        self.server.pump()?;

        // while let Some(event) = server.get_event() {
        while let Some((client_id, event)) = self.server.poll_event() {
            match event {
                // ServerEvent::ClientConnected { client_id } => {
                Event::Connected => {
                    // let user_data = transport.user_data(client_id).unwrap();
                    let user_data = self.server.user(client_id);
                    // let username = Username::from_user_data(&user_data);
                    let username = String::from_utf8_lossy(user_data).into_owned();
                    // server.broadcast_message_except(client_id, DefaultChannel::ReliableOrdered, format!(..));
                    let message = format!("User \"{username}\" connected");
                    self.server.broadcast_except(client_id, RELIABLE_ORDERED, &message);
                    println!("Client {client_id} connected.");
                    self.usernames.insert(client_id, username);
                }
                // ServerEvent::ClientDisconnected { client_id, reason } => {
                Event::Closed { reason, .. } => {
                    println!("Client {client_id} disconnected: {reason}");
                    if let Some(username) = self.usernames.remove(&client_id) {
                        // server.broadcast_message_except(client_id, DefaultChannel::ReliableOrdered, format!(..));
                        let message = format!("User \"{username}\" disconnected");
                        self.server.broadcast(RELIABLE_ORDERED, &message);
                    }
                }
                _ => {} // it says who has something to read, but one may look at all of them as well
            }
        }

        // for client_id in server.clients_id() {
        for client_id in self.server.clients() {
            // while let Some(message) = server.receive_message(client_id, DefaultChannel::ReliableOrdered) {
            while let Some(text) = self.server.recv(client_id, RELIABLE_ORDERED) {
                // let text = String::from_utf8(message.into()).unwrap();
                let Some(username) = self.usernames.get(&client_id) else { continue };
                println!("Client {username} ({client_id}) sent text: {text}");
                // server.broadcast_message(DefaultChannel::ReliableOrdered, text.as_bytes().to_vec());
                self.server.broadcast(RELIABLE_ORDERED, &format!("{username}: {text}"));
            }
        }

        // transport.send_packets(&mut server);
        self.server.flush();
        Ok(())
    }
}

struct EchoClient {
    // client: RenetClient,
    // transport: NetcodeClientTransport,
    client: Client,
    // client.disconnect_reason()
    disconnect_reason: Option<CloseReason>,
}

impl EchoClient {
    fn new(server_addr: impl ToSocketAddrs, username: &str) -> io::Result<Self> {
        // let authentication = ClientAuthentication::Unsecure {
        //     server_addr,
        //     client_id,
        //     user_data: Some(username.to_netcode_user_data()),
        //     protocol_id: PROTOCOL_ID,
        // };
        let config = ClientConfig { user: username.into(), ..ClientConfig::insecure(session()) };
        // let mut client = RenetClient::new(connection_config);
        // let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        // let mut transport = NetcodeClientTransport::new(current_time, authentication, socket).unwrap();
        Ok(Self { client: Client::connect(server_addr, &config)?, disconnect_reason: None })
    }

    /// Sends what is typed, if there is something, and returns what came.
    fn update(&mut self, typed: Option<String>) -> Result<Vec<String>, Box<dyn Error>> {
        // client.update(duration);
        // transport.update(duration, &mut client).unwrap();
        self.client.pump()?;
        while let Some(event) = self.client.poll_event() {
            if let Event::Closed { reason, .. } = event {
                self.disconnect_reason = Some(reason);
            }
        }
        if let Some(text) = typed {
            // client.send_message(DefaultChannel::ReliableOrdered, text.as_bytes().to_vec());
            self.client.send(RELIABLE_ORDERED, &text)?;
        }
        let mut texts = Vec::new();
        // while let Some(text) = client.receive_message(DefaultChannel::ReliableOrdered) {
        while let Some(text) = self.client.recv(RELIABLE_ORDERED) {
            // let text = String::from_utf8(text.into()).unwrap();
            texts.push(text);
        }
        // transport.send_packets(&mut client).unwrap();
        self.client.flush();
        Ok(texts)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<_> = env::args().skip(1).collect();
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    match *words {
        ["server", port] => server(port.parse()?),
        ["client", server_addr, username] => client(server_addr.parse()?, username),
        ["demo"] => demo(),
        _ => Err("it is server SERVER_PORT, client SERVER_ADDR USER_NAME or demo".into()),
    }
}

fn server(port: u16) -> Result<(), Box<dyn Error>> {
    let mut server = EchoServer::new(("0.0.0.0", port))?;
    loop {
        server.update()?;
        thread::sleep(FRAME);
    }
}

fn client(server_addr: SocketAddr, username: &str) -> Result<(), Box<dyn Error>> {
    let (mut client, lines) = (EchoClient::new(server_addr, username)?, spawn_stdin_channel());
    // if client.is_disconnected() {
    while client.disconnect_reason.is_none() {
        // if client.is_connected() { match stdin_channel.try_recv() {
        let typed = if client.client.is_connected() { lines.try_recv() } else { Err(TryRecvError::Empty) };
        if typed == Err(TryRecvError::Disconnected) {
            // client.disconnect();
            client.client.close(0);
        }
        for text in client.update(typed.ok())? {
            println!("{text}");
        }
        thread::sleep(FRAME);
    }
    Ok(())
}

/// What two clients hear, and why one of them was sent away.
fn demo() -> Result<(), Box<dyn Error>> {
    let mut server = EchoServer::new("127.0.0.1:0")?;
    let at = server.server.local_addr()?;
    let mut clients = [EchoClient::new(at, "Ann")?, EchoClient::new(at, "Ben")?];
    let (mut has_spoken, mut heard, start) = (false, [Vec::new(), Vec::new()], Instant::now());
    while !heard.iter().all(|texts| texts.iter().any(|text| text == "Ann: hello")) {
        if start.elapsed() > PATIENCE {
            return Err(format!("they only heard {heard:?}").into());
        }
        server.update()?;
        for (client, heard) in clients.iter_mut().zip(&mut heard) {
            let is_time = !has_spoken && server.usernames.len() == 2 && client.client.is_connected();
            has_spoken |= is_time;
            heard.append(&mut client.update(is_time.then(|| "hello".to_owned()))?);
        }
        thread::sleep(Duration::from_millis(1));
    }
    println!("Ann and Ben heard {heard:?}");

    // server.disconnect_all();
    for client_id in server.server.clients() {
        server.server.close(client_id, 7);
    }
    while clients.iter().any(|client| client.disconnect_reason.is_none()) {
        if start.elapsed() > PATIENCE {
            return Err("they do not hear that it is over".into());
        }
        server.update()?;
        for client in &mut clients {
            client.update(None)?;
        }
        thread::sleep(Duration::from_millis(1));
    }
    match clients.map(|client| client.disconnect_reason) {
        [Some(CloseReason::Peer(7)), Some(CloseReason::Peer(7))] => Ok(()),
        reasons => Err(format!("it ended by {reasons:?}").into()),
    }
}

/// Lines of the terminal.
fn spawn_stdin_channel() -> Receiver<String> {
    let (tx, rx) = mpsc::channel();
    thread::spawn(move || {
        for line in io::stdin().lines().map_while(Result::ok) {
            let _ = tx.send(line);
        }
    });
    rx
}

const FRAME: Duration = Duration::from_millis(50);
/// So slow is no machine.
const PATIENCE: Duration = Duration::from_secs(30);
