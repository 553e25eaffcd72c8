//! The program: see `--help`.

fn main() {}
