//! Apps with a session between them, over loopback.

#![allow(dead_code, unreachable_pub, reason = "each program uses a part")]

use bevy::prelude::*;
use std::net::{SocketAddr, UdpSocket};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Long enough for any machine; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(30);

pub const SECRET: [u8; 32] = [7; 32];

/// Updates apps in turns until `is_done`.
pub fn update_until<const N: usize>(mut apps: [&mut App; N], mut is_done: impl FnMut([&mut App; N]) -> bool) {
    let start = Instant::now();
    loop {
        apps.iter_mut().for_each(|app| app.update());
        if is_done(apps.each_mut().map(|app| &mut **app)) {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "it never happened");
        sleep(Duration::from_millis(1));
    }
}

/// All messages of a kind that an app has heard, if it keeps them with [`keep`].
#[derive(Debug, Resource)]
pub struct Kept<M: Send + Sync + 'static>(pub Vec<M>);

/// Keeps the messages of a kind.
pub fn keep<M: Message + Clone>(app: &mut App) {
    app.insert_resource(Kept::<M>(Vec::new())).add_systems(
        Update,
        |mut heard: MessageReader<'_, '_, M>, mut kept: ResMut<'_, Kept<M>>| {
            kept.0.extend(heard.read().cloned())
        },
    );
}

pub fn kept<M: Message + Clone>(app: &App) -> &[M] {
    &app.world().resource::<Kept<M>>().0
}

/// A bad network between one client and a server: loses one datagram in ten each way.
pub struct Relay {
    front: UdpSocket,
    back: UdpSocket,
    server: SocketAddr,
    client: Option<SocketAddr>,
    random: u64,
    pub lost: u64,
}

impl Relay {
    pub fn new(server: SocketAddr, seed: u64) -> Self {
        let socket = || {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.set_nonblocking(true).unwrap();
            socket
        };
        Self { front: socket(), back: socket(), server, client: None, random: seed, lost: 0 }
    }

    pub fn addr(&self) -> SocketAddr {
        self.front.local_addr().unwrap()
    }

    /// Carries what waits.
    pub fn carry(&mut self) {
        let mut datagram = [0; 2048];
        while let Ok((len, from)) = self.front.recv_from(&mut datagram) {
            self.client = Some(from);
            if !self.loses() {
                let _ = self.back.send_to(&datagram[..len], self.server);
            }
        }
        while let Ok((len, _)) = self.back.recv_from(&mut datagram) {
            if let Some(client) = self.client.filter(|_| !self.loses()) {
                let _ = self.front.send_to(&datagram[..len], client);
            }
        }
    }

    fn loses(&mut self) -> bool {
        self.random ^= self.random << 13; // xorshift64, Marsaglia 2003
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let is_lost = self.random.is_multiple_of(10);
        self.lost += u64::from(is_lost);
        is_lost
    }
}
