//! Writes the corpora to start from: `cargo run --example seeds`.

use std::path::Path;
use std::{fs, io};

fn main() -> io::Result<()> {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR"));
    let seeds = whitewater_fuzz::seeds::all(&fuzz.join("../tests/vectors/kcp"))?;
    for seed in &seeds {
        let folder = fuzz.join("corpus").join(seed.target);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(&seed.name), &seed.bytes)?;
    }
    #[cfg(feature = "game")]
    for (name, bytes) in tower_defence::wire::hostile::seeds() {
        let folder = fuzz.join("corpus").join("game_packets");
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(name), bytes)?;
    }
    println!("{} seeds", seeds.len());
    Ok(())
}
