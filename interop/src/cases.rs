//! Runs many cases at a time, and prints a table of them.

use std::fmt::{Debug, Display};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

/// Runs all cases, several at a time: they mostly wait for a network. Prints a line for each.
///
/// # Panics
///
/// If one of the cases panicked; only after all have run.
pub fn run<C, R>(cases: &[C], run: impl Fn(&C) -> R + Sync)
where
    C: Debug + Sync,
    R: Display + Send,
{
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(Vec::new());
    let work = || {
        while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            let start = Instant::now();
            let result = catch_unwind(AssertUnwindSafe(|| run(case)));
            let seconds = start.elapsed().as_secs_f64();
            match result {
                Ok(result) => println!("{case:?} | {seconds:5.2} s | {result}"),
                Err(_) => {
                    println!("{case:?} | {seconds:5.2} s | FAILED");
                    failed.lock().unwrap().push(format!("{case:?}"));
                }
            }
        }
    };
    thread::scope(|scope| (0..AT_A_TIME).for_each(|_| drop(scope.spawn(work))));
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "of {} cases failed {failed:#?}", cases.len());
}

const AT_A_TIME: usize = 4;
