#!/usr/bin/env bash
# Fuzzes all targets, or the named ones, for some hours, minimises their corpora and keeps those in fuzz/corpora, with the number of executions so far:
#   tools/fuzz.sh 8                      8 hours on all cores
#   JOBS=1 tools/fuzz.sh 0.5 frames_decode token_open
# The hours are divided evenly among the targets; building and minimising come on top. What a target finds is in fuzz/artifacts; the others go on, and
# this fails in the end.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
hours=${1:?hours}
shift
jobs=${JOBS:-$(nproc)}
build=(--sanitizer none)
[ -z "${SANITIZER:-}" ] || build=(--sanitizer "$SANITIZER") # needs nightly: SANITIZER=address RUSTUP_TOOLCHAIN=nightly
targets=("$@")
[ $# -gt 0 ] || mapfile -t targets < <(cargo fuzz list)
seconds=$(awk "BEGIN { print int($hours * 3600 * $jobs / ${#targets[@]} + 1) }")

tools/corpora.sh unpack
cargo run -q --manifest-path fuzz/Cargo.toml --example seeds
for target in "${targets[@]}"; do cargo fuzz build "${build[@]}" "$target"; done

fuzz_one() {
  local target=$1 seconds=$2 log done
  shift 2
  log=$(mktemp)
  mkdir -p "fuzz/corpus/$target"
  cargo fuzz run "$@" "$target" "fuzz/corpus/$target" -- -max_total_time="$seconds" -timeout=30 -rss_limit_mb=4096 -print_final_stats=1 >"$log" 2>&1 ||
    { tail -n 40 "$log"; echo "$target: FAILED"; touch fuzz/artifacts/failed; }
  done=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -n 1)
  cargo fuzz cmin "$@" "$target" "fuzz/corpus/$target" >"$log" 2>&1 ||
    { tail -n 5 "$log"; echo "$target: its corpus is not minimised"; }
  echo "$target ${done:-0}" | tee -a fuzz/corpora/runs.new
  rm "$log"
}
export -f fuzz_one

# What has ended counts, also if the rest is interrupted.
keep() {
  [ -s fuzz/corpora/runs.new ] || return 0
  touch fuzz/corpora/runs.txt
  awk '{ sum[$1] += $2 } END { for (target in sum) print target, sum[target] }' fuzz/corpora/runs.txt fuzz/corpora/runs.new | sort >fuzz/corpora/runs.sum
  cut -d ' ' -f 1 fuzz/corpora/runs.new | xargs tools/corpora.sh pack
  mv fuzz/corpora/runs.sum fuzz/corpora/runs.txt
  rm fuzz/corpora/runs.new
}
trap keep EXIT

mkdir -p fuzz/artifacts
rm -f fuzz/artifacts/failed fuzz/corpora/runs.new
printf '%s\n' "${targets[@]}" | xargs -P "$jobs" -I {} nice -n 19 bash -c 'fuzz_one "$@"' - {} "$seconds" "${build[@]}"
[ ! -e fuzz/artifacts/failed ]
