//! What `src/net/sync.rs` takes from std, under the scheduler.

pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicUsize};
use shuttle::sync::{Condvar, Mutex};

/// Ends the current wait of its port, or the next one, as the bell of a real port does.
#[derive(Debug, Default)]
pub struct Bell {
    is_rung: Mutex<bool>,
    rings: Condvar,
}

impl Bell {
    pub fn ring(&self) {
        *self.is_rung.lock().unwrap() = true;
        self.rings.notify_one();
    }

    /// Waits until it is rung. It has no timeout: a ring that is lost is found as a deadlock.
    pub(crate) fn wait(&self) {
        let mut is_rung = self.is_rung.lock().unwrap();
        while !std::mem::take(&mut *is_rung) {
            is_rung = self.rings.wait(is_rung).unwrap();
        }
    }
}

pub(crate) mod mpsc {
    use shuttle::sync::mpsc;
    pub(crate) use shuttle::sync::mpsc::{Sender, SyncSender};
    use std::sync::mpsc::{RecvError, RecvTimeoutError, TryRecvError};
    use std::time::Duration;

    /// The scheduler has no time: a wait is either none or without an end.
    #[derive(Debug)]
    pub(crate) struct Receiver<T>(mpsc::Receiver<T>);

    impl<T> Receiver<T> {
        pub(crate) fn recv(&self) -> Result<T, RecvError> {
            self.0.recv()
        }

        pub(crate) fn try_recv(&self) -> Result<T, TryRecvError> {
            self.0.try_recv()
        }

        pub(crate) fn recv_timeout(&self, timeout: Duration) -> Result<T, RecvTimeoutError> {
            if timeout.is_zero() {
                return self.try_recv().map_err(|_| RecvTimeoutError::Timeout);
            }
            self.recv().map_err(|_| RecvTimeoutError::Disconnected)
        }
    }

    pub(crate) fn channel<T>() -> (Sender<T>, Receiver<T>) {
        let (gives, takes) = mpsc::channel();
        (gives, Receiver(takes))
    }

    pub(crate) fn sync_channel<T>(bound: usize) -> (SyncSender<T>, Receiver<T>) {
        let (gives, takes) = mpsc::sync_channel(bound);
        (gives, Receiver(takes))
    }
}

pub(crate) mod thread {
    use shuttle::sync::atomic::{AtomicBool, Ordering::SeqCst};
    use shuttle::thread;
    use std::io;
    use std::sync::Arc;

    pub(crate) struct Builder(thread::Builder);

    pub(crate) struct JoinHandle<T> {
        thread: thread::JoinHandle<T>,
        is_finished: Arc<AtomicBool>,
    }

    impl Builder {
        pub(crate) fn new() -> Self {
            Self(thread::Builder::new())
        }

        pub(crate) fn name(self, name: String) -> Self {
            Self(self.0.name(name))
        }

        pub(crate) fn spawn<T: Send + 'static>(
            self,
            run: impl FnOnce() -> T + Send + 'static,
        ) -> io::Result<JoinHandle<T>> {
            let is_finished = Arc::new(AtomicBool::new(false));
            let done = Arc::clone(&is_finished);
            let thread = self.0.spawn(move || {
                let result = run();
                done.store(true, SeqCst);
                result
            })?;
            Ok(JoinHandle { thread, is_finished })
        }
    }

    impl<T> JoinHandle<T> {
        pub(crate) fn is_finished(&self) -> bool {
            self.is_finished.load(SeqCst)
        }

        pub(crate) fn join(self) -> std::thread::Result<T> {
            self.thread.join()
        }
    }
}
