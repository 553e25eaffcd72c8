#!/bin/sh
# Looks for known vulnerabilities of dependencies in the RustSec database. Says what it lacks for that, and then fails if WHITEWATER_NO_SKIP is 1.
set -eu
cd "$(dirname "$0")/.."
if ! cargo deny --version >/dev/null 2>&1; then
  echo 'skipped: there is no cargo-deny; cargo install --locked cargo-deny'
  exit "${WHITEWATER_NO_SKIP:-0}"
fi
if ! cargo deny fetch db >/dev/null 2>&1; then
  echo 'skipped: the database of RustSec cannot be fetched; deny.toml has what it says of some crates, which `just deny` checks'
  exit "${WHITEWATER_NO_SKIP:-0}"
fi
cargo deny check advisories
