#!/usr/bin/env bash
# Builds the wheel, installs it into an environment of its own, checks its types and its stubs, and tests it: against the library in Rust, with
# the code of its document, and with a few bots. Needs Python 3.10 or newer with venv, and PyPI. Says what it lacks for that, and then fails if
# WHITEWATER_NO_SKIP is 1. Arguments are pytest's: `run.sh -k kcp`.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
if ! "$python" -c 'import sys, venv, ensurepip; assert sys.version_info >= (3, 10)' 2>/dev/null; then
  echo "skipped: there is no Python 3.10 with venv"
  exit "${WHITEWATER_NO_SKIP:-0}"
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$python" -m venv "$scratch/venv"
export PATH="$scratch/venv/bin:$PATH" PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONDONTWRITEBYTECODE=1 MYPY_CACHE_DIR="$scratch/mypy"
if ! pip install -q -r tests/requirements.txt 2>"$scratch/pip"; then
  tail -n 3 "$scratch/pip"
  echo "skipped: pip installs nothing from PyPI"
  exit "${WHITEWATER_NO_SKIP:-0}"
fi
cargo build -q --release -p whitewater-python --features extension-module --example peer
target=$(cargo metadata --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
export WHITEWATER_PEER=$target/release/examples/peer
maturin build -q --release --out "$scratch/wheels"
pip install -q "$scratch"/wheels/whitewater-*.whl
python tests/document.py ../../docs/engines/PYTHON.md "$scratch/document"
mypy --strict python/whitewater tests examples "$scratch"/document/*.py
python -m mypy.stubtest whitewater
pytest -q -p no:cacheprovider "$@"
python examples/bots.py --bots 10 --seconds 2
mkfifo "$scratch/open"
"$WHITEWATER_PEER" serve game <"$scratch/open" >"$scratch/address" &
exec 9>"$scratch/open" # it ends when this does
until [ -s "$scratch/address" ]; do kill -0 $!; sleep 0.1; done
python examples/bots.py "$(cat "$scratch/address")" --bots 10 --seconds 2
exec 9>&-
wait
python examples/throughput.py 0.2
