#!/usr/bin/env bash
# Builds the game for browsers and natively, and plays it in a headless Chromium (or what CHROMIUM names). Needs Node.js and the npm registry.
set -euo pipefail
cd "$(dirname "$0")/../../../.."
target=$(cargo metadata --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
CHROMIUM=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || true)}
if [ -z "$CHROMIUM" ]; then
  echo 'skipped: there is no Chromium'
  exit "${WHITEWATER_NO_SKIP:-0}"
fi
export CHROMIUM
rustup target add wasm32-unknown-unknown
cargo build -p bevy_whitewater -p bevy-whitewater-page # as in the tests of both, so that Bevy is built once for them
cargo run -q -p whitewater-web-build -- bevy-whitewater-page "$target/bevy-page" --dev
npm --prefix crates/bevy/page/tests ci --no-audit --no-fund
export PROGRAM="$target/debug/bevy-whitewater-page" PAGE="$target/bevy-page"
node --test --test-reporter=spec crates/bevy/page/tests/play.mjs
