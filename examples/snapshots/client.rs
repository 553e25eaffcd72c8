//! The client: sends inputs 60 times a second, and reads snapshots.

use crate::connection::Connection;
use crate::delta::{self, AGE_MAX};
use crate::inputs::{INPUTS_MAX, Inputs};
use crate::world::Snapshot;
use std::collections::VecDeque;
use std::error::Error;
use std::io;
use whitewater::Time;
use whitewater::packet::{Seq16, SequenceBuffer};

pub(crate) struct Client {
    pub(crate) connection: Connection,
    /// The newest snapshots, as bases of later ones. The server never uses an older base.
    snapshots: SequenceBuffer<Snapshot>,
    /// Snapshots that nobody has looked at yet.
    fresh: VecDeque<Seq16>,
    /// Inputs that are not known to have arrived, the oldest first.
    unacked: VecDeque<u8>,
    /// The number of the next input.
    next_input: u32,
    /// For each packet, the number after its newest input.
    carried: SequenceBuffer<u32>,
}

impl Client {
    pub(crate) fn new(connection: Connection) -> Self {
        Self {
            connection,
            snapshots: SequenceBuffer::new(AGE_MAX + 1),
            fresh: VecDeque::new(),
            unacked: VecDeque::new(),
            next_input: 0,
            carried: SequenceBuffer::new(256),
        }
    }

    /// Receives what has arrived: snapshots, and which inputs have arrived. An unreadable snapshot is not acknowledged,
    /// so the server will not use it as a base.
    pub(crate) fn receive(&mut self, now: Time) -> io::Result<()> {
        let Self { connection, snapshots, fresh, .. } = self;
        connection.receive(now, |payload| match delta::read(payload, |base| snapshots.get(base)) {
            Ok((number, snapshot)) if !snapshots.is_stale(number) => {
                snapshots.insert(number, snapshot);
                fresh.push_back(number);
                true
            }
            _ => false,
        })?;
        while let Some(packet) = self.connection.pop_acked() {
            // A packet contains all inputs up to its newest that had not arrived: now they have.
            let Some(end) = self.carried.remove(packet) else { continue };
            let later = (self.next_input - end) as usize;
            self.unacked.drain(..self.unacked.len().saturating_sub(later));
        }
        Ok(())
    }

    /// The next snapshot that has arrived. A game draws the newest one, or interpolates the newest two.
    pub(crate) fn pop_snapshot(&mut self) -> Option<(Seq16, &Snapshot)> {
        let number = self.fresh.pop_front()?;
        Some((number, self.snapshots.get(number)?))
    }

    /// Sends the keys held in this tick, and those of earlier ticks again.
    pub(crate) fn tick(&mut self, now: Time, keys: u8) -> Result<(), Box<dyn Error>> {
        if self.unacked.len() == INPUTS_MAX {
            self.unacked.pop_front(); // too old to matter
        }
        self.unacked.push_back(keys);
        self.next_input += 1;
        self.send_inputs(now)
    }

    /// Whether some inputs are not known to have arrived.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.unacked.is_empty()
    }

    pub(crate) fn send_inputs(&mut self, now: Time) -> Result<(), Box<dyn Error>> {
        let first = self.next_input - u32::try_from(self.unacked.len())?;
        let inputs = Inputs { first, keys: self.unacked.iter().copied().collect() };
        let packet = self.connection.send(now, &inputs.write()?)?;
        self.carried.insert(packet, self.next_input);
        Ok(())
    }
}
