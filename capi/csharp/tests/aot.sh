#!/bin/sh
# Compiles the package, its tests and mono's own assemblies ahead of time, and runs the tests without a JIT compiler, as iOS and IL2CPP have none. Arguments:
# the folder with the compiled package and tests.
set -eu
mono=/usr/lib/mono
out=$1/aot
mkdir "$out"
cp "$1"/*.dll "$1/Tests.exe" "$out"
for assembly in mscorlib System System.Core System.Configuration System.Xml System.Security System.Numerics Mono.Security; do
  found=$(find -L "$mono/4.5" "$mono/gac" -name "$assembly.dll" | head -n 1)
  [ -z "$found" ] || cp "$found" "$out"
done
cd "$out"
export MONO_PATH="$out"
for assembly in *.dll Tests.exe; do
  mono --aot=full "$assembly" >log 2>&1 || { cat log; exit 1; }
done
mono --full-aot Tests.exe SessionTests HostileTests AllocationTests
