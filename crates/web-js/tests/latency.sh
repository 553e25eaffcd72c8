#!/usr/bin/env bash
# How soon the effect of an input is back in a headless Chromium, beside clients without a browser: `just browser-latency`. Packs the npm package and
# installs it into a project of its own. Needs Node 20 or newer, the npm registry, and Chromium (or CHROMIUM names it).
set -euo pipefail
cd "$(dirname "$0")/../../.."
crates/web-js/pack.sh
target=${CARGO_TARGET_DIR:-target}
cargo build -q --release -p whitewater-web --example latency
project=$(mktemp -d)
trap 'rm -rf "$project"' EXIT
cp crates/web-js/tests/{latency.mjs,page.html} "$project"
echo '{ "private": true, "type": "module" }' >"$project/package.json"
npm install --silent --no-audit --no-fund --prefix "$project" "$target"/npm/whitewater-*.tgz playwright-core@1.56.1
PROGRAM=$(realpath "$target/release/examples/latency") CHROMIUM=${CHROMIUM:-$(command -v chromium || command -v chromium-browser)} \
  node "$project/latency.mjs" "$@"
