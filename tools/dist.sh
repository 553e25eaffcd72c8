#!/usr/bin/env bash
# Builds the C library for each system into the packages for C#: FOLDER/unity for Unity's package manager, FOLDER/nuget for `dotnet pack`. A library whose
# linker is missing is only type-checked and not in the packages; CARGO_TARGET_.._LINKER names a linker. Loads what it can and runs a session with it.
# Prints for each system what happened.
set -euo pipefail
folder=${1:?the folder to make}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
cd "$(dirname "$0")/.."
package=capi/csharp
target=$(cargo metadata --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
scratch=$(mktemp -d)
trap 'WINEPREFIX="$scratch/wine" wineserver -k 2>/dev/null || true; rm -rf "$scratch"' EXIT
unity=$folder/unity nuget=$folder/nuget
for old in "$unity" "$nuget"; do
  [ ! -e "$old" ] || [ -e "$old/Runtime/WhitewaterEnd.cs" ] || { echo "$old is there, and is something else" >&2; exit 1; }
done
rm -rf "$unity" "$nuget"

has() { command -v "$1" >/dev/null; }

# The linker of a target on this machine.
linker() {
  local named=CARGO_TARGET_${1^^}_LINKER
  named=${named//-/_}
  case $1 in
    *-ios) echo none ;; # a static library needs none
    *-darwin) [ "$(uname)" = Darwin ] && echo cc ;;
    aarch64-unknown-linux-gnu) if [ "$(uname -sm)" = 'Linux aarch64' ]; then echo cc; else has aarch64-linux-gnu-gcc && echo aarch64-linux-gnu-gcc; fi ;;
    x86_64-unknown-linux-gnu) if [ "$(uname -sm)" = 'Linux x86_64' ]; then echo cc; else has x86_64-linux-gnu-gcc && echo x86_64-linux-gnu-gcc; fi ;;
    x86_64-pc-windows-gnu) has x86_64-w64-mingw32-gcc && echo x86_64-w64-mingw32-gcc ;;
    *) [ -n "${!named:-}" ] && echo "${!named}" ;;
  esac || true
}

# Builds the library for a target, or checks it: rid, target, file.
library() {
  local rid=$1 triple=$2 file=$3 with kind=cdylib
  with=$(linker "$triple")
  [[ $file != *.a ]] || kind=staticlib
  rustup -q target add "$triple"
  if [ -z "$with" ]; then
    cargo check -q --release -p whitewater-capi --target "$triple"
    say "$rid" "checked; there is no linker for $triple here"
    return
  fi
  local variable=CARGO_TARGET_${triple^^}_LINKER
  variable=${variable//-/_}
  [ "$with" = none ] || export "$variable=${!variable:-$with}"
  cargo rustc -q --release -p whitewater-capi --lib --crate-type "$kind" --target "$triple" -- -C strip=debuginfo
  grep -q ww_client_connect "$target/$triple/release/$file" # it exports something
  mkdir -p "$unity/Runtime/Plugins/$rid"
  cp "$target/$triple/release/$file" "$unity/Runtime/Plugins/$rid/"
  if [ "$kind" = cdylib ]; then # .NET loads no static library
    mkdir -p "$nuget/runtimes/$rid/native"
    cp "$target/$triple/release/$file" "$nuget/runtimes/$rid/native/"
  fi
  say "$rid" "built, $(($(wc -c <"$unity/Runtime/Plugins/$rid/$file") / 1024)) KiB"
}

declare -A said
say() { said[$1]="${said[$1]:-}${said[$1]:+; }$2"; }

# The program in C with both ends, for a system whose compiler is named.
session() { "$1" -O1 -Icapi/include -Icapi/tests/c capi/tests/c/session.c "${@:3}" -o "$2"; }

load_linux_x64() {
  has mcs && has mono || { echo 'not loaded: there is no mono'; return; }
  (cd "$package/tests" && mcs -langversion:7.2 -unsafe -out:"$scratch/Tests.exe" -r:System.dll -r:System.Core.dll \
    "$unity"/Runtime/*.cs Runner.cs Pair.cs Peer.cs SessionTests.cs)
  LD_LIBRARY_PATH="$unity/Runtime/Plugins/linux-x64" timeout 300 mono "$scratch/Tests.exe" 'Messages and datagrams' mebibyte >&2
  echo 'loaded by mono, which ran sessions'
}

load_linux_arm64() {
  has qemu-aarch64-static || { echo 'not loaded: there is no qemu-aarch64-static'; return; }
  session aarch64-linux-gnu-gcc "$scratch/session-arm64" -L"$unity/Runtime/Plugins/linux-arm64" -lwhitewater
  timeout 300 qemu-aarch64-static -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH="$unity/Runtime/Plugins/linux-arm64" "$scratch/session-arm64" >&2
  echo 'loaded under qemu, which ran sessions'
}

load_win_x64() {
  has wine || { echo 'not loaded: there is no wine'; return; }
  export WINEPREFIX="$scratch/wine" WINEDEBUG=-all WINEDLLOVERRIDES='mscoree,mshtml=' DISPLAY=
  tools/wine-prefix.sh >&2
  mkdir "$scratch/win"
  cp "$unity/Runtime/Plugins/win-x64/whitewater.dll" "$scratch/win/"
  session x86_64-w64-mingw32-gcc "$scratch/win/session.exe" "$scratch/win/whitewater.dll"
  (cd "$scratch/win" && timeout 300 wine session.exe >&2)
  echo 'loaded under wine, which ran sessions'
}

mkdir -p "$unity" "$nuget"
cp -r "$package"/{package.json,README.md,Runtime,Mirror} LICENSE-MIT LICENSE-APACHE "$unity"
cp -r "$package"/{Whitewater.csproj,README.md,Runtime} LICENSE-MIT LICENSE-APACHE "$nuget"
rm "$nuget"/Runtime/*.asmdef
library linux-x64 x86_64-unknown-linux-gnu libwhitewater.so
library linux-arm64 aarch64-unknown-linux-gnu libwhitewater.so
library win-x64 x86_64-pc-windows-gnu whitewater.dll
library osx-x64 x86_64-apple-darwin libwhitewater.dylib
library osx-arm64 aarch64-apple-darwin libwhitewater.dylib
library android-arm64 aarch64-linux-android libwhitewater.so
library ios-arm64 aarch64-apple-ios libwhitewater.a
"$package"/metas.sh "$unity"
failed=0
for rid in linux-x64 linux-arm64 win-x64; do
  [ -d "$unity/Runtime/Plugins/$rid" ] || continue
  set +e # not `||`, which would have a function go on after a failure
  outcome=$(set -e; "load_${rid//-/_}" 2>"$scratch/log")
  status=$?
  set -e
  [ $status = 0 ] || { cat "$scratch/log"; outcome='FAILED to run' failed=1; }
  say "$rid" "$outcome"
done
for rid in linux-x64 linux-arm64 win-x64 osx-x64 osx-arm64 android-arm64 ios-arm64; do
  printf '%-14s %s\n' "$rid" "${said[$rid]}"
done
exit $failed
