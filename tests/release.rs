//! What is promised to who depends on the library holds for what it depends on.

#![expect(clippy::unwrap_used, reason = "a test that panics has found something")]

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Of every dependency that users get, on any system and with any feature; what tests and examples need is not promised.
#[test]
fn no_dependency_needs_a_newer_rust_than_we_say() {
    let metadata = metadata();
    let packages: BTreeMap<_, _> =
        list(&metadata["packages"]).map(|package| (text(&package["id"]), package)).collect();
    let nodes: BTreeMap<_, _> =
        list(&metadata["resolve"]["nodes"]).map(|node| (text(&node["id"]), node)).collect();
    let (own, _) = packages.iter().find(|(_, package)| package["name"] == "whitewater").unwrap();
    let ours = rust_version(packages[own]).unwrap();
    let mut seen = BTreeSet::new();
    let mut rest = vec![*own];
    while let Some(id) = rest.pop() {
        if !seen.insert(id) {
            continue;
        }
        let is_used = |kind: &Value| kind["kind"] != "dev";
        let used = list(&nodes[id]["deps"]).filter(|dependency| list(&dependency["dep_kinds"]).any(is_used));
        rest.extend(used.map(|dependency| text(&dependency["pkg"])));
        let package = packages[id];
        let theirs = rust_version(package);
        assert!(theirs.as_ref().is_none_or(|theirs| *theirs <= ours), "{}: {theirs:?}", package["name"]);
    }
    assert!(seen.len() > 40, "only {} were looked at", seen.len());
}

/// What `cargo metadata` says with all features, from what is on this machine.
fn metadata() -> Value {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--format-version", "1", "--all-features", "--locked", "--offline"]);
    let output = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn rust_version(package: &Value) -> Option<Vec<u32>> {
    let version = package["rust_version"].as_str()?;
    Some(version.split('.').map(|part| part.parse().unwrap()).collect())
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().unwrap().iter()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}
