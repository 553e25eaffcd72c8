#!/bin/sh
# Builds the library, then compiles the programs in c/ against its headers as C and as C++, links them both ways and runs them.
set -eu
cd "$(dirname "$0")"
profile=${PROFILE:-release}
cargo build --manifest-path ../Cargo.toml --profile "$profile"
lib=$(cargo metadata --manifest-path ../Cargo.toml --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')/$(test "$profile" = dev && echo debug || echo "$profile")
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
flags='-Wall -Wextra -Werror -g -I../include -Ic'
system='-lpthread -ldl -lm'
for program in ikcp session; do
  ${CC:-cc} -std=c99 $flags "c/$program.c" "$lib/libwhitewater.a" $system -o "$out/$program"
  ${CXX:-c++} -x c++ $flags -Wno-missing-field-initializers "c/$program.c" -x none -L"$lib" -Wl,-rpath,"$lib" -lwhitewater $system -o "$out/$program-cpp"
  "$out/$program"
  "$out/$program-cpp"
done
