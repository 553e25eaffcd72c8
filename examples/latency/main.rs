//! How long messages take in each mode, and at what cost: a table, and a picture of it.
//!
//! ```text
//! cargo run --release --example latency [-- --help]
//! ```

mod args;
mod events;
mod modes;
mod panels;
mod picture;
mod progress;
mod real;
#[path = "../echo/relay.rs"]
mod relay;
mod simulated;
mod table;
mod trace;

use args::{Args, Command, Events, Plot};
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::process::ExitCode;
use whitewater_sim::scenario::Report;

/// A mode's name and its measurements.
type Outcome = (String, Report);

fn main() -> ExitCode {
    let done = match Args::parse(std::env::args().skip(1)) {
        Ok(Command::Run(args)) => run(&args),
        Ok(Command::Events(events)) => log(&events),
        Ok(Command::Plot(plot)) => self::plot(&plot),
        Ok(Command::Help) => {
            println!("{}", args::HELP);
            return ExitCode::SUCCESS;
        }
        Err(wrong) => {
            eprintln!("latency: {wrong} (--help tells more)");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(wrong) => {
            eprintln!("latency: {wrong}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<(), String> {
    // Opened before the work, so that an error does not waste it.
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

/// Writes the log of a run, and draws it.
fn log(events: &Events) -> Result<(), String> {
    let unwritable =
        |error: &dyn std::fmt::Display| format!("cannot write {}: {error}", events.log.display());
    let file = File::create(&events.log).map_err(|error| unwritable(&error))?;
    let lines = events::run(events, &mut BufWriter::new(file)).map_err(|error| unwritable(&error))?;
    println!("{lines} events: {}", events.log.display());
    events.plot.as_ref().map_or(Ok(()), plot)
}

/// Draws a log.
fn plot(plot: &Plot) -> Result<(), String> {
    let unreadable = |error: &dyn std::fmt::Display| format!("cannot draw {}: {error}", plot.log.display());
    let text = std::fs::read_to_string(&plot.log).map_err(|error| unreadable(&error))?;
    let trace = trace::Trace::parse(&text, plot.channel).map_err(|error| unreadable(&error))?;
    let svg = panels::draw(&plot.title, &trace)?;
    let file = open(&plot.out).map_err(|error| unwritable(&plot.out, &error))?;
    write(file, &svg).map_err(|error| unwritable(&plot.out, &error))?;
    println!("picture: {}", plot.out.display());
    Ok(())
}

/// Keeps an older picture until there is a new one.
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
