//! Runs the property of the fuzz target `kcp_go` on its seeds, and on the inputs that once broke it.

#[path = "../../../fuzz/kcp_go.rs"]
#[expect(clippy::expect_used, clippy::indexing_slicing, reason = "a property fails by a panic")]
pub mod kcp_go;
#[path = "../../../fuzz/src/script.rs"]
#[allow(dead_code, reason = "other targets use all of it")]
pub mod script;

use std::fs;

#[test]
fn seeds_and_inputs_that_once_failed_hold() {
    let seeds = kcp_go::seeds();
    assert!(seeds.len() > 5, "{} seeds", seeds.len());
    for (name, bytes) in seeds {
        println!("{name}");
        kcp_go::kcp_go(&bytes);
    }
    let failed = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/regressions/kcp_go");
    for entry in fs::read_dir(failed).into_iter().flatten().flatten() {
        println!("{}", entry.path().display());
        kcp_go::kcp_go(&fs::read(entry.path()).unwrap());
    }
}
