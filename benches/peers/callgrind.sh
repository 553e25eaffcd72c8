#!/bin/sh
# Instructions per delivered segment, by callgrind: the difference between a run with twice the
# messages and a run with the messages once, so that the cost of setting up cancels out.
#
#   callgrind.sh                              the table, all implementations
#   callgrind.sh table PEER..                 the table, these implementations (ww by-time repairs session encrypted ikcp.c kcp bare)
#   callgrind.sh profile PEER SIZE WINDOW LOSS   where the instructions of one run go
#   callgrind.sh crowd [PEER..]               instructions of the server's end per 1/30 s (nothing ikcp.c by-time sessions encrypted datagrams)
#   callgrind.sh crowd-profile PEER           where they go: inclusive, and by function
set -eu
cd "$(dirname "$0")"
cargo build --release --quiet
peers=${CARGO_TARGET_DIR:-target}/release/peers
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Runs PEER SIZE WINDOW LOSS COUNT. Writes the number of messages delivered, then lines with
# "instructions file:function", to the file named last.
count() {
    delivered=$(valgrind --tool=callgrind --callgrind-out-file="$work/out" "$peers" one "$1" "$2" "$3" "$4" "$5" 2>/dev/null)
    {
        echo "$delivered"
        # Columns are "1,234  file:function [object]"; a name may contain blanks.
        callgrind_annotate --threshold=100 --auto=no --tree=none --show-percs=no "$work/out" |
            sed -n 's/^ *\([0-9][0-9,]*\) *\(PROGRAM TOTALS\|.*:.*\)$/\1 \2/p' |
            sed -e 's/ \[[^]]*\]$//' -e ':comma' -e 's/^\([0-9]*\),/\1/' -e 't comma'
    } >"$6"
}

# The shorter run and the longer one. A wide window needs more messages for its round trips to be
# shared out evenly.
both() {
    if [ "$3" -gt 1024 ]; then n=65536; else n=20000; fi
    count "$1" "$2" "$3" "$4" "$n" "$work/once"
    count "$1" "$2" "$3" "$4" $((2 * n)) "$work/twice"
}

# Prints "total without-memcpy", in instructions per segment.
per_segment() {
    both "$@"
    awk '
        FNR == 1 { sign = (FILENAME ~ /once$/) ? -1 : 1; delivered += sign * $1; next }
        /PROGRAM TOTALS/ { total += sign * $1; next }
        /:(__)?mem(cpy|move|set)/ { copied += sign * $1 }
        END { printf "%.0f %.0f\n", total / delivered, (total - copied) / delivered }
    ' "$work/once" "$work/twice"
}

# Prints the functions, then what was inlined into them by file.
profile() {
    both "$@"
    awk '
        FNR == 1 { sign = (FILENAME ~ /once$/) ? -1 : 1; delivered += sign * $1; next }
        {
            count = sign * $1
            sub(/^[0-9]+ /, "")
            from = $0
            sub(/^.*\/(library|src)\//, "", from)
            files[from] += count
            sub(/^[^:]*:/, "")
            functions[$0] += count
        }
        END {
            for (name in functions) print "1", functions[name] / delivered, name
            for (name in files) print "2", files[name] / delivered, name
        }
    ' "$work/once" "$work/twice" | sort -k1,1n -k2,2nr |
        awk '$1 != part { part = $1; print (part == 1) ? "by function" : "by file and function" }
            $2 >= 0.5 { count = $2; sub(/^[^ ]* [^ ]* /, ""); printf "%9.1f  %s\n", count, $0 }'
}

table() {
    printf 'instructions per segment: total (without memcpy, memmove, memset)\n'
    for load in '64 128 0' '1376 128 0' '64 128 10' '64 8192 10'; do
        printf '%-12s' "$load"
        for peer in "$@"; do
            # Bare copying would never finish on a lossy path.
            case $peer$load in bare*10) continue ;; esac
            # $load is three words.
            # shellcheck disable=SC2086
            per_segment "$peer" $load >"$work/counts"
            read -r total lean <"$work/counts"
            printf '  %s %s (%s)' "$peer" "$total" "$lean"
            case $load in
                '64 128 10') echo "$lean" >"$work/narrow-$peer" ;;
                '64 8192 10') awk -v wide="$lean" '{ printf " [%.2fx of 128]", wide / $1 }' "$work/narrow-$peer" ;;
            esac
        done
        printf '\n'
    done
}

# Counts only the server's ends of a crowd, for that many seconds.
crowd_run() {
    valgrind --tool=callgrind --collect-atstart=no --toggle-collect='*crowd::serve*' --callgrind-out-file="$3" \
        "$peers" crowd-one "$1" "$crowd" 0 "$2" >/dev/null 2>&1
}

# The result is the difference of two seconds, so that handshakes and warming up cancel out.
crowd() {
    printf 'instructions per server end in 1/30 s, %s of them\n' "$crowd"
    for peer in "$@"; do
        crowd_run "$peer" 2 "$work/once"
        crowd_run "$peer" 4 "$work/twice"
        sed -n 's/^\(summary\|totals\): *//p' "$work/once" | head -1 >"$work/counts"
        sed -n 's/^\(summary\|totals\): *//p' "$work/twice" | head -1 >>"$work/counts"
        awk -v peer="$peer" -v crowd="$crowd" '
            { total = $1 - total } END { printf "  %-12s%7.0f\n", peer, total / (crowd * 2 * 30) }' "$work/counts"
    done
}

# Over 4 s, including what came before: only the shares matter.
crowd_profile() {
    crowd_run "$1" 4 "$work/out"
    for inclusive in yes no; do
        callgrind_annotate --threshold=95 --auto=no --inclusive=$inclusive "$work/out" |
            sed -n 's/^ *\([0-9][0-9,]*\) *(\([0-9. ]*\)%) *\(.*:.*\)$/\2 \3/p' |
            sed -e 's/ \[[^]]*\]$//' -e 's/ [^ ]*\/\(library\|src\)\// /' | head -70
        echo
    done
}

crowd=200

case ${1:-table} in
    crowd)
        shift
        [ $# -gt 0 ] || set -- nothing ikcp.c by-time sessions encrypted
        crowd "$@"
        ;;
    crowd-profile) shift && crowd_profile "$@" ;;
    profile) shift && profile "$@" ;;
    table)
        [ $# -eq 0 ] || shift
        [ $# -gt 0 ] || set -- ww by-time repairs ikcp.c kcp bare
        table "$@"
        ;;
    *) sed -n '2,9s/^# \{0,1\}//p' "${0##*/}" && exit 1 ;;
esac
