#!/usr/bin/env bash
# Counts the instructions of datagrams by callgrind: every kind, at the largest settings, in the worst states (tests/attacks/measured,
# crates/kcp-go/tests/measured.rs). Prints the most that a datagram of each kind takes and, in another column, what it makes due.
#   tools/work.sh [LEAST]   only kinds above so many instructions
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
least=${1:-0}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

program() {
  cargo test --release "$@" --no-run --message-format=json |
    sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -n 1
}

# Runs the test TEST of PROGRAM. There is a dump before and after each call that counts.
measure() {
  rm -f "$work"/out*
  valgrind --tool=callgrind --callgrind-out-file="$work/out" --combine-dumps=no \
    --dump-after='*measured::begin*' --dump-after='*measured::datagram*' --dump-after='*measured::afterwards*' \
    "$1" --ignored --exact "$2" --nocapture --test-threads=1 2>/dev/null | sed -n 's/^.*counted //p' >"$work/kinds"
  # Dumps are numbered from 1: one of what came before a call, and one of the call.
  at=0
  while IFS= read -r kind; do
    at=$((at + 2))
    printf '%s\t%s\n' "$(sed -n 's/^summary: *//p;s/^totals: *//p' "$work/out.$at" | head -n 1)" "$kind"
  done <"$work/kinds" >>"$work/table"
}

measure "$(program --all-features --test attacks)" measured::every_kind_of_datagram
measure "$(program -p whitewater-kcp-go --test measured)" every_kind_of_datagram
awk -F '\t' -v least="$least" '
  { kind = $2; later = sub(/, and the update after it$/, "", kind) }
  !(kind in seen) { seen[kind] = 1; order[++count] = kind }
  later && $1 > after[kind] { after[kind] = $1 }
  !later && $1 > input[kind] { input[kind] = $1 }
  END {
    print "| datagram | instructions | what it makes due |\n|---|---:|---:|"
    for (i = 1; i <= count; i++)
      if (input[order[i]] >= least || after[order[i]] >= least)
        printf "| %s | %d | %d |\n", order[i], input[order[i]], after[order[i]]
  }' "$work/table"
