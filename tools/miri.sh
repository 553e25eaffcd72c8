#!/bin/sh
# Runs tests under Miri, which finds undefined behaviour: the C library, with callbacks that call back, and the rings, decoders, codes, messages and
# packets of the library. `tools/miri.sh 50` tries 50 cases of each property instead of 2, in under an hour. Says what it lacks for that, and then fails
# if WHITEWATER_NO_SKIP is 1.
set -eu
cd "$(dirname "$0")/.."
if ! cargo +nightly miri --version >/dev/null 2>&1 && ! rustup component add miri rust-src --toolchain nightly >/dev/null 2>&1; then
  echo 'skipped: there is no Miri; rustup toolchain install nightly --component miri --component rust-src'
  exit "${WHITEWATER_NO_SKIP:-0}"
fi
export MIRIFLAGS="-Zmiri-disable-isolation" PROPTEST_CASES="${1:-2}"
unset CARGO_PROFILE_RELEASE_OPT_LEVEL CARGO_PROFILE_RELEASE_DEBUG
cargo +nightly miri test -p whitewater-capi --no-default-features --lib -- calls:: options::
cargo +nightly miri test -p whitewater --no-default-features --lib -- ring:: wire:: code:: message:: packet::
