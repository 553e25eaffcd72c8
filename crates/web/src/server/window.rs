//! QUIC's congestion control, which stays out of the way.

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;
use wtransport::quinn::congestion::{Controller, ControllerFactory};

/// A window that does not change. Sessions decide what leaves and when: a second control below, which takes each loss for
/// congestion, would hold back what they have let go.
#[derive(Clone, Debug)]
pub(super) struct Open;

impl ControllerFactory for Open {
    fn build(self: Arc<Self>, _: Instant, _: u16) -> Box<dyn Controller> {
        Box::new(Self)
    }
}

impl Controller for Open {
    fn on_congestion_event(&mut self, _: Instant, _: Instant, _: bool, _: u64) {}

    fn on_mtu_update(&mut self, _: u16) {}

    fn window(&self) -> u64 {
        WINDOW
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        WINDOW
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// Bytes: more than a session has in flight.
const WINDOW: u64 = 4 << 20;
