#!/bin/sh
# Builds the library and its peer in Rust, compiles the package and its tests with mono's compiler, warnings being errors, and runs them. Arguments: a part
# of the name of the tests to run.
set -eu
cd "$(dirname "$0")/.."
if ! command -v mcs >/dev/null || ! command -v mono >/dev/null; then
  echo 'skipped: there is no mono; apt-get install mono-mcs mono-runtime libmono-system-core4.0-cil'
  exit "${WHITEWATER_NO_SKIP:-0}"
fi
cargo build --release --manifest-path ../Cargo.toml
cargo build --release --manifest-path ../Cargo.toml --example peer
target=$(cargo metadata --manifest-path ../Cargo.toml --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
# What Unity 2021 has, as far as this compiler can say it. All that is public is documented.
compile='mcs -langversion:7.2 -unsafe -warnaserror -warn:4'
$compile -target:library -doc:"$out/Whitewater.xml" -out:"$out/Whitewater.dll" Runtime/*.cs
$compile -target:library -out:"$out/Mirror.dll" tests/mirror/Stub.cs
$compile -target:library -doc:"$out/Whitewater.Mirror.xml" -r:"$out/Whitewater.dll" -r:"$out/Mirror.dll" -out:"$out/Whitewater.Mirror.dll" Mirror/*.cs
tests=$(ls tests/*.cs tests/mirror/*.cs | grep -v Stub.cs)
$compile -r:"$out/Whitewater.dll" -r:"$out/Mirror.dll" -r:"$out/Whitewater.Mirror.dll" -r:System.dll -r:System.Core.dll -out:"$out/Tests.exe" $tests
# Every function of sessions is declared; C has two shorter forms of closing as well.
functions() { grep -oE '\bww_[a-z_]+\(' "$1" | grep -vE '^ww_(kcp_by_time|client_close|server_close)\(' | sort -u; }
functions ../include/whitewater.h >"$out/functions"
functions Runtime/Native.cs | diff "$out/functions" -
${CC:-cc} -I../include tests/layout.c -o "$out/layout"
"$out/layout" >"$out/layout.txt"
export LD_LIBRARY_PATH="$target/release" WHITEWATER_PEER="$target/release/examples/peer" WHITEWATER_LAYOUT="$out/layout.txt"
mono "$out/Tests.exe" "$@"
if [ $# = 0 ]; then tests/aot.sh "$out"; fi

# The programs in the documents are compiled, and the first of the page says welcome.
for page in ../../docs/engines/UNITY.md README.md; do
  awk -v to="$out/$(basename "$page" .md)" '/^```csharp$/ { file = to "-" ++count ".cs"; next } /^```$/ { file = "" } file { print >file }' "$page"
done
for program in "$out"/UNITY-*.cs "$out"/README-*.cs; do
  if grep -q ' Main()' "$program"; then kind=exe; else kind=library; fi
  $compile -target:$kind -r:"$out/Whitewater.dll" -r:"$out/Mirror.dll" -out:"${program%.cs}.$kind" "$program"
done
timeout 60 mono "$out/UNITY-1.exe" | tee "$out/says"
grep -qx welcome "$out/says"
