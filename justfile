# The steps of the gate. `just --list` shows them, and .ci/run calls them.

set shell := ["bash", "-euo", "pipefail", "-c"]

# Packages that are tested separately.
beside := "-p interop -p tower-defence -p whitewater-capi -p whitewater-web -p whitewater-web-build -p tower-defence-page"
# Of the library. Of the other features only interop's `c` is not among them, which needs libclang.
features := `sed -n '/^\[features\]/,/^\[/s/^\([a-z][a-z0-9-]*\) *=.*/\1/p' Cargo.toml | grep -v '^default$' | paste -sd ' '`

_list:
    @just --list --unsorted

# Quick check after an edit, built incrementally: `just loop`, `just loop session_close`.
loop *names:
    cargo test --profile loop --test arq --test sessions {{ names }}

# All tests with all features, as a newcomer runs them. Tests that need other programs say so if these are missing.
test:
    cargo test --release --all-features

# Checks the formatting of Rust and Go.
format:
    cargo fmt --all --check
    cargo fmt --manifest-path crates/bevy/aeronet/Cargo.toml --check
    cargo fmt --all --manifest-path examples/agones_server/Cargo.toml --check
    cargo fmt --manifest-path benches/iroh/Cargo.toml --check
    cargo fmt --manifest-path fuzz/Cargo.toml --check
    cargo fmt --manifest-path tests/threads/Cargo.toml --check
    cargo fmt --all --manifest-path tests/tasks/Cargo.toml --check
    if command -v gofmt >/dev/null; then ! gofmt -d interop/go | grep .; fi

# Clippy without features, with each and with all of them, for all packages but Bevy's: benchmarks, C, the game, interop; fuzzers, threads and tasks.
lint:
    cargo clippy --all-targets --no-default-features -- -D warnings
    for feature in {{ features }}; do cargo clippy -p whitewater --no-default-features --features "$feature" -- -D warnings; done
    cargo clippy --workspace --exclude 'bevy*' --all-targets --features '{{ features }}' -- -D warnings
    for feature in '' client; do cargo clippy -p whitewater-matchmaker --no-default-features --features "$feature" -- -D warnings; done
    cargo clippy --all-targets --manifest-path fuzz/Cargo.toml -- -D warnings
    cargo clippy --tests --manifest-path tests/threads/Cargo.toml -- -D warnings
    cargo clippy --tests --manifest-path tests/tasks/Cargo.toml -- -D warnings

# Checks licences, sources and bans of dependencies.
deny:
    cargo deny check bans licenses sources
    cargo deny --workspace check bans sources
    cargo deny --manifest-path crates/bevy/aeronet/Cargo.toml --config deny.toml check bans sources
    cargo deny --manifest-path examples/agones_server/Cargo.toml --config deny.toml check bans sources
    cargo deny --manifest-path benches/iroh/Cargo.toml --config deny.toml check bans sources
    cargo deny --manifest-path fuzz/Cargo.toml --config deny.toml check bans sources
    cargo deny --manifest-path benches/peers/Cargo.toml --config deny.toml check bans sources

# Looks for known vulnerabilities of dependencies, in a copy of RustSec's database if it cannot be fetched.
advisories:
    tools/advisories.sh

# Compares the public API with the last release.
semver:
    tools/semver.sh

# Builds with the oldest supported Rust.
msrv:
    tools/msrv.sh

# Builds what would be published.
package:
    tools/package.sh

# Tests that need other programs: an implementation in Python, dissectors in tshark, nginx, Envoy, Quilkin, namespaces; and a longer soak.
test-programs:
    SESSION_SOAK=6000 SESSION_HOURS=24 cargo test --release --all-features \
      --test independent --test dissector --test proxy --test routed --test proxy_overhead --test socket_errors --test two_networks --test session_soak

# Tries orders of the steps of threads, for example `THREADS=10 just threads`.
threads:
    cargo test --release --manifest-path tests/threads/Cargo.toml

