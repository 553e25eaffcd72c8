#!/bin/sh
# Checks the library with the oldest Rust that Cargo.toml promises. Where rustup cannot get that it says so, and fails if WHITEWATER_NO_SKIP is 1.
# That no dependency promises less is in tests/release.rs.
set -eu
cd "$(dirname "$0")/.."
version=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
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
cargo "+$version" check --locked --lib --no-default-features
cargo "+$version" check --locked --lib --all-features
