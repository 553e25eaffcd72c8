//! `cargo run -p whitewater-web-build -- PACKAGE OUT_DIR`: builds a package of the workspace for browsers, and prints its size.

use std::env;
use std::path::Path;
use std::process::ExitCode;
use whitewater_web_build::{Options, Target, build};

const USAGE: &str = "\
Builds a package of this workspace for browsers: OUT_DIR/PACKAGE.js and OUT_DIR/PACKAGE_bg.wasm.

  cargo run -p whitewater-web-build -- PACKAGE OUT_DIR [--node] [--dev] [--features A,B] [--at-most KB]

  --node          for Node instead of browsers
  --dev           without optimisation
  --features A,B  features of the package
  --at-most KB    fail if it is longer than that many kB, compressed with gzip";

fn main() -> ExitCode {
    let (mut options, mut places, mut most) = (Options::default(), Vec::new(), None);
    let mut args = env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--node" => options.target = Target::Node,
            "--dev" => options.release = false,
            "--features" => options.features = args.next().unwrap_or_default(),
            "--at-most" => most = args.next().and_then(|kb| kb.parse::<usize>().ok()),
            _ => places.push(arg),
        }
    }
    let [package, out] = places.as_slice() else {
        eprintln!("{USAGE}");
        return ExitCode::FAILURE;
    };
    match build(package, Path::new(out), &options) {
        Ok(built) => {
            println!("{}: {} bytes, {} gzipped", built.wasm_file.display(), built.wasm, built.gzipped);
            if most.is_some_and(|most| built.gzipped > most * 1000) {
                eprintln!("that is too long for a browser to load");
                return ExitCode::FAILURE;
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
