//! The two ends of sessions.

use super::end::{End, Id};
use crate::session::{Client, ClientState, Connection, Event, Server, SessionConfig};
use crate::time::Time;

impl End for Server {
    fn config(&self) -> &SessionConfig {
        self.session_config()
    }

    fn next_event(&mut self) -> Option<(Id, Event)> {
        self.poll_event().map(|(id, event)| (Some(id), event))
    }

    fn connection(&mut self, id: Id) -> Option<&mut Connection> {
        self.connection_mut(id?)
    }

    fn close(&mut self, now: Time, id: Id, code: u16, text: &str) {
        if let Some(id) = id {
            let _ = self.close_with(now, id, code, text);
        }
    }

    fn close_rest(&mut self, now: Time, code: u16, except: impl Fn(Id) -> bool) -> bool {
        self.close_all(now, code, |id| except(Some(id)))
    }
}

impl End for Client {
    fn config(&self) -> &SessionConfig {
        self.session_config()
    }

    fn next_event(&mut self) -> Option<(Id, Event)> {
        Some((None, self.poll_event()?))
    }

    fn connection(&mut self, _: Id) -> Option<&mut Connection> {
        self.connection_mut()
    }

    fn close(&mut self, now: Time, _: Id, code: u16, text: &str) {
        let _ = self.close_with(now, code, text);
    }

    fn close_rest(&mut self, now: Time, code: u16, except: impl Fn(Id) -> bool) -> bool {
        if !except(None) {
            Self::close(self, now, code);
        }
        self.state() == ClientState::Closed
    }
}
