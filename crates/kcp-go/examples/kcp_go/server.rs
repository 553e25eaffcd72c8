//! Echoes everything that it receives.

use crate::args::Args;
use crate::limits::limits;
use std::collections::HashMap;
use std::io;
use whitewater::kcp::{self, PeerEvent, PeerId};
use whitewater_kcp_go::Stats;

pub(crate) fn run(args: &Args) -> io::Result<()> {
    let mut listener = kcp::Listener::bind(args.address, &limits(args.config, args.wire.clone()))?;
    println!("listening on {}", listener.local_addr()?);
    let mut echo = Echo { held: HashMap::new(), buf: vec![0; 1 << 16] };
    loop {
        listener.poll(None)?;
        while let Some(event) = listener.poll_event() {
            match event {
                PeerEvent::Readable(id) | PeerEvent::Writable(id) => echo.go_on(&mut listener, id),
                PeerEvent::Closed { id, reason } => {
                    echo.held.remove(&id);
                    println!(
                        "{id}: {reason:?}, {:?}",
                        Stats::of(listener.peers().envelope()).unwrap_or_default()
                    );
                }
                other => println!("{other:?}"),
            }
        }
    }
}

/// What is still to be echoed: at most one message per peer. The others stay in the receive queue and so slow
/// the peer down.
struct Echo {
    held: HashMap<PeerId, Vec<u8>>,
    buf: Vec<u8>,
}

impl Echo {
    fn go_on(&mut self, listener: &mut kcp::Listener, id: PeerId) {
        let Some(peer) = listener.peer(id) else { return };
        loop {
            let message = match self.held.remove(&id) {
                Some(message) => message,
                None => match peer.recv_into(&mut self.buf) {
                    Ok(len) => self.buf[..len].to_vec(),
                    Err(_) => return,
                },
            };
            match peer.send(&message) {
                Ok(sent) if sent < message.len() => drop(self.held.insert(id, message[sent..].to_vec())),
                Err(kcp::SendError::Full { .. }) => return drop(self.held.insert(id, message)), // until it is writable
                _ => {}
            }
        }
    }
}
