//! The program: see `--help`.

use tower_defence::headless::{Settings, print, run};

fn main() {
    let (samples, outcome) = run(&Settings::default());
    let mut text = String::new();
    let _ = print(&mut text, &samples, &outcome);
    print!("{text}");
}
