//! A machine on a wire of the test, pumped as the real driver pumps.

use super::shards::Neighbours;
use super::sync::Bell;
use crate::machine::Machine;
use crate::model::{Wire, address};
use crate::session::SessionConfig;
use crate::time::Time;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

pub(crate) struct Driver<M> {
    pub(crate) machine: M,
    pub(crate) line: Line<M>,
}

pub(crate) struct Line<M> {
    pub(crate) port: Port,
    pub(super) neighbours: Option<Neighbours<M>>,
}

pub(crate) struct Port {
    pub(crate) wire: Arc<Wire>,
}

impl Port {
    pub(crate) fn bell(&mut self) -> io::Result<Arc<Bell>> {
        Ok(Arc::clone(&self.wire.bell))
    }
}

impl<M> Line<M> {
    pub(crate) fn wait(&self, _: Option<Duration>) -> io::Result<()> {
        self.port.wire.bell.wait();
        Ok(())
    }
}

impl<M: Machine> Driver<M> {
    pub(crate) fn now(&self) -> Time {
        Time::ZERO
    }

    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(address())
    }

    /// Reads one datagram at a time, so that there is always more to come.
    pub(crate) fn pump(&mut self) -> io::Result<Option<Duration>> {
        let Line { port, neighbours } = &mut self.line;
        if let Some(others) = neighbours {
            others.hand_in_strays(Time::ZERO, &mut self.machine);
        }
        let datagram = port.wire.take()?;
        if let Some(mut datagram) = datagram {
            match neighbours {
                Some(others) => {
                    others.hand_in(Time::ZERO, &mut self.machine, address().into(), &mut datagram)
                }
                None => self.machine.handle_datagram(Time::ZERO, address().into(), &mut datagram),
            }
            port.wire.bell.ring(); // a socket with more to read ends a wait at once
        }
        let mut out = Vec::new();
        while self.machine.poll_transmit(Time::ZERO, &mut out).is_some() {
            port.wire.sent(std::mem::take(&mut out));
        }
        Ok(None)
    }
}

pub(crate) fn farewell(_: &SessionConfig) -> Duration {
    Duration::ZERO
}
