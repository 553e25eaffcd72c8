//! What a server and a client have in common for whoever has either on a thread.

use crate::machine::Machine;
use crate::message::Message;
use crate::session::{Connection, Event, Server, Session, SessionConfig, SessionId};
use crate::time::Time;

/// One end of sessions: those of a server, or the one of a client.
pub(super) trait End: Machine + Send + 'static {
    /// What tells its sessions apart.
    type Id: Copy + Ord + Send + 'static;
    type Message: Message + Send + 'static;

    /// Which of the servers on one port has a session.
    fn shard(id: Self::Id) -> usize;
    fn config(&self) -> &SessionConfig;
    fn next_event(&mut self) -> Option<(Self::Id, Event)>;
    fn connection(&mut self, id: Self::Id) -> Option<&mut Connection<Self::Message>>;
    fn close(&mut self, now: Time, id: Self::Id, code: u16);
    /// Ends everything that can be ended at once; whether all sessions are over.
    fn close_rest(&mut self, now: Time, code: u16, except: impl Fn(Self::Id) -> bool) -> bool;
}

impl<M: Message + Send + 'static> End for Server<M> {
    type Id = SessionId;
    type Message = M;

    fn shard(id: SessionId) -> usize {
        id.shard().into()
    }

    fn config(&self) -> &SessionConfig {
        self.session_config()
    }

    fn next_event(&mut self) -> Option<(SessionId, Event)> {
        self.poll_event()
    }

    fn connection(&mut self, id: SessionId) -> Option<&mut Connection<M>> {
        self.session_mut(id)
    }

    fn close(&mut self, now: Time, id: SessionId, code: u16) {
        Self::close(self, now, id, code);
    }

    fn close_rest(&mut self, now: Time, code: u16, except: impl Fn(SessionId) -> bool) -> bool {
        self.close_all(now, code, except)
    }
}

impl<M: Message + Send + 'static> End for Session<M> {
    type Id = ();
    type Message = M;

    fn shard((): ()) -> usize {
        0
    }

    fn config(&self) -> &SessionConfig {
        self.session_config()
    }

    fn next_event(&mut self) -> Option<((), Event)> {
        Some(((), self.poll_event()?))
    }

    fn connection(&mut self, (): ()) -> Option<&mut Connection<M>> {
        self.connection_mut()
    }

    fn close(&mut self, now: Time, (): (), code: u16) {
        Self::close(self, now, code);
    }

    fn close_rest(&mut self, now: Time, code: u16, except: impl Fn(()) -> bool) -> bool {
        if !except(()) {
            Self::close(self, now, code);
        }
        self.state() == crate::session::ClientState::Closed
    }
}
