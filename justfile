# The steps of the gate by name: `just --list`. Each is here once, and .ci/run calls them.

set shell := ["bash", "-euo", "pipefail", "-c"]

# Packages that are tested by themselves.
beside := "-p interop -p tower-defence -p whitewater-capi"

_list:
    @just --list --unsorted

# What an edit of the protocol is checked with, built incrementally: `just loop`, `just loop session_close`.
loop *names:
    cargo test --profile loop --test arq --test sessions {{ names }}

# What a newcomer runs: the tests, with all features. Those that want programs beside Rust say so where they are missing.
test:
    cargo test --release --all-features

# Formats of Rust and Go.
format:
    cargo fmt --all --check
    cargo fmt --manifest-path fuzz/Cargo.toml --check
    if command -v gofmt >/dev/null; then ! gofmt -d interop/go | grep .; fi

# Clippy, for no feature, each and all of them, and for what is beside the library.
lint: && lint-beside
    cargo clippy --all-targets --no-default-features -- -D warnings
    for feature in $(sed -n '/^\[features\]/,/^\[/s/^\([a-z][a-z0-9-]*\) *=.*/\1/p' Cargo.toml | grep -v '^default$'); do \
      cargo clippy -p whitewater --no-default-features --features "$feature" -- -D warnings; done
    cargo clippy --all-targets --all-features -- -D warnings

# Clippy for what cargo leaves out unless told: benchmarks, C, a game, other programs' tests, fuzzers.
lint-beside:
    cargo clippy --all-targets {{ beside }} -p whitewater-benches -- -D warnings
    cargo clippy --all-targets --manifest-path fuzz/Cargo.toml -- -D warnings

# Licences, sources and bans of dependencies.
deny:
    cargo deny check bans licenses sources

# Known holes in dependencies.
advisories:
    tools/advisories.sh

# The public API since the last release.
semver:
    tools/semver.sh

# The oldest Rust that is promised.
msrv:
    tools/msrv.sh

# What would be published builds.
package:
    tools/package.sh

# What `test` leaves out where programs are missing: an implementation in Python, dissectors in tshark, nginx, namespaces; and a longer soak.
test-programs:
    SESSION_SOAK=10000 cargo test --release --all-features \
      --test independent --test dissector --test proxy --test socket_errors --test session_soak

# What all features hide: sockets of systems without batches, and the ciphers in Rust, whose place those of ring take.
test-without:
    cargo test --release -p whitewater-udp --no-default-features
    cargo test --release -p whitewater --no-default-features --features net,crypto --test net --test net_session --test socket_errors \
      --test conformance --test token --test seal_alloc

# Programs that play both ends: a matchmaker with servers and a player, a game, TCP through a tunnel.
examples:
    cargo run -q --release --all-features --example matchmaker demo
    cargo run -q --release --all-features --example arena -- --seconds 2
    cargo run -q --release --all-features --example tunnel demo

# Programs in C and C++.
c:
    capi/tests/run.sh

# What is beside the library; with `c` against ikcp.c as well, which needs libclang.
test-beside features="":
    cargo test --release {{ beside }} {{ if features == "" { "" } else { "--features interop/" + features } }}

# Documentation, and the book; `test` runs the code in both.
docs:
    RUSTDOCFLAGS='-D warnings' cargo doc --no-deps --all-features
    mdbook build docs 2>&1 | tee /dev/stderr | (! grep -E '^ *(WARN|ERROR)')

# What the documents say that programs print or draw is what they do.
tables:
    diff <(grep '^|' docs/TUNING.md) \
      <({ cargo run -q --release --all-features --example tuning && cargo run -q --release --all-features --example bottleneck; } | grep '^|')
    bars=$(cargo run -q --release --all-features --example families -- 10 bars | grep '^|') && \
      diff <(echo "$bars") <(grep -xFf <(echo "$bars") README.md)
    scratch=$(mktemp -d) && \
      cargo run -q --release --all-features --example latency -- --out "$scratch/latency.svg" && \
      cmp docs/latency.svg "$scratch/latency.svg" && \
      cargo run -q --release --all-features --example families -- 4 curve "$scratch/loss.svg" && \
      cmp docs/loss.svg "$scratch/loss.svg" && rm -r "$scratch"

# Changes the source in every way that no test may miss, as `just mutants 'src/packet/**' --lib --test messages`; needs cargo-mutants.
mutants files *tests:
    cargo mutants --jobs 1 --file '{{ files }}' -- {{ tests }}

# Benchmarks against other libraries build; needs libclang.
peers:
    cargo check --manifest-path benches/peers/Cargo.toml

# Seeds and targets of the fuzzers.
fuzz-build:
    cargo run --manifest-path fuzz/Cargo.toml --example seeds
    cargo fuzz build --sanitizer none

# Fuzzes a target, as `just fuzz frames 600`; `cargo fuzz list` names them.
fuzz name seconds="60": fuzz-build (_fuzz name seconds)

# Each target for so many seconds, two at a time.
fuzz-all seconds="6": fuzz-build
    cargo fuzz list | xargs -P 2 -I {} just _fuzz {} {{ seconds }}

_fuzz name seconds:
    @found=$(mktemp -d) && trap 'rm -r "$found"' EXIT && \
      cargo fuzz run --sanitizer none {{ name }} "$found" fuzz/corpus/{{ name }} -- -max_total_time={{ seconds }} -timeout=20 2>&1 | \
      tee "$found.log" | sed -n 's/^Done \([0-9]* runs\) in.*/{{ name }}: \1/p' || { cat "$found.log"; exit 1; }

# Hundreds of real sockets.
soak seconds="120":
    SOCKET_SOAK={{ seconds }} cargo test --release --all-features --test socket_soak

# All of it, from a fresh clone on.
gate:
    .ci/run
