//! include/whitewater.h is what cbindgen generates from the sources.

use std::path::Path;

/// With `UPDATE_HEADER=1`, writes the header anew.
#[test]
fn the_header_says_what_the_sources_say() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(package.join("cbindgen.toml")).unwrap();
    let mut header = Vec::new();
    cbindgen::Builder::new()
        .with_config(config)
        .with_src(package.join("src/lib.rs"))
        .generate()
        .unwrap()
        .write(&mut header);
    let path = package.join("include/whitewater.h");
    if std::env::var_os("UPDATE_HEADER").is_some() {
        std::fs::write(&path, &header).unwrap();
    }
    let checked_in = std::fs::read_to_string(path).unwrap_or_default();
    assert!(String::from_utf8(header).unwrap() == checked_in, "run this test with UPDATE_HEADER=1");
}
