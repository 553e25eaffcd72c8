//! Runs the properties of the fuzz targets on the recorded traces, and on the inputs that once broke them.

#[path = "../fuzz/src/lib.rs"]
#[expect(clippy::expect_used, clippy::indexing_slicing, reason = "a property fails by a panic")]
pub mod fuzz;

use std::fs;
use std::path::Path;

#[test]
fn recorded_traces_hold_as_scripts() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/kcp");
    let seeds = fuzz::seeds::all(&folder).expect("the traces can be read");
    for &(target, property) in fuzz::TARGETS {
        let mut count = 0;
        for seed in seeds.iter().filter(|seed| seed.target == target) {
            println!("{target}: {}", seed.name);
            property(&seed.bytes);
            count += 1;
        }
        assert!(count > 5, "{count} seeds of {target}");
    }
}

#[test]
fn inputs_that_once_failed_hold() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/regressions");
    let mut count = 0;
    for &(target, property) in fuzz::TARGETS {
        for entry in fs::read_dir(folder.join(target)).into_iter().flatten().flatten() {
            println!("{}", entry.path().display());
            property(&fs::read(entry.path()).expect("the input can be read"));
            count += 1;
        }
    }
    assert!(count > 0, "no input in {}", folder.display());
}
