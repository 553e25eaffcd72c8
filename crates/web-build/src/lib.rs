//! Builds a crate for browsers: wasm32 by cargo, and its JavaScript by wasm-bindgen.
//!
//! wasm-bindgen's own program has to be of the same version as the crate `wasm-bindgen`. This is a program of the workspace instead, so that
//! one lock file holds both.
//!
//! ```no_run
//! use std::path::Path;
//! use whitewater_web_build::{Options, build};
//!
//! let built = build("whitewater-js", Path::new("target/js"), &Options::default())?;
//! println!("{} bytes, {} for a browser that loads them compressed", built.wasm, built.gzipped);
//! # Ok::<(), whitewater_web_build::Error>(())
//! ```

mod cargo;

use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use wasm_bindgen_cli_support::Bindgen;

/// How to build.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "plain fields, made with `..Options::default()`")]
pub struct Options {
    /// Build for size, which takes longer; otherwise with the profile `dev`. On by default.
    pub release: bool,
    /// Who loads the JavaScript.
    pub target: Target,
    /// Features of the package, separated by commas.
    pub features: String,
}

impl Default for Options {
    fn default() -> Self {
        Self { release: true, target: Target::Web, features: String::new() }
    }
}

/// Who loads the JavaScript.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Target {
    /// A module for browsers, whose default export loads the wasm file from what it is given as `module_or_path`: a URL or bytes.
    Web,
    /// A CommonJS module for Node.
    Node,
}

/// What was built.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Built {
    /// The module.
    pub js: PathBuf,
    /// The wasm file beside it.
    pub wasm_file: PathBuf,
    /// Bytes of the wasm file.
    pub wasm: usize,
    /// The same, compressed with gzip as by a web server.
    pub gzipped: usize,
}

/// Why nothing was built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The standard library for wasm32 is missing.
    #[error("Rust cannot build for browsers yet: run `rustup target add wasm32-unknown-unknown`")]
    NoTarget,
    /// cargo has said what is wrong.
    #[error("cargo could not build {0} for wasm32-unknown-unknown")]
    Cargo(String),
    /// The package has no library of the kind `cdylib` and no program.
    #[error(
        "{0} makes no wasm file: it needs `crate-type = [\"cdylib\"]` below `[lib]`, or a function `main`"
    )]
    NoWasm(String),
    /// wasm-bindgen refuses the file.
    #[error("wasm-bindgen: {0}")]
    Bindgen(String),
    /// A program or a file.
    #[error("{0}: {1}")]
    Io(String, #[source] io::Error),
}

/// Builds `package` of the workspace around the current directory, and writes its JavaScript and its wasm file into the directory `out`.
/// They are named as the package, with `_` for `-`, and `_bg` after the name of the wasm file.
///
/// # Errors
///
/// See [`Error`].
pub fn build(package: &str, out: &Path, options: &Options) -> Result<Built, Error> {
    let input = cargo::build(package, options)?;
    let name = package.replace('-', "_");
    bindgen(&input, &name, out, options.target)?;
    let (js, wasm_file) = (out.join(format!("{name}.js")), out.join(format!("{name}_bg.wasm")));
    let bytes = fs::read(&wasm_file).map_err(|error| Error::Io(wasm_file.display().to_string(), error))?;
    let gzipped = gzipped(&bytes).map_err(|error| Error::Io("gzip".into(), error))?;
    Ok(Built { js, wasm_file, wasm: bytes.len(), gzipped })
}

/// Bytes after compression with gzip at its best, as a web server keeps a file.
///
/// # Errors
///
/// None that writing to memory can have.
pub fn gzipped(bytes: &[u8]) -> io::Result<usize> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?.len())
}

fn bindgen(input: &Path, name: &str, out: &Path, target: Target) -> Result<(), Error> {
    let failed = |error| Error::Bindgen(format!("{error:#}"));
    let mut bindgen = Bindgen::new();
    match target {
        Target::Web => bindgen.web(true).map_err(failed)?,
        Target::Node => bindgen.nodejs(true).map_err(failed)?,
    };
    bindgen.input_path(input).out_name(name).typescript(true);
    bindgen.remove_name_section(true).remove_producers_section(true).generate(out).map_err(failed)
}
