#!/usr/bin/env bash
# Measures joins a second with TLS: the matchmaker on one core, the clients on another. With `redis` as the first word, places are in a Redis, which
# shares the core of the clients. Further words: connections (32), seconds (10). Needs two cores, taskset and openssl.
set -euo pipefail
cd "$(dirname "$0")/../../.."
place=memory
if [ "${1:-}" = redis ]; then
  place=redis
  shift
fi
target=$(cargo metadata --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')/release
cargo build -q --release -p whitewater-matchmaker --bins --example load
scratch=$(mktemp -d)
trap 'jobs -p | xargs -r kill 2>/dev/null || true; wait; rm -rf "$scratch"' EXIT
secret() { openssl rand -hex 32 >"$scratch/$1"; }
secret fleet.key
for who in servers backend operator; do secret "$who.token"; done
openssl req -quiet -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost \
  -addext basicConstraints=critical,CA:FALSE -keyout "$scratch/key.pem" -out "$scratch/cert.pem" 2>/dev/null
words=(--listen 127.0.0.1:0 --tls "$scratch/cert.pem" "$scratch/key.pem" --protocol-id 7 --fleet-key "$scratch/fleet.key" --joins-per-address 1000000)
for who in servers backend operator; do words+=("--$who-token" "$scratch/$who.token"); done
if [ $place = redis ]; then
  taskset -c 1 redis-server --port 0 --unixsocket "$scratch/socket" --save '' --appendonly no --dir "$scratch" >/dev/null &
  until [ -S "$scratch/socket" ]; do sleep 0.1; done
  echo "redis+unix://$scratch/socket" >"$scratch/redis"
  words+=(--redis "$scratch/redis")
fi
taskset -c 0 "$target/whitewater-matchmaker" "${words[@]}" >"$scratch/said" &
until grep -q '^listening on' "$scratch/said"; do sleep 0.1; done
at=$(sed -n 's|^listening on https://||p' "$scratch/said")
echo "places in $place"
taskset -c 1 "$target/examples/load" "$at" "$scratch/cert.pem" "$scratch/servers.token" "$scratch/backend.token" "$@"
