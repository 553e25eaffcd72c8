#!/bin/sh
# Counts the library: run it before and after a change that should make it smaller.
set -eu
cd "$(dirname "$0")/.."

say() { printf '%6s  %s\n' "$1" "$2"; }
sources() { find src -name '*.rs'; }
# The file of a type in rustdoc's output, by path; its name begins with the kind of the type.
types() { grep -oE 'href="[^"]*(struct|enum|trait|type|union)\.[A-Za-z0-9]+\.html"' target/doc/whitewater/all.html; }

cargo doc --quiet --no-deps --all-features --lib -p whitewater
say "$(sources | xargs cat | wc -l)" "lines of src"
say "$(find src crates -name '*.rs' | xargs cat | wc -l)" "lines of src and of the crates that were parts of it"
say "$(sources | wc -l)" "files of src"
say "$(types | wc -l)" "public types, as rustdoc shows them"
say "$(types | sed 's/.*\.\([A-Za-z0-9]*\)\.html"/\1/' | sort | uniq -d | wc -l)" "names that several of them have:" \
    && types | sed 's/.*\.\([A-Za-z0-9]*\)\.html"/\1/' | sort | uniq -d | tr '\n' ' ' && echo
say "$(sources | xargs grep -hE '^ *pub (const |async |unsafe )*fn ' | wc -l)" "public functions, as they are written"
say "$(sources | xargs grep -hE '^ *pub struct [A-Za-z]*Config\b' | wc -l)" "public structs of settings"
say "$(sources | xargs awk '/^ *pub struct [A-Za-z]*Config( |<|\{)/ { inside = 1 } /^ ? ? ? ?}/ { inside = 0 } inside && /^ +pub [a-z_0-9]+:/' | wc -l)" "settings in them"
say "$(grep -rnE '#!?\[cfg|cfg!|cfg_attr' src --include='*.rs' | grep -vc 'cfg(test)')" "lines that ask for a feature or a system, outside tests"
