#!/bin/sh
# Unpacks the corpora of the fuzz targets to fuzz/corpus, or packs those of the named targets from there, always to the same bytes.
set -eu
cd "$(dirname "$0")/../fuzz"
mkdir -p corpus corpora
verb=$1
shift
case $verb in
  unpack) for packed in corpora/*.tar.gz; do [ ! -e "$packed" ] || tar -xzf "$packed" -C corpus; done ;;
  pack)
    for target; do
      tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX -cf - -C corpus "$target" | gzip -9n >"corpora/$target.tar.gz"
    done
    [ "$(du -sk corpora | cut -f1)" -lt 20480 ] || { echo 'the corpora have more than 20 MiB'; exit 1; }
    ;;
esac