# Runs tasks of tokio in its paused time over a simulated network, for example `TASKS_SEED=7 just tasks`.
tasks:
    cargo test --release --manifest-path tests/tasks/Cargo.toml

# Tests servers that share used tokens in a Redis, which is killed meanwhile; needs redis-server.
used-tokens:
    cargo test --release -p whitewater-fleet

# Code that all features together disable: sockets without batched calls, and the ciphers in Rust, which ring's replace.
test-without:
    cargo test --release -p whitewater-udp --no-default-features
    cargo test --release -p whitewater --no-default-features --features net,crypto --test net --test net_session --test socket_errors \
      --test conformance --test token --test seal_alloc

# Runs examples that play both ends: a chat, games, TCP through a tunnel.
examples:
    cargo run -q --release --all-features --example chat demo
    cargo run -q --release --all-features --example shooter demo
    cargo run -q --release --all-features --example renet_echo demo
    cargo run -q --release --all-features --example arena -- --seconds 2
    cargo run -q --release --all-features --example tunnel demo

# Tests the example for Agones against a stand-in for its sidecar, and checks its manifests; needs protoc, and kubernetes-validate from PyPI.
agones:
    cargo clippy --workspace --all-targets --manifest-path examples/agones_server/Cargo.toml -- -D warnings
    cargo test --workspace --manifest-path examples/agones_server/Cargo.toml
    "${WHITEWATER_PYTHON:-python3}" examples/agones_server/manifests/check_test.py

# Tests the crate for Bevy and the code in its document, without optimisation, which builds in half of the time; and checks it for wasm32.
bevy:
    cargo test -p bevy_whitewater -p bevy-whitewater-page
    RUSTDOCFLAGS='-D warnings' cargo doc --no-deps -p bevy_whitewater
    rustup target add wasm32-unknown-unknown
    cargo clippy -p bevy_whitewater --no-default-features --features client,replicon --target wasm32-unknown-unknown -- -D warnings
    cargo clippy -p bevy_whitewater --no-default-features --features server -- -D warnings
    cargo clippy -p bevy_whitewater -p bevy-whitewater-page --all-targets -- -D warnings

# Tests packets of aeronet and messages of lightyear over sessions.
bevy-aeronet:
    cargo clippy --all-targets --manifest-path crates/bevy/aeronet/Cargo.toml -- -D warnings
    cargo test --manifest-path crates/bevy/aeronet/Cargo.toml

# Plays a Bevy game with replicon in a headless Chromium against its native server; needs Node.js and Chromium.
bevy-page:
    crates/bevy/page/tests/run.sh

# Tests the extension for Godot, and the code in its document inside of Godot 4, which it fetches from Debian if there is none.
godot:
    cargo test -p whitewater-godot
    crates/godot/tests/run.sh

# Checks the examples for Bevy with windows; the first time, that builds all of Bevy.
bevy-examples:
    cargo clippy -p bevy-whitewater-examples --all-targets -- -D warnings

# Tests the relay of players who host.
relay: && (relay-load "1")
    cargo test --release -p whitewater-relay

# Measures the relay beside coturn, Debian's TURN server, for so many seconds each time.
relay-load seconds="3":
    cargo build -q --release -p whitewater-relay
    cargo run -q --release -p whitewater-relay --example load -- {{ seconds }}

# Lets players behind NATs of each kind meet, so many times each, in namespaces of Linux, and prints how they connect and in how many ms; needs iproute2,
# nftables, and a TUN device. `just relay` tests the same.
nat runs="1":
    cargo build -q --release -p whitewater-relay --example player
    NAT_RUNS={{ runs }} cargo test -q --release -p whitewater-relay --test nat -- --nocapture every | grep '^[|s]'

