//! The parts of `tests/vectors.rs`: the recording (`trace`), ikcp.c's interface on top of `Kcp` (`adapter`,
//! `rewrite`), the table in `docs/DEVIATIONS.md` (`deviations`), a single trace (`replay`), all of them
//! (`suite`).

mod adapter;
pub(crate) mod deviations;
mod replay;
mod rewrite;
pub(crate) mod suite;
mod trace;
