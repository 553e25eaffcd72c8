//! Writes the seed corpora: `cargo run --example seeds`.

#[path = "../kcp_go.rs"]
mod kcp_go;

use std::path::Path;
use std::{fs, io};
use whitewater_fuzz::script;

fn main() -> io::Result<()> {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR"));
    let seeds = whitewater_fuzz::seeds::all(&fuzz.join("../tests/vectors/kcp"))?;
    for seed in &seeds {
        write(fuzz, seed.target, &seed.name, &seed.bytes)?;
    }
    for (name, bytes) in kcp_go::seeds() {
        write(fuzz, "kcp_go", &name, &bytes)?;
    }
    #[cfg(feature = "game")]
    for (name, bytes) in tower_defence::wire::hostile::seeds() {
        write(fuzz, "game_packets", name.as_ref(), &bytes)?;
    }
    println!("{} seeds", seeds.len());
    Ok(())
}

fn write(fuzz: &Path, target: &str, name: &str, bytes: &[u8]) -> io::Result<()> {
    let folder = fuzz.join("corpus").join(target);
    fs::create_dir_all(&folder)?;
    fs::write(folder.join(name), bytes)
}
