#!/usr/bin/env bash
# Packs the npm package, installs it into a project of its own, and plays by it against `echo` of crates/web: in Node, and in Chromium if
# there is one (or CHROMIUM names it). Needs Node 20 or newer and the npm registry.
set -euo pipefail
cd "$(dirname "$0")/../../.."
crates/web-js/pack.sh
packed=${CARGO_TARGET_DIR:-target}/npm
project=$(mktemp -d)
server=
trap 'rm -rf "$project"; [ -z "$server" ] || kill "$server" 2>/dev/null || true' EXIT
cp crates/web-js/tests/{node.mjs,browser.mjs,page.html,types.ts} "$project"
echo '{ "private": true, "type": "module" }' >"$project/package.json"
npm install --silent --no-audit --no-fund --prefix "$project" "$packed"/whitewater-*.tgz ws@8.18.3 typescript@5.9.3 playwright-core@1.56.1
(cd "$project" && node_modules/.bin/tsc --noEmit --strict --target es2022 --module nodenext --lib es2022,dom,dom.asynciterable types.ts)
echo "the types compile"
cargo build -q -p whitewater-web --example echo
mkfifo "$project/open"
"${CARGO_TARGET_DIR:-target}/debug/examples/echo" <"$project/open" >"$project/echo" 2>"$project/echo.log" &
server=$!
exec 9>"$project/open" # it ends when this does
until [ -s "$project/echo" ]; do sleep 0.1; done
export ECHO=$(cat "$project/echo")
(cd "$project" && node --test --test-reporter=spec node.mjs)
export CHROMIUM=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || true)}
if [ -z "$CHROMIUM" ]; then
  echo "there is no Chromium: not tested in a browser"
else
  (cd "$project" && node --test --test-reporter=spec browser.mjs)
fi
