//! As `src/net/end.rs` has it.

use crate::machine::Machine;
use crate::session::{Connection, Event, SessionConfig, SessionId};
use crate::time::Time;

pub(crate) type Id = Option<SessionId>;

pub(crate) trait End: Machine + Send + 'static {
    fn config(&self) -> &SessionConfig;
    fn next_event(&mut self) -> Option<(Id, Event)>;
    fn connection(&mut self, id: Id) -> Option<&mut Connection>;
    fn close(&mut self, now: Time, id: Id, code: u16, text: &str);
    fn close_rest(&mut self, now: Time, code: u16, except: impl Fn(Id) -> bool) -> bool;
}
