//! The program: reads its settings and serves until SIGTERM or ctrl-c.

use std::env;
use std::error::Error;
use std::process::ExitCode;
use whitewater_matchmaker::Matchmaker;
use whitewater_matchmaker::settings::{Settings, USAGE};

fn main() -> ExitCode {
    let words: Vec<_> = env::args().skip(1).collect();
    if words.is_empty() || words.iter().any(|word| word == "--help") {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(wrong) => {
            eprintln!("whitewater-matchmaker: {wrong}");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main]
async fn run(words: &[String]) -> Result<(), Box<dyn Error>> {
    let settings = Settings::from_words(words)?;
    let scheme = if settings.tls.is_some() { "https" } else { "http" };
    let matchmaker = Matchmaker::bind(settings).await?;
    println!("listening on {scheme}://{}", matchmaker.local_addr()?);
    matchmaker.serve(told_to_end()).await;
    Ok(())
}

#[cfg(unix)]
async fn told_to_end() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminate) = signal(SignalKind::terminate()) else { return };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
}

#[cfg(not(unix))]
async fn told_to_end() {
    let _ = tokio::signal::ctrl_c().await;
}
