//! The echo server: every session gets back what it sends.

use std::collections::HashMap;
use std::io;
use std::time::Duration;
use whitewater::net::{Event, KcpListener, Session, SessionId};

/// Serves while `go_on`, which is asked a few times a second.
pub(crate) fn serve(listener: &mut KcpListener, verbose: bool, go_on: impl Fn() -> bool) -> io::Result<()> {
    // What a session's full send queue has not taken yet.
    let mut unsent: HashMap<SessionId, Vec<u8>> = HashMap::new();
    let mut buf = vec![0; 1 << 18];
    while go_on() {
        listener.poll(Some(Duration::from_millis(100)))?;
        while let Some(event) = listener.next_event() {
            match event {
                Event::Accepted(id) if verbose => {
                    if let Some(session) = listener.session(id) {
                        println!("session {id}: {}, conv {}", session.peer_addr(), session.conv());
                    }
                }
                Event::Readable(id) | Event::Writable(id) => {
                    if let Some(session) = listener.session(id) {
                        echo(session, unsent.entry(id).or_default(), &mut buf)?;
                    }
                }
                Event::Closed { id, reason } => {
                    unsent.remove(&id);
                    if verbose {
                        println!("session {id}: closed, {reason:?}");
                    }
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// Sends back what there is. When the send queue is full it stops reading, which closes the
/// window to the peer; `Writable` says when to go on.
fn echo(session: &mut Session, unsent: &mut Vec<u8>, buf: &mut [u8]) -> io::Result<()> {
    loop {
        if unsent.is_empty() {
            match session.recv(buf) {
                Ok(len) => unsent.extend_from_slice(buf.get(..len).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        } else {
            match session.send(unsent) {
                Ok(len) => drop(unsent.drain(..len)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }
}
