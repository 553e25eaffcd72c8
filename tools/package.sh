#!/bin/sh
# Packs the library, its derive macro and its sockets as for publishing, fails on a warning, and builds the package, since lib.rs includes documents. Lists its files.
set -eu
cd "$(dirname "$0")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cargo package -p whitewater-derive -p whitewater-udp -p whitewater --no-verify --allow-dirty 2>&1 | tee "$scratch/said"
if grep -q '^warning' "$scratch/said"; then
  echo 'cargo package has warnings'
  exit 1
fi
target=$(cargo metadata --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
crate="$target/package/whitewater-$version.crate"
# Give files the current time, or cargo takes them for already built.
tar -xmzf "$crate" -C "$scratch"
tar -xmzf "$target/package/whitewater-derive-$version.crate" -C "$scratch"
tar -xmzf "$target/package/whitewater-udp-$version.crate" -C "$scratch"
cd "$scratch/whitewater-$version"
for unwanted in .ci .github book capi crates fuzz interop benches/iroh benches/peers tests/vectors; do
  if [ -e "$unwanted" ]; then
    echo "$unwanted is not for who downloads the library"
    exit 1
  fi
done
find . -type f -printf '%s %P\n' | sed 's,/.*,/,' | awk '{ size[$2] += $1 } END { for (name in size) print size[name], name }' | sort -rn
printf '%s bytes packed\n' "$(wc -c <"$crate")"
test "$(wc -c <"$crate")" -lt 1500000
# Replaces the crates that are not published yet.
CARGO_TARGET_DIR="$target" cargo check --lib --all-features --config "patch.crates-io.whitewater-derive.path='$scratch/whitewater-derive-$version'" \
  --config "patch.crates-io.whitewater-udp.path='$scratch/whitewater-udp-$version'"
