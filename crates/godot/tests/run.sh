#!/bin/sh
# Builds the extension and runs the tests in tests/project inside of Godot, without a window. Takes the Godot 4 that GODOT names or that is in the
# path; on Debian, unpacks that of Debian 14 with all its libraries into `target` if there is none. Arguments: a part of the names of tests.
set -eu
cd "$(dirname "$0")/.."
cargo build -p whitewater-godot --lib --example mint
target=$(cargo metadata --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
library=$target/debug/libwhitewater_godot.so

# Sets the command that runs Godot.
find_godot() {
  for godot in ${GODOT:-} godot4 godot; do
    if command -v "$godot" >/dev/null && "$godot" --version 2>/dev/null | grep -q '^4'; then return; fi
  done
  root=$target/godot
  godot="$root/usr/lib64/ld-linux-x86-64.so.2 --library-path $root/usr/lib/x86_64-linux-gnu:$root/usr/lib/x86_64-linux-gnu/pulseaudio $root/usr/bin/godot"
  $godot --version >/dev/null 2>&1 && return
  if ! command -v mmdebstrap >/dev/null || [ "$(uname -m)" != x86_64 ]; then
    echo 'skipped: there is no Godot 4; name one in GODOT, or apt-get install mmdebstrap'
    exit "${WHITEWATER_NO_SKIP:-0}"
  fi
  rm -rf "$root"
  # A mirror may be behind.
  mmdebstrap --quiet --variant=extract --aptopt='Acquire::Check-Valid-Until "false"' --include=godot forky "$root" http://deb.debian.org/debian
}
find_godot

project=$(mktemp -d)
trap 'rm -rf "$project"' EXIT
cp -r tests/project/. addons "$project"
mkdir -p "$project/.godot" "$project/addons/whitewater/linux-x86_64"
ln -s "$library" "$project/addons/whitewater/linux-x86_64/"
# The scripts of the document: document_1.gd and so on.
awk -v into="$project/document_" '/^```/ { if (open) { close(open); open = "" } else if ($0 == "```gdscript") open = into (++n) ".gd"; next }
  open { print >open }' ../../docs/engines/GODOT.md
# The editor writes this list when it opens a project.
echo 'res://addons/whitewater/whitewater.gdextension' >"$project/.godot/extension_list.cfg"
echo "in Godot $($godot --version)"
export HOME="$project" WHITEWATER_MINT="$target/debug/examples/mint"
timeout 600 $godot --headless --path "$project" -s "${SCRIPT:-runner.gd}" -- "$@" >"$project/out" 2>"$project/err" || failed=$?
cat "$project/out"
# A script that fails stops without a word to the runner.
[ -z "${VERBOSE:-}" ] || cat "$project/err"
if grep -A3 'SCRIPT ERROR\|Parse Error\|panicked\|leaked' "$project/err"; then failed=1; fi
exit "${failed:-0}"
