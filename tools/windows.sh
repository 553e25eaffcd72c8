#!/bin/sh
# Builds tests and the echo example for Windows with mingw-w64 and runs them under wine: unit tests of the library and of whitewater-udp, and the tests
# over sockets. Says what it lacks for that, and then fails if WHITEWATER_NO_SKIP is 1.
set -eu
cd "$(dirname "$0")/.."
if ! command -v x86_64-w64-mingw32-gcc >/dev/null || ! command -v wine >/dev/null; then
  echo 'skipped: there is no mingw-w64 or no wine; apt-get install gcc-mingw-w64-x86-64 wine wine64'
  exit "${WHITEWATER_NO_SKIP:-0}"
fi
rustup target add x86_64-pc-windows-gnu

scratch=$(mktemp -d)
export WINEPREFIX="$scratch/wine" WINEDEBUG=-all WINEDLLOVERRIDES='mscoree,mshtml=' DISPLAY=
trap 'wineserver -k || true; rm -rf "$scratch"' EXIT
tools/wine-prefix.sh

# What works on Windows and not under wine. A name stands for all tests that contain it.
lacks() { reason=$1; shift; for name; do echo "without    $name: $reason"; skipped="$skipped --skip $name"; done; }
skipped=
lacks 'Linux reports ICMP errors only to sockets with one peer' \
  a_port_without_a_listener_is_loss_for_a_socket_with_many_peers resets_on_windows_are_counted_by_a_server
lacks 'wine drops an ICMP error that comes while a program waits in a poll' \
  a_closed_port_is_loss_and_then_a_silent_peer under_tokio_a_port_without_a_listener
lacks 'one process serves all sockets of wine, and takes a whole core for that many: on a busy machine, clients give up' two_hundred_

export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER=wine
export CARGO_PROFILE_DEV_OPT_LEVEL=1 # builds as fast, and handshakes of many clients take a tenth
cargo test -p whitewater -p whitewater-udp --target x86_64-pc-windows-gnu --features tokio,crypto,metrics \
  --lib --test net --test net_session --test sockets -- --test-threads=1 $skipped # one test at a time, because of that process
cargo run -p whitewater-examples --target x86_64-pc-windows-gnu --example echo -- --seconds 2
