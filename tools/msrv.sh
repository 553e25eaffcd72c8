#!/bin/sh
# Checks the library, its sockets and its envelopes with the oldest Rust that Cargo.toml promises, and that no dependency needs a newer one. Needs
# python3. If rustup cannot get that Rust it says so, and then fails if WHITEWATER_NO_SKIP is 1.
set -eu
cd "$(dirname "$0")/.."
version=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)

# Every dependency of users, on any system and with any feature, without those of tests and examples. Cargo downloads what only other systems need.
cargo metadata --format-version 1 --all-features --locked | python3 -c '
import json, sys
metadata = json.load(sys.stdin)
packages = {package["id"]: package for package in metadata["packages"]}
nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
rest = [id for id, package in packages.items() if package["name"] in ("whitewater", "whitewater-kcp-go", "whitewater-udp", "whitewater-web")]
seen = set()
while rest:
    id = rest.pop()
    if id not in seen:
        seen.add(id)
        rest += [used["pkg"] for used in nodes[id]["deps"] if any(kind["kind"] != "dev" for kind in used["dep_kinds"])]
number = lambda version: ([int(part) for part in version.split(".")] + [0, 0])[:3]
theirs = {id: packages[id]["rust_version"] for id in seen}
newer = [f"{id} needs Rust {version}" for id, version in theirs.items() if version and number(version) > number(sys.argv[1])]
print(f"{len(seen)} packages looked at", *newer, sep="\n")
sys.exit(len(seen) < 40 or len(newer) > 0)
' "$version"

if ! command -v rustup >/dev/null; then
  echo "skipped: there is no rustup to get Rust $version"
  exit "${WHITEWATER_NO_SKIP:-0}"
fi
if ! rustup run "$version" cargo --version >/dev/null 2>&1 && ! rustup toolchain install "$version" --profile minimal >/dev/null 2>&1; then
  echo "skipped: rustup cannot get Rust $version"
  exit "${WHITEWATER_NO_SKIP:-0}"
fi
target=$(cargo metadata --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
export CARGO_TARGET_DIR="$target/msrv"
cargo "+$version" check --locked --lib -p whitewater -p whitewater-kcp-go -p whitewater-udp --no-default-features
cargo "+$version" check --locked --lib -p whitewater -p whitewater-kcp-go -p whitewater-udp --all-features
