#!/usr/bin/env bash
# Writes Unity's .meta files for a package: without them, Unity ignores what is in a package that it cannot write to. An identifier follows from the path, so it
# stays the same. Argument: the folder of the package.
set -euo pipefail
cd "$1"

# The importer of a native library: which systems take it. Arguments: platform and its settings, "Name:Key=Value,Key=Value", for each.
plugin() {
  printf 'PluginImporter:\n  externalObjects: {}\n  serializedVersion: 2\n  isPreloaded: 0\n  isOverridable: 0\n  platformData:\n'
  printf '  - first:\n      Any: \n    second:\n      enabled: 0\n      settings: {}\n'
  for platform; do
    local group=${platform%%/*} name=${platform#*/}
    local settings=${name#*:}
    printf '  - first:\n      %s: %s\n    second:\n      enabled: 1\n      settings:\n' "$group" "${name%%:*}"
    tr ',' '\n' <<<"$settings" | sed 's/^/        /; s/=/: /'
  done
}

importer() {
  case $1 in
    *Plugins/linux-x64/*) plugin Editor/Editor:CPU=x86_64,OS=Linux Standalone/Linux64:CPU=x86_64 ;;
    *Plugins/linux-arm64/*) plugin Standalone/EmbeddedLinux:CPU=ARM64 ;;
    *Plugins/win-x64/*) plugin Editor/Editor:CPU=x86_64,OS=Windows Standalone/Win64:CPU=x86_64 ;;
    *Plugins/osx-x64/*) plugin Editor/Editor:CPU=x86_64,OS=OSX Standalone/OSXUniversal:CPU=x86_64 ;;
    *Plugins/osx-arm64/*) plugin Editor/Editor:CPU=ARM64,OS=OSX Standalone/OSXUniversal:CPU=ARM64 ;;
    *Plugins/android-arm64/*) plugin Android/Android:CPU=ARM64 ;;
    *Plugins/ios-arm64/*) plugin iPhone/iOS:AddToEmbeddedBinaries=false ;;
    *.cs) printf 'MonoImporter:\n  externalObjects: {}\n  serializedVersion: 2\n  defaultReferences: []\n  executionOrder: 0\n' ;;
    *.asmdef) printf 'AssemblyDefinitionImporter:\n  externalObjects: {}\n' ;;
    */package.json) printf 'PackageManifestImporter:\n  externalObjects: {}\n' ;;
    *) [ -d "$1" ] && printf 'folderAsset: yes\n'; printf 'DefaultImporter:\n  externalObjects: {}\n' ;;
  esac
}

find . -mindepth 1 ! -name '*.meta' | while read -r path; do
  { printf 'fileFormatVersion: 2\nguid: %s\n' "$(printf 'whitewater %s' "$path" | md5sum | cut -c-32)"; importer "$path"; } >"$path.meta"
done
