#!/bin/sh
# Compares the public API with the last release tagged `v..`, and fails if the version number promises too much. Says what it lacks for that, and
# then fails if WHITEWATER_NO_SKIP is 1.
set -eu
cd "$(dirname "$0")/.."
tags=$(git tag --list 'v[0-9]*')
if [ -z "$tags" ]; then
  echo 'skipped: no release is tagged yet'
  exit 0
fi
last=$(git describe --tags --abbrev=0 --match 'v[0-9]*')
if ! cargo semver-checks --version >/dev/null 2>&1; then
  echo 'skipped: there is no cargo-semver-checks; cargo install --locked cargo-semver-checks'
  exit "${WHITEWATER_NO_SKIP:-0}"
fi
echo "since $last"
cargo semver-checks --package whitewater --package whitewater-udp --all-features --baseline-rev "$last"
