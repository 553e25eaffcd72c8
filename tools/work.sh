#!/usr/bin/env bash
# Counts the instructions of datagrams by callgrind: every kind, at the largest settings, in the worst states (tests/attacks/measured,
# crates/kcp-go/tests/measured.rs). Prints the most that a datagram of each kind takes, what it makes due, and what limits the sum of
# all if one alone may take long.
#   tools/work.sh [MOST]   prints only the kinds that take more; fails if nothing limits the sum of one of them
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
most=${1:-0}
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
    "$1" --ignored --exact "$2" --nocapture --test-threads=1 2>"$work/errors" | sed -n 's/^.*counted //p' >"$work/kinds" ||
    { tail -n 20 "$work/errors" >&2 && return 1; }
  [ -s "$work/kinds" ] || { echo "$1 has no test $2" >&2 && return 1; }
  # Dumps are numbered from 1: one of what came before a call, and one of the call.
  at=0
  while IFS= read -r kind; do
    at=$((at + 2))
    printf '%s\t%s\n' "$(sed -n 's/^summary: *//p;s/^totals: *//p' "$work/out.$at" | head -n 1)" "$kind"
  done <"$work/kinds" >>"$work/table"
}

# What limits the sum, by a pattern of the kind: of what it takes itself ("now"), or of what it makes due ("later").
cat >"$work/limits" <<'EOF'
now;KCP .*una;each segment is freed once
now;KCP .*that a window waited for;each segment is delivered once
now;KCP .*(farthest|beyond|in turn);the table has its size until the end is idle
now;KCP with repairs, .*a repair;datagrams pay for it
later;KCP classic .*;one flush an interval
later;KCP (by|with);segments are resent once in a round trip
now;session, .*PUSHs all over;the tables have their size until the end is idle
later;session, .*KCP;as many answers as frames
now;session, .*ACK;each packet is acknowledged once
now;session, .*waited for;each message is delivered once
later;session, .*resends;each packet is given up once
now;session with repairs;datagrams pay for it
now;server, .*CONNECT;handshakes of an address, a network and all
now;kcp-go: receiving with [0-9]+ [+];shards pay for it
now;kcp-go: sending with [0-9]+ [+];our own datagrams
now;kcp-go: .* with [3a-z];the cipher, for each byte
EOF

measure "$(program -p whitewater --all-features --test attacks)" measured::every_kind_of_datagram
measure "$(program -p whitewater-kcp-go --test measured)" every_kind_of_datagram
awk -v most="$most" '
  FILENAME ~ /limits$/ { when[++limits] = $1; pattern[limits] = $2; limit[limits] = $3; next }
  { kind = $2; is_later = sub(/, and the update after it$/, "", kind) }
  !(kind in seen) { seen[kind] = 1; order[++count] = kind }
  is_later && $1 > later[kind] { later[kind] = $1 }
  !is_later && $1 > now[kind] { now[kind] = $1 }
  function limit_of(what, kind,  n) {
    for (n = 1; n <= limits; n++) if (when[n] == what && kind ~ "^" pattern[n]) return limit[n]
    failed = 1
    return "NONE"
  }
  END {
    print "| datagram | instructions | what it makes due | limit of the sum |\n|---|---:|---:|---|"
    for (i = 1; i <= count; i++) {
      kind = order[i]; text = ""
      if (now[kind] > most) text = limit_of("now", kind)
      if (later[kind] > most) text = text (text == "" ? "" : "; ") limit_of("later", kind)
      if (text != "") printf "| %s | %d | %d | %s |\n", kind, now[kind], later[kind], text
    }
    exit most > 0 && failed
  }' FS=';' "$work/limits" FS='\t' "$work/table"
