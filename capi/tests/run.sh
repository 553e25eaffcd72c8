#!/bin/sh
# Builds the library, then compiles the programs in c/ against its headers as C and as C++, links them both ways and runs them; where
# the compiler has sanitizers, with these as well.
set -eu
cd "$(dirname "$0")"
profile=${PROFILE:-release}
cargo build --manifest-path ../Cargo.toml --profile "$profile"
lib=$(cargo metadata --manifest-path ../Cargo.toml --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')/$(test "$profile" = dev && echo debug || echo "$profile")
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
flags='-Wall -Wextra -Werror -g -I../include -Ic'
system='-lpthread -ldl -lm'
sanitizers='-fsanitize=address,undefined -fno-sanitize-recover=undefined'
echo 'int main(void) { return 0; }' | ${CC:-cc} -x c - $sanitizers -o "$out/probe" 2>"$out/why" && "$out/probe" || sanitizers=
for header in ikcp whitewater; do # programs for ikcp.c may be that old
  include="#include \"$header.h\""
  for standard in gnu89 c89 c99 c11; do
    echo "$include" | ${CC:-cc} -std=$standard -pedantic-errors -Wall -Wextra -Werror -I../include -x c -fsyntax-only -
  done
  for standard in c++98 c++11 c++17; do
    echo "$include" | ${CXX:-c++} -std=$standard -pedantic-errors -Wall -Wextra -Werror -I../include -x c++ -fsyntax-only -
  done
done
for program in ikcp alike session; do
  ${CC:-cc} -std=c99 $flags "c/$program.c" "$lib/libwhitewater.a" $system -o "$out/$program"
  ${CXX:-c++} -x c++ $flags -Wno-missing-field-initializers "c/$program.c" -x none -L"$lib" -Wl,-rpath,"$lib" -lwhitewater $system -o "$out/$program-cpp"
  "$out/$program"
  "$out/$program-cpp"
  if [ -n "$sanitizers" ]; then
    ${CC:-cc} -std=c99 $flags $sanitizers "c/$program.c" "$lib/libwhitewater.a" $system -o "$out/$program-sanitized"
    "$out/$program-sanitized"
  fi
done
if [ -n "${IKCP:-}" ]; then # a directory with ikcp.c 2.1.1: what `alike` says of it is true
  ${CC:-cc} -std=gnu99 -w -g -I"$IKCP" -iquote "$IKCP" -Ic c/alike.c "$IKCP/ikcp.c" -o "$out/alike-ikcp"
  "$out/alike-ikcp"
fi
