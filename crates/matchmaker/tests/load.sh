#!/usr/bin/env bash
# Measures joins a second with TLS, and prints a table: the matchmaker on one core, the clients on another. A Redis shares the core of the clients.
# Words: connections (32, at most 49), seconds (10, at most 12). Needs two cores, taskset, openssl and redis-server.
set -euo pipefail
cd "$(dirname "$0")/../../.."
target=$(cargo metadata --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')/release
cargo build -q --release -p whitewater-matchmaker --bins --example load
scratch=$(mktemp -d)
trap 'jobs -p | xargs -r kill 2>/dev/null || true; wait; rm -rf "$scratch"' EXIT
for secret in fleet.key servers.token backend.token operator.token; do openssl rand -hex 32 >"$scratch/$secret"; done
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost \
  -addext basicConstraints=critical,CA:FALSE -keyout "$scratch/key.pem" -out "$scratch/cert.pem" 2>/dev/null
taskset -c 1 redis-server --port 0 --unixsocket "$scratch/socket" --save '' --appendonly no --dir "$scratch" >/dev/null &
until [ -S "$scratch/socket" ]; do sleep 0.1; done
echo "redis+unix://$scratch/socket" >"$scratch/redis"

# Words of the matchmaker follow the name.
measure() {
  local name=$1 at words=(--listen 127.0.0.1:0 --protocol-id 7 --joins-per-address 1000000)
  words+=(--tls "$scratch/cert.pem" "$scratch/key.pem" --fleet-key "$scratch/fleet.key")
  for who in servers backend operator; do words+=("--$who-token" "$scratch/$who.token"); done
  taskset -c 0 "$target/whitewater-matchmaker" "${words[@]}" "${@:2}" >"$scratch/said" &
  local pid=$!
  until grep -q '^listening on' "$scratch/said"; do sleep 0.1; done
  at=$(sed -n 's|^listening on https://||p' "$scratch/said")
  taskset -c 1 "$target/examples/load" "$name" $pid "$at" "$scratch/cert.pem" "$scratch/servers.token" "$scratch/backend.token" "${load[@]}"
  kill $pid && wait $pid || true
}

load=("$@")
echo '| places in | joins a second | joins a second of CPU time | p50, ms | p99, ms |'
echo '|---|---:|---:|---:|---:|'
measure memory
measure Redis --redis "$scratch/redis" load
