//! The echo server: returns to every peer what it sends.

use std::collections::HashMap;
use std::io;
use std::time::Duration;
use whitewater::kcp::{self, Peer, PeerEvent, PeerId, RecvError};
use whitewater::net::Error;

/// Serves while `go_on` returns true. It is called a few times a second.
pub(crate) fn serve(listener: &mut kcp::Listener, verbose: bool, go_on: impl Fn() -> bool) -> io::Result<()> {
    // For each peer, what its full send queue has not accepted yet.
    let mut unsent: HashMap<PeerId, Vec<u8>> = HashMap::new();
    let mut buf = vec![0; 1 << 18];
    while go_on() {
        listener.poll(Some(Duration::from_millis(100)))?;
        while let Some(event) = listener.poll_event() {
            match event {
                PeerEvent::Accepted(id) if verbose => {
                    if let Some(peer) = listener.peer(id) {
                        println!("peer {id}: {}, conv {}", peer.peer_addr(), peer.conv());
                    }
                }
                PeerEvent::Readable(id) | PeerEvent::Writable(id) => {
                    if let Some(peer) = listener.peer(id) {
                        echo(peer, unsent.entry(id).or_default(), &mut buf)?;
                    }
                }
                PeerEvent::Closed { id, reason } => {
                    unsent.remove(&id);
                    if verbose {
                        println!("peer {id}: closed, {reason:?}");
                    }
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// Echoes what there is. If the send queue is full, it stops reading, which closes the window to the peer; `Writable`
/// tells when to continue.
fn echo(peer: &mut Peer, unsent: &mut Vec<u8>, buf: &mut [u8]) -> io::Result<()> {
    loop {
        if unsent.is_empty() {
            match peer.recv_into(buf) {
                Ok(len) => unsent.extend_from_slice(buf.get(..len).unwrap_or_default()),
                Err(RecvError::NoMessage) => return Ok(()),
                Err(error) => return Err(Error::from(error).into()),
            }
        } else {
            match peer.send(unsent) {
                Ok(len) => drop(unsent.drain(..len)),
                Err(kcp::SendError::Full { .. }) => return Ok(()),
                Err(error) => return Err(Error::from(error).into()),
            }
        }
    }
}
