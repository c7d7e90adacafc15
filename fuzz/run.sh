#!/bin/sh
# Runs every fuzz target, or those named, from the seeds: RUNS executions each (default 100000).
# Needs stable Rust and a C++ compiler. A crash leaves its input in fuzz/artifacts and fails the run.
set -eu
cd "$(dirname "$0")"
runs=${RUNS:-100000}
targets=${*:-$(basename -a src/bin/*.rs | sed 's/\.rs$//')}
host=$(rustc -vV | sed -n 's/^host: //p')

# libFuzzer's feedback without a nightly compiler: the coverage pass is named to LLVM directly.
flags='-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4'
flags="$flags -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table"
flags="$flags --cfg=fuzzing"
RUSTC_BOOTSTRAP=1 RUSTFLAGS="$flags" cargo build --quiet --release --target "$host" --target-dir "${FUZZ_TARGET_DIR:-target}"

mkdir -p artifacts
# Inputs pass through files: in memory, where there is such a folder.
if [ -d /dev/shm ]; then work=$(mktemp -d -p /dev/shm); else work=$(mktemp -d); fi
trap 'rm -rf "$work"' EXIT
for target in $targets; do
    mkdir -p "$work/$target"
    if TMPDIR="$work" "${FUZZ_TARGET_DIR:-target}/$host/release/$target" -runs="$runs" -seed="${SEED:-1}" \
        -max_len=4096 -timeout=10 -rss_limit_mb=2048 -artifact_prefix="artifacts/$target-" -print_final_stats=1 \
        "$work/$target" "seeds/$target" >"artifacts/$target.log" 2>&1; then
        executed=$(sed -n 's/^stat::number_of_executed_units: *//p' "artifacts/$target.log")
        echo "fuzz $target: $executed executions, 0 crashes"
    else
        tail -n 40 "artifacts/$target.log"
        echo "fuzz $target: failed; its input and its log are in fuzz/artifacts" >&2
        exit 1
    fi
done
