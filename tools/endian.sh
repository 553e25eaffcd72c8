#!/bin/sh
# Runs tests where bytes or sizes differ: for s390x under QEMU, whose byte order is the other one, and for i686, whose pointers have 32 bits. Both are
# linked statically, so only the linker of each is needed. Says what it lacks, and then fails if WHITEWATER_NO_SKIP is 1.
set -eu
cd "$(dirname "$0")/.."
for program in qemu-s390x-static s390x-linux-gnu-gcc i686-linux-gnu-gcc; do
  if ! command -v $program >/dev/null; then
    echo "skipped: there is no $program; apt-get install qemu-user-static" \
      'gcc-s390x-linux-gnu libc6-dev-s390x-cross gcc-i686-linux-gnu libc6-dev-i386-cross'
    exit "${WHITEWATER_NO_SKIP:-0}"
  fi
done
rustup target add s390x-unknown-linux-gnu i686-unknown-linux-gnu
export CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_LINKER=s390x-linux-gnu-gcc CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_RUNNER=qemu-s390x-static \
  CARGO_TARGET_I686_UNKNOWN_LINUX_GNU_LINKER=i686-linux-gnu-gcc \
  CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_RUSTFLAGS='-C target-feature=+crt-static' \
  CARGO_TARGET_I686_UNKNOWN_LINUX_GNU_RUSTFLAGS='-C target-feature=+crt-static'
export PROPTEST_CASES=8 # of values that differ; the bytes of each are the point
export CARGO_PROFILE_DEV_OPT_LEVEL=1 # builds as fast, and runs several times as fast under QEMU

big_endian() { cargo test -p whitewater --no-default-features --features crypto --target s390x-unknown-linux-gnu "$@"; }
big_endian --lib --test conformance --test vectors
big_endian --test messages -- derive:: fragments:: pack:: packet_hostile:: wire_doc:: # the others take minutes there
big_endian --test sessions -- session_states session_wire session_tokens

small() { cargo test -p whitewater --features crypto,tokio --target i686-unknown-linux-gnu "$@"; }
small --lib --test conformance --test messages --test net --test net_session
small --test sessions -- session_states session_wire session_tokens
cargo test -p whitewater-udp --lib --target i686-unknown-linux-gnu
