//! What cargo and rustc are asked for.

use super::{Error, Options};
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Builds the package and returns its wasm file.
pub(super) fn build(package: &str, options: &Options) -> Result<PathBuf, Error> {
    has_target()?;
    let profile = if options.release { "web" } else { "dev" };
    let mut command = Command::new(program("CARGO", "cargo"));
    command.args(["build", "--message-format", "json-render-diagnostics", "--target", TARGET]);
    command.args(["--profile", profile, "-p", package]);
    if !options.features.is_empty() {
        command.args(["--features", &options.features]);
    }
    // Its own directory: a cargo that runs us holds the lock of the usual one.
    command.arg("--target-dir").arg(target_dir()?);
    // Those of the environment are for this machine.
    command.env_remove("RUSTFLAGS").env("CARGO_ENCODED_RUSTFLAGS", shorter_paths().join("\u{1f}"));
    let output =
        command.stderr(Stdio::inherit()).output().map_err(|error| Error::Io("cargo".into(), error))?;
    if !output.status.success() {
        return Err(Error::Cargo(package.into()));
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    // The package itself is built last.
    let wasm = messages.lines().rev().find_map(wasm_file);
    wasm.ok_or_else(|| Error::NoWasm(package.into()))
}

/// Flags by which messages of panics name files without the folders of this machine, which are nobody's business and long.
fn shorter_paths() -> Vec<String> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| env::home_dir().map(|home| home.join(".cargo"))).unwrap_or_default();
    let registries = home.join("registry").join("src").read_dir().into_iter().flatten().flatten();
    registries.map(|folder| format!("--remap-path-prefix={}/=", folder.path().display())).collect()
}

/// The wasm file in a message of cargo about what it built.
fn wasm_file(message: &str) -> Option<PathBuf> {
    let message: serde_json::Value = serde_json::from_str(message).ok()?;
    let files = message.get("filenames")?.as_array()?;
    let mut files = files.iter().filter_map(|file| file.as_str().map(PathBuf::from));
    files.find(|file| file.extension().is_some_and(|extension| extension == "wasm"))
}

/// Whether Rust can build for browsers; adds what is missing, where rustup has installed Rust.
fn has_target() -> Result<(), Error> {
    if is_installed()? {
        return Ok(());
    }
    eprintln!("Rust cannot build for browsers yet: running `rustup target add {TARGET}`");
    let added = Command::new("rustup").args(["target", "add", TARGET]).status();
    if added.is_ok_and(|status| status.success()) && is_installed()? { Ok(()) } else { Err(Error::NoTarget) }
}

fn is_installed() -> Result<bool, Error> {
    let mut rustc = Command::new(program("RUSTC", "rustc"));
    rustc.args(["--print", "target-libdir", "--target", TARGET]);
    let output = rustc.output().map_err(|error| Error::Io("rustc".into(), error))?;
    Ok(Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir())
}

fn target_dir() -> Result<PathBuf, Error> {
    if let Some(shared) = env::var_os("CARGO_TARGET_DIR") {
        return Ok(Path::new(&shared).join("web"));
    }
    let mut cargo = Command::new(program("CARGO", "cargo"));
    cargo.args(["locate-project", "--workspace", "--message-format", "plain"]).stderr(Stdio::inherit());
    let output = cargo.output().map_err(|error| Error::Io("cargo".into(), error))?;
    let manifest = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    Ok(manifest.with_file_name("target").join("web"))
}

/// A program of Rust: the one that runs us, if it does.
fn program(variable: &str, name: &str) -> OsString {
    env::var_os(variable).unwrap_or_else(|| name.into())
}

const TARGET: &str = "wasm32-unknown-unknown";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wasm_file_is_found_among_other_messages() {
        let built = r#"{"reason":"compiler-artifact","filenames":["/t/a.rlib","/t/a.wasm"]}"#;
        assert_eq!(wasm_file(built), Some(PathBuf::from("/t/a.wasm")));
        for other in
            [r#"{"reason":"build-finished","success":true}"#, r#"{"filenames":["/t/a.rlib"]}"#, "text"]
        {
            assert_eq!(wasm_file(other), None);
        }
    }
}
