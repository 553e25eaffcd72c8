#!/usr/bin/env bash
# Builds the npm package: target/npm/whitewater-0.1.0.tgz, or in the directory that is given. Fails if a browser would have to load too much.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=${1:-${CARGO_TARGET_DIR:-target}/npm}
mkdir -p "$out"
out=$(cd "$out" && pwd)
rm -rf "$out/package"
mkdir "$out/package"
cargo run -q -p whitewater-web-build -- whitewater-js "$out/package" --at-most 210
rm -f "$out/package"/*.d.ts # index.d.ts has the types
cp crates/web-js/npm/{package.json,README.md,index.js,index.d.ts} LICENSE-MIT LICENSE-APACHE "$out/package"
(cd "$out/package" && npm pack --silent --pack-destination "$out")
