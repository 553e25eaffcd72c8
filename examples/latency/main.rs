//! How long messages take in each mode, and what that costs: a table, and a picture of it.
//!
//! ```text
//! cargo run --release --example latency [-- --help]
//! ```

mod args;
mod picture;
mod progress;
mod real;
#[path = "../echo/relay.rs"]
mod relay;
mod simulated;
mod table;

use args::{Args, Command};
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use whitewater::sim::scenario::Report;

/// A mode's name and what was measured.
type Outcome = (String, Report);

fn main() -> ExitCode {
    let args = match Args::parse(std::env::args().skip(1)) {
        Ok(Command::Run(args)) => args,
        Ok(Command::Help) => {
            println!("{}", args::HELP);
            return ExitCode::SUCCESS;
        }
        Err(wrong) => {
            eprintln!("latency: {wrong} (--help tells more)");
            return ExitCode::from(2);
        }
    };
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(wrong) => {
            eprintln!("latency: {wrong}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<(), String> {
    // Before the work, so that it is not done for nothing.
    let file = open(&args.out).map_err(|error| unwritable(&args.out, &error))?;
    let outcomes = if args.real {
        real::run(args).map_err(|error| format!("over UDP: {error}"))?
    } else {
        simulated::run(args).map_err(|error| error.to_string())?
    };
    println!("{}\n", args.title());
    table::print(&outcomes);
    if args.real {
        println!("\nkB without the headers of IP and UDP");
    }
    let svg = picture::draw(&args.title(), &outcomes)?;
    write(file, &svg).map_err(|error| unwritable(&args.out, &error))?;
    println!("\npicture: {}", args.out.display());
    Ok(())
}

/// An older picture stays as it is until there is a new one.
fn open(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(false).open(path)
}

fn write(mut file: File, svg: &str) -> std::io::Result<()> {
    // A device such as /dev/stdout has no length.
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    file.write_all(svg.as_bytes())
}

fn unwritable(path: &Path, error: &std::io::Error) -> String {
    format!("cannot write {}: {error}", path.display())
}
