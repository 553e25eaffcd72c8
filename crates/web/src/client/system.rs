//! What a client needs from the browser besides transports: a clock, random bytes and one timer.

use super::js;
use std::cell::RefCell;
use std::time::Duration;
use wasm_bindgen::JsValue;
use wasm_bindgen::closure::Closure;
use whitewater::Time;
use whitewater::rand_core::{TryCryptoRng, TryRng};

/// The time since the page or the worker was opened.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "no page is open for 292,000 years"
)]
pub(super) fn now() -> Time {
    Time::from_micros((js::performance_now() * 1000.0) as u64)
}

/// Random bytes of the browser.
#[derive(Clone, Copy, Debug)]
pub(super) struct Random;

/// There is no `crypto.getRandomValues`.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("there are no random bytes: `crypto.getRandomValues` is missing")]
pub(super) struct NoRandom;

impl TryRng for Random {
    type Error = NoRandom;

    fn try_next_u32(&mut self) -> Result<u32, NoRandom> {
        let mut bytes = [0; 4];
        self.try_fill_bytes(&mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn try_next_u64(&mut self) -> Result<u64, NoRandom> {
        let mut bytes = [0; 8];
        self.try_fill_bytes(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), NoRandom> {
        bytes
            .chunks_mut(MOST_AT_ONCE)
            .try_for_each(|part| js::random_values(part).map(drop).map_err(|_| NoRandom))
    }
}

impl TryCryptoRng for Random {}

/// Calls back once, at about a time. A tab in the background is called late: after up to 1 s, later on up to 1 min.
#[derive(Debug)]
pub(super) struct Timer {
    then: Closure<dyn Fn()>,
    armed: RefCell<Option<(Time, JsValue)>>,
}

impl Timer {
    pub(super) fn new(then: impl Fn() + 'static) -> Self {
        Self { then: Closure::new(then), armed: RefCell::default() }
    }

    /// Notes that it has called, which may be a little early.
    pub(super) fn has_called(&self) {
        self.armed.take();
    }

    /// Calls back at this time or earlier. Each call has to be answered with [`has_called`](Self::has_called), and with this again.
    pub(super) fn arm(&self, now: Time, at: Time) {
        let is_soon_enough = self.armed.borrow().as_ref().is_some_and(|(armed, _)| *armed <= at);
        if is_soon_enough {
            return; // it is armed again then
        }
        self.disarm();
        let wait = at.since(now).min(LONGEST);
        let timeout = js::set_timeout(self.then.as_ref(), (wait.as_secs_f64() * 1000.0).ceil());
        *self.armed.borrow_mut() = Some((now + wait, timeout));
    }

    pub(super) fn disarm(&self) {
        if let Some((_, timeout)) = self.armed.take() {
            js::clear_timeout(&timeout);
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.disarm();
    }
}

/// Source: the Web Cryptography API, `getRandomValues`.
const MOST_AT_ONCE: usize = 65_536;
/// Browsers count ms in 31 bits.
const LONGEST: Duration = Duration::from_secs(60);