# The same for pairs that meet directly, beside iroh, whose 400 crates take ten minutes to build.
nat-iroh runs="1":
    cargo build -q --release --manifest-path benches/iroh/Cargo.toml
    cargo build -q --release -p whitewater-relay --example player
    program=$(cargo metadata --no-deps --format-version 1 --manifest-path benches/iroh/Cargo.toml | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')/release/iroh-peer && \
      IROH_PEER="$program" NAT_RUNS={{ runs }} cargo test -q --release -p whitewater-relay --test nat -- --ignored --nocapture beside | grep '^[|s]'

# Checks the library for Windows, macOS, iOS and Android.
platforms:
    for target in x86_64-pc-windows-gnu x86_64-pc-windows-msvc x86_64-apple-darwin aarch64-apple-darwin aarch64-apple-ios aarch64-linux-android; do \
      rustup target add "$target" && \
      cargo check -q -p whitewater --features tokio,crypto,metrics --target "$target" || exit 1; done

# Runs unit tests and tests over sockets as a Windows program, under wine: needs mingw-w64 and wine.
windows:
    tools/windows.sh

# Runs tests with the other byte order, for s390x under QEMU, and with pointers of 32 bits, for i686: needs linkers of both.
endian:
    tools/endian.sh

# Checks what browsers get, for wasm32.
wasm:
    rustup target add wasm32-unknown-unknown
    cargo check -q -p whitewater --no-default-features --features crypto --target wasm32-unknown-unknown
    cargo clippy -p whitewater-web -p whitewater-js -p tower-defence-page --target wasm32-unknown-unknown -- -D warnings

# Plays the tower defence in a headless Chromium against native bots. Keeps screenshots in `pictures`; needs Node.js and Chromium.
page pictures="target":
    cargo build --release -p tower-defence
    npm --prefix examples/tower_defence/page/tests ci --no-audit --no-fund
    program=$(cargo metadata --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')/release/tower-defence && \
      mkdir -p '{{ pictures }}' && node examples/tower_defence/page/tests/play.mjs "$program" '{{ pictures }}'

# Tests the matchmaker, runs a fleet with it, and looks at its page in a headless Chromium; needs redis-server, Node.js and Chromium.
matchmaker:
    cargo test --release -p whitewater-matchmaker
    cargo run -q --release -p whitewater-matchmaker --example fleet demo
    crates/matchmaker/tests/page/run.sh

# Measures how many joins a second the matchmaker takes on one core; needs redis-server. Arguments: connections (32), seconds (10).
matchmaker-load *args:
    crates/matchmaker/tests/load.sh {{ args }}

# Packs the npm package, prints its size, and tests what was packed in Node and in a headless Chromium.
npm:
    crates/web-js/tests/run.sh

# Measures how soon inputs have an effect in a headless Chromium, beside clients without a browser; needs Node.js and Chromium. Arguments: seconds (60),
# inputs a second (60), round trip in ms (60), and losses in % (0 5 10).
browser-latency *args:
    crates/web-js/tests/latency.sh {{ args }}

# Packs the Python package, checks its types and tests what was packed; needs Python 3.10 with venv, and PyPI. Arguments: pytest's.
python *args:
    crates/python/tests/run.sh {{ args }}

# Tests the C library from C and C++.
c:
    capi/tests/run.sh

# Tests the package for C# with mono, against programs in Rust.
csharp *names:
    capi/csharp/tests/run.sh {{ names }}

# Builds the C library for each system into packages for Unity and NuGet, loads those that can run here, and says for each what happened.
dist folder="target/dist":
    tools/dist.sh '{{ folder }}'

# The programs in C with AddressSanitizer inside of the library too; needs nightly.
sanitize:
    capi/tests/sanitize.sh

# Looks for undefined behaviour behind the C functions, in decoders, rings, codes and messages with Miri; needs nightly. `just miri 50`: 25 times the cases.
miri cases="":
    tools/miri.sh {{ cases }}

# Tests the other packages; with `c` also against ikcp.c, which needs libclang.
test-beside features="":
    cargo test --release {{ beside }} {{ if features == "" { "" } else { "--features interop/" + features } }}

# Builds the documentation and the book; `test` runs the code in both.
docs:
    RUSTDOCFLAGS='-D warnings' cargo doc --no-deps --all-features
    mdbook build docs 2>&1 | tee /dev/stderr | (! grep -E '^ *(WARN|ERROR)')

# Checks that the tables and pictures in the documents are what the programs print and draw.
tables:
    diff <(grep '^|' docs/TUNING.md) \
      <({ cargo run -q --release --all-features --example tuning && cargo run -q --release --all-features --example bottleneck; } | grep '^|')
    for what in "" bars deadline; do \
      table=$(cargo run -q --release --all-features --example families -- 10 $what | grep '^| ' | sort) && \
      diff <(echo "$table") <(grep -xFf <(echo "$table") docs/LATENCY.md | sort) || exit 1; done
    scratch=$(mktemp -d) && \
      cargo run -q --release --all-features --example latency -- --out "$scratch/latency.svg" && \
      cmp docs/latency.svg "$scratch/latency.svg" && \
      cargo run -q --release --all-features --example families -- 4 curve "$scratch/loss.svg" && \
      cmp docs/loss.svg "$scratch/loss.svg" && rm -r "$scratch"

# Takes the figures of the documents again into `folder`, and says which have moved by more than 10 %: `just figures /tmp/f crowd`, `just figures /tmp/f --write`.
figures folder *args:
    tools/figures.py '{{ folder }}' {{ args }}

# Tests the program that does this, and that it understands what the documents say of their figures.
figures-test:
    python3 tools/figures_test.py

# Mutation tests, for example `just mutants 'src/packet/**' --lib --test messages`; needs cargo-mutants.
mutants files *tests:
    cargo mutants --jobs 1 --file '{{ files }}' -- {{ tests }}

# Builds the benchmarks against other libraries, and lets those send a little through a link that loses; needs libclang, and for that root on Linux.
peers:
    cargo run -q --manifest-path benches/peers/Cargo.toml -- lab-smoke

# Builds the seeds and targets of the fuzzers.
fuzz-build:
    tools/corpora.sh unpack
    cargo run --manifest-path fuzz/Cargo.toml --example seeds
    cargo fuzz build --sanitizer none

# Fuzzes a target, for example `just fuzz frames 600`; `cargo fuzz list` names them.
fuzz name seconds="60": fuzz-build (_fuzz name seconds)

# Fuzzes each target for that many seconds, two at a time.
fuzz-all seconds="6": fuzz-build
    cargo fuzz list | xargs -P 2 -I {} just _fuzz {} {{ seconds }}

_fuzz name seconds:
    @found=$(mktemp -d) && trap 'rm -r "$found"' EXIT && mkdir -p fuzz/corpus/{{ name }} && \
      cargo fuzz run --sanitizer none {{ name }} "$found" fuzz/corpus/{{ name }} -- -max_total_time={{ seconds }} -timeout=20 2>&1 | \
      tee "$found.log" | sed -n 's/^Done \([0-9]* runs\) in.*/{{ name }}: \1/p' || { cat "$found.log"; exit 1; }

# Fuzzes all targets on all cores for that many hours, and keeps what it learns in fuzz/corpora: `just fuzz-hours 8`.
fuzz-hours hours *targets:
    tools/fuzz.sh {{ hours }} {{ targets }}

# Counts the instructions that a datagram of each kind takes: `just work 60000` prints those above that.
work least="0":
    tools/work.sh {{ least }}

# Soak test with hundreds of real sockets.
soak seconds="120":
    SOCKET_SOAK={{ seconds }} cargo test --release --all-features --test socket_soak

# The whole gate, from a fresh clone on.
gate:
    .ci/run
