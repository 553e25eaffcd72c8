#!/bin/sh
# Compares the public API with the last release that is tagged `v..`: a version number that promises too much fails.
set -eu
cd "$(dirname "$0")/.."
if ! last=$(git describe --tags --abbrev=0 --match 'v[0-9]*' 2>/dev/null); then
  echo 'skipped: no release is tagged yet'
  exit 0
fi
if ! cargo semver-checks --version >/dev/null 2>&1; then
  echo 'skipped: there is no cargo-semver-checks; cargo install --locked cargo-semver-checks'
  exit "${WHITEWATER_NO_SKIP:-0}"
fi
echo "since $last"
cargo semver-checks --package whitewater --all-features --baseline-rev "$last"
