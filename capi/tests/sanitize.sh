#!/bin/sh
# The programs in c/ with AddressSanitizer inside of the library as well, which `run.sh` links without. Needs nightly; says so, and then fails if
# WHITEWATER_NO_SKIP is 1.
set -eu
cd "$(dirname "$0")"
if ! cargo +nightly --version >/dev/null 2>&1 && ! rustup toolchain install nightly --profile minimal >/dev/null 2>&1; then
  echo 'skipped: there is no nightly Rust, whose sanitizers instrument Rust code'
  exit "${WHITEWATER_NO_SKIP:-0}"
fi
host=$(rustc +nightly -vV | sed -n 's/^host: //p')
target=$(cargo metadata --manifest-path ../Cargo.toml --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')/sanitized
# `--target` keeps build scripts and macros free of it.
RUSTFLAGS='-Zsanitizer=address -Cforce-frame-pointers=yes' cargo +nightly rustc --manifest-path ../Cargo.toml --profile "${PROFILE:-release}" \
  --crate-type staticlib --target "$host" --target-dir "$target"
lib=$target/$host/$(test "${PROFILE:-}" = dev && echo debug || echo "${PROFILE:-release}")
runtime=$(rustc +nightly --print sysroot)/lib/rustlib/$host/lib/librustc-nightly_rt.asan.a
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
for program in ikcp alike session; do
  ${CC:-cc} -std=c99 -Wall -Wextra -Werror -g -fsanitize=address -I../include -Ic -c "c/$program.c" -o "$out/$program.o"
  # The runtime of the Rust code serves the C code too.
  ${CC:-cc} "$out/$program.o" "$lib/libwhitewater.a" -Wl,--whole-archive "$runtime" -Wl,--no-whole-archive -Wl,--export-dynamic \
    -lpthread -ldl -lm -lrt -lstdc++ -o "$out/$program"
  ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1 "$out/$program"
done
