#!/usr/bin/env bash
# Looks at the page of the matchmaker in a headless Chromium (or what CHROMIUM names). Needs Node.js and the npm registry.
set -euo pipefail
cd "$(dirname "$0")/../../../.."
target=$(cargo metadata --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
CHROMIUM=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || true)}
if [ -z "$CHROMIUM" ]; then
  echo 'skipped: there is no Chromium'
  exit "${WHITEWATER_NO_SKIP:-0}"
fi
export CHROMIUM PROGRAM="$target/release/whitewater-matchmaker"
cargo build -q --release -p whitewater-matchmaker --bins
npm --prefix crates/matchmaker/tests/page ci --no-audit --no-fund
node --test --test-reporter=spec crates/matchmaker/tests/page/page.mjs
