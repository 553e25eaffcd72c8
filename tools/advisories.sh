#!/bin/sh
# Looks for known vulnerabilities in the dependencies of each lock file, in RustSec's database. Where that cannot be fetched, in our copy of it, which
# `tools/advisories.sh update` renews.
set -eu
cd "$(dirname "$0")/.."
url=https://github.com/RustSec/advisory-db
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

if [ "${1:-}" = update ]; then
  git clone -q --depth 1 "$url" "$scratch/database"
  rm -f tools/advisories-*.tar.gz
  git -C "$scratch/database" archive HEAD crates LICENSE.txt LICENSES |
    gzip -9n >"tools/advisories-$(git -C "$scratch/database" log -1 --format=%cs).tar.gz"
  exit
fi

if ! cargo deny --version >/dev/null 2>&1; then
  echo 'skipped: there is no cargo-deny; cargo install --locked cargo-deny'
  exit "${WHITEWATER_NO_SKIP:-0}"
fi
if ! GIT_TERMINAL_PROMPT=0 timeout 20 git ls-remote -q "$url" HEAD >/dev/null 2>&1; then
  copy=$(echo tools/advisories-*.tar.gz)
  mkdir "$scratch/database"
  tar -xzf "$copy" -C "$scratch/database"
  git -C "$scratch/database" init -q -b main
  git -C "$scratch/database" add -A
  git -C "$scratch/database" -c user.name=copy -c user.email=copy@localhost commit -qm "$copy"
  # cargo-deny only takes URLs of hosts: git fetches from the copy instead.
  export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0="url.file://$scratch/database.insteadOf" GIT_CONFIG_VALUE_0="$url"
  echo "compared with $copy, since the database cannot be fetched"
fi
sed "s|^\[advisories\]|&\ndb-path = \"$scratch/fetched\"\ngit-fetch-with-cli = true|" deny.toml >"$scratch/deny.toml"
git ls-files '*Cargo.lock' | while read -r lock; do
  echo "$lock"
  cargo deny --workspace --manifest-path "${lock%lock}toml" --config "$scratch/deny.toml" check advisories
done
