#!/bin/sh
# Makes the folder $WINEPREFIX for wine, with the library of random bytes that std needs. Needs mingw-w64.
set -eu
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
wineboot --init >"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
# std takes its random bytes from a library that Windows has since version 7, and wine since version 9.
cat >"$scratch/random.c" <<'END'
#include <windows.h>
#include <ntsecapi.h>
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T len) { return RtlGenRandom(data, (ULONG)len); }
END
system=$WINEPREFIX/drive_c/windows/system32
[ -e "$system/bcryptprimitives.dll" ] ||
  x86_64-w64-mingw32-gcc -shared -o "$system/bcryptprimitives.dll" "$scratch/random.c" -ladvapi32
