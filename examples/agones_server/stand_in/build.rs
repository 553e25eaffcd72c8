//! Makes the server's side of the SDK's protocol from the .proto files that the crate `agones` is published with.

use std::env;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() -> Result<(), Box<dyn Error>> {
    let protos = agones()?.join("proto");
    let files = ["sdk/sdk.proto", "sdk/beta/beta.proto"].map(|file| protos.join(file));
    let folders = ["googleapis", "grpc-gateway", "sdk", "sdk/beta"].map(|folder| protos.join(folder));
    tonic_build::configure().build_client(false).compile_protos(&files, &folders)?;
    println!("cargo:rerun-if-changed={}", protos.display());
    Ok(())
}

/// The folder of the crate `agones`.
fn agones() -> Result<PathBuf, Box<dyn Error>> {
    let manifest = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("Cargo.toml");
    let mut cargo = Command::new(env::var("CARGO")?);
    cargo.args(["metadata", "--format-version", "1", "--locked", "--filter-platform", &env::var("TARGET")?]);
    cargo.arg("--manifest-path").arg(manifest);
    let output = cargo.output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let known: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let packages = known["packages"].as_array().ok_or("cargo names no packages")?;
    let agones = packages.iter().find(|package| package["name"] == "agones").ok_or("no crate agones")?;
    let manifest = Path::new(agones["manifest_path"].as_str().ok_or("no path")?);
    Ok(manifest.parent().ok_or("no folder")?.to_owned())
}
