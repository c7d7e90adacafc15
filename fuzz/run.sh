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
export RUNS="$runs" WORK="$work" BINARIES="${FUZZ_TARGET_DIR:-target}/$host/release"
# A target has one thread, so several run at once, each with files of its own.
printf '%s\n' $targets | xargs -P "$(getconf _NPROCESSORS_ONLN)" -n 1 ./run-target.sh
