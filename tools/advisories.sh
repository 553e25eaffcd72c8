#!/bin/sh
# Looks for known holes in what we depend on, by the RustSec database. What it lacks for that it says, and fails if WHITEWATER_NO_SKIP is 1.
set -eu
cd "$(dirname "$0")/.."
if ! cargo deny --version >/dev/null 2>&1; then
  echo 'skipped: there is no cargo-deny; cargo install --locked cargo-deny'
  exit "${WHITEWATER_NO_SKIP:-0}"
fi
if ! cargo deny fetch db >/dev/null 2>&1; then
  echo 'skipped: the database of RustSec cannot be fetched'
  exit "${WHITEWATER_NO_SKIP:-0}"
fi
cargo deny check advisories
