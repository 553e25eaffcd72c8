//! What servers and clients have in common, for code that runs either on a thread or a task.

use crate::machine::Machine;
use crate::session::{Connection, Event, SessionConfig, SessionId};
use crate::time::Time;

/// Which session. A client has only one.
pub(crate) type Id = Option<SessionId>;

/// One end of sessions: a server with its sessions, or a client with one.
pub(crate) trait End: Machine + Send + 'static {
    fn config(&self) -> &SessionConfig;
    fn next_event(&mut self) -> Option<(Id, Event)>;
    fn connection(&mut self, id: Id) -> Option<&mut Connection>;
    /// Closes a session once everything sent has arrived. The peer also gets `text`, which was checked.
    fn close(&mut self, now: Time, id: Id, code: u16, text: &str);
    /// Closes every session that can be closed now, except some. Returns whether all sessions are over.
    fn close_rest(&mut self, now: Time, code: u16, except: impl Fn(Id) -> bool) -> bool;
}
