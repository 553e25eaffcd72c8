//! The server: advances the world 60 times a second, and sends a snapshot of it 20 times.

use crate::connection::Connection;
use crate::delta::{self, AGE_MAX};
use crate::inputs::{INPUTS_MAX, Inputs};
use crate::world::{Snapshot, World};
use std::collections::VecDeque;
use std::error::Error;
use std::io;
use whitewater::Time;
use whitewater::packet::{Seq16, SequenceBuffer};

pub(crate) struct Server {
    pub(crate) connection: Connection,
    world: World,
    ticks: u32,
    /// The number of the next snapshot.
    next: Seq16,
    /// The newest snapshots, as bases of later ones.
    snapshots: SequenceBuffer<Snapshot>,
    /// For each packet, its snapshot.
    carried: SequenceBuffer<Seq16>,
    /// The newest snapshot that the client is known to have.
    base: Option<Seq16>,
    /// Inputs that were not applied yet.
    inputs: VecDeque<u8>,
    keys: u8,
    next_input: u32,
    pub(crate) sent: SnapshotsSent,
    pub(crate) arrived: InputsArrived,
}

/// Snapshots sent, and their bytes.
#[derive(Default)]
pub(crate) struct SnapshotsSent {
    pub(crate) full: u32,
    pub(crate) deltas: u32,
    /// Bytes of the deltas.
    pub(crate) delta_bytes: usize,
    /// Bytes of all snapshots.
    pub(crate) bytes: usize,
    /// Bytes of all snapshots if they had been full.
    pub(crate) full_bytes: usize,
}

impl SnapshotsSent {
    fn count(&mut self, is_delta: bool, bytes: usize, full_bytes: usize) {
        if is_delta {
            self.deltas += 1;
            self.delta_bytes += bytes;
        } else {
            self.full += 1;
        }
        self.bytes += bytes;
        self.full_bytes += full_bytes;
    }
}

/// Inputs received, each counted once.
#[derive(Default)]
pub(crate) struct InputsArrived {
    /// In the packet that was sent for them.
    pub(crate) at_once: u32,
    /// In a later packet, because that one was lost or overtaken.
    pub(crate) by_redundancy: u32,
    /// Too old by the time a packet arrived.
    pub(crate) lost: u32,
}

impl Server {
    pub(crate) fn new(connection: Connection, seed: u64) -> Self {
        Self {
            connection,
            world: World::new(seed),
            ticks: 0,
            next: Seq16(0),
            snapshots: SequenceBuffer::new(AGE_MAX + 1),
            carried: SequenceBuffer::new(256),
            base: None,
            inputs: VecDeque::new(),
            keys: 0,
            next_input: 0,
            sent: SnapshotsSent::default(),
            arrived: InputsArrived::default(),
        }
    }

    /// The world as it was when snapshot `number` was sent.
    pub(crate) fn snapshot(&self, number: Seq16) -> Option<&Snapshot> {
        self.snapshots.get(number)
    }

    /// Receives what has arrived: inputs, and which snapshots have arrived.
    pub(crate) fn receive(&mut self, now: Time) -> io::Result<()> {
        let Self { connection, inputs, next_input, arrived, .. } = self;
        connection.receive(now, |payload| {
            let Ok(packet) = Inputs::read(payload) else { return false };
            for (number, keys, is_newest) in packet.iter() {
                let Some(skipped) = number.checked_sub(*next_input) else { continue }; // it was received before
                arrived.lost += skipped;
                arrived.at_once += u32::from(is_newest);
                arrived.by_redundancy += u32::from(!is_newest);
                *next_input = number.saturating_add(1);
                inputs.push_back(keys);
            }
            let late = inputs.len().saturating_sub(INPUTS_MAX);
            inputs.drain(..late); // rather skip some than stay behind for good
            true
        })?;
        while let Some(packet) = self.connection.pop_acked() {
            let Some(number) = self.carried.remove(packet) else { continue };
            if self.base.is_none_or(|base| base.is_before(number)) {
                self.base = Some(number);
            }
        }
        Ok(())
    }

    /// Advances the world by a tick, and sends a snapshot every third time.
    pub(crate) fn tick(&mut self, now: Time) -> Result<(), Box<dyn Error>> {
        self.keys = self.inputs.pop_front().unwrap_or(self.keys);
        self.world.step(self.keys);
        if self.ticks.is_multiple_of(3) {
            self.send_snapshot(now)?;
        }
        self.ticks += 1;
        Ok(())
    }

    fn send_snapshot(&mut self, now: Time) -> Result<(), Box<dyn Error>> {
        let number = self.next;
        self.next = number.add(1);
        // This drops the oldest snapshot. A dropped base can no longer be used, even when its number is reused.
        self.snapshots.insert(number, self.world.snapshot().clone());
        self.base = self.base.filter(|base| self.snapshots.get(*base).is_some());
        let base = self.base.and_then(|base| Some((base, self.snapshots.get(base)?)));
        let payload = delta::write(number, self.world.snapshot(), base)?;
        self.sent.count(base.is_some(), payload.len(), delta::full_len(self.world.snapshot())?);
        let packet = self.connection.send(now, &payload)?;
        self.carried.insert(packet, number);
        Ok(())
    }
}
