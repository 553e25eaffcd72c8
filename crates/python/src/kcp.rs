//! Bare KCP, without I/O and without a clock.

use crate::error;
use crate::kcp_config::KcpConfig;
use crate::settings::bytes;
use crate::stats::KcpStats;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::{Mutex, MutexGuard, PoisonError};
use whitewater::Time;
use whitewater::kcp::{self, Config, Conv};
use whitewater::machine::DatagramQueue;

/// One end of a conversation.
#[pyclass(frozen, module = "whitewater")]
pub(crate) struct Kcp(Mutex<kcp::Kcp<DatagramQueue>>);

#[pymethods]
impl Kcp {
    #[new]
    #[pyo3(signature = (conv, config = None))]
    fn new(py: Python<'_>, conv: u32, config: Option<&Bound<'_, KcpConfig>>) -> PyResult<Self> {
        let config = config.map_or_else(Config::default, |config| config.get().0);
        let window = usize::from(config.snd_wnd) * usize::from(config.mtu);
        let queue = DatagramQueue::with_limit(window.max(DatagramQueue::DEFAULT_LIMIT));
        let kcp = kcp::Kcp::new(Conv(conv), &config, queue);
        Ok(Self(Mutex::new(kcp.map_err(|error| error::of_config(py, error))?)))
    }

    /// Queues a message. Returns how many bytes were taken; `None`: there is no room now.
    fn send(&self, py: Python<'_>, message: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
        let message = bytes(message)?;
        let sent = self.lock().send(message.as_bytes());
        error::of_kcp_send(py, sent)
    }

    /// Takes the next message.
    fn recv<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        let message = self.lock().recv();
        message.map(|message| PyBytes::new(py, &message))
    }

    /// Takes a datagram of the peer.
    fn input(&self, py: Python<'_>, now: f64, datagram: &Bound<'_, PyAny>) -> PyResult<()> {
        let (now, datagram) = (time(now)?, bytes(datagram)?);
        let taken = self.lock().input(now, datagram.as_bytes());
        taken.map_err(|error| error::of_input(py, error))
    }

    /// Sends what is due.
    fn update(&self, now: f64) -> PyResult<()> {
        let now = time(now)?;
        self.lock().update(now);
        Ok(())
    }

    /// Sends without waiting for the interval.
    fn flush(&self, now: f64) -> PyResult<()> {
        let now = time(now)?;
        self.lock().flush(now);
        Ok(())
    }

    /// When to call `update` next; `None`: not before something is sent or arrives.
    #[expect(clippy::cast_precision_loss, reason = "µs of 285 years")]
    fn check(&self, now: f64) -> PyResult<Option<f64>> {
        let now = time(now)?;
        Ok(self.lock().check(now).map(|at| at.as_micros() as f64 / MICROS))
    }

    /// Takes the datagrams to send.
    fn output<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        let mut kcp = self.lock();
        let mut datagrams = Vec::with_capacity(kcp.output().len());
        while let Some(datagram) = kcp.output_mut().pop() {
            datagrams.push(PyBytes::new(py, datagram));
        }
        datagrams
    }

    /// Changes the settings.
    fn configure(&self, py: Python<'_>, config: &Bound<'_, KcpConfig>) -> PyResult<()> {
        self.lock().configure(&config.get().0).map_err(|error| error::of_config(py, error))
    }

    #[getter]
    fn conv(&self) -> u32 {
        self.lock().conv().0
    }

    /// Length of the next message, if it has arrived.
    fn peek_size(&self) -> Option<usize> {
        self.lock().peek_size()
    }

    /// Segments in flight and waiting to be sent.
    fn wait_snd(&self) -> usize {
        self.lock().wait_snd()
    }

    fn is_dead(&self) -> bool {
        self.lock().is_dead()
    }

    fn is_idle(&self) -> bool {
        self.lock().is_idle()
    }

    fn stats(&self) -> KcpStats {
        let kcp = self.lock();
        let stats = kcp.stats();
        KcpStats {
            srtt: stats.srtt.as_secs_f64(),
            rttvar: stats.rttvar.as_secs_f64(),
            rto: stats.rto.as_secs_f64(),
            in_flight: stats.in_flight.into(),
            snd_queue: stats.snd_queue.into(),
            rcv_queue: stats.rcv_queue.into(),
            segments_sent: stats.segments_sent,
            segments_received: stats.segments_received,
            resends: u64::from(stats.resends_timeout) + u64::from(stats.resends_fast),
            duplicates: stats.duplicates.into(),
        }
    }
}

impl Kcp {
    fn lock(&self) -> MutexGuard<'_, kcp::Kcp<DatagramQueue>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A time in seconds, of any clock that does not go back.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within the range")]
fn time(seconds: f64) -> PyResult<Time> {
    if !(0.0..1e12).contains(&seconds) {
        return Err(PyValueError::new_err(format!("{seconds} is no time in seconds: use time.monotonic()")));
    }
    Ok(Time::from_micros((seconds * MICROS).round() as u64))
}

const MICROS: f64 = 1e6;
