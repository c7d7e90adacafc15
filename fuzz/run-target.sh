#!/bin/sh
# Runs one fuzz target; called by run.sh, which sets RUNS, WORK and BINARIES.
set -eu
target=$1
mkdir -p "$WORK/$target/inputs" "$WORK/$target/files"
if TMPDIR="$WORK/$target/files" "$BINARIES/$target" -runs="$RUNS" -seed="${SEED:-1}" \
    -max_len=4096 -timeout=10 -rss_limit_mb=2048 -artifact_prefix="artifacts/$target-" -print_final_stats=1 \
    "$WORK/$target/inputs" "seeds/$target" >"artifacts/$target.log" 2>&1; then
    executed=$(sed -n 's/^stat::number_of_executed_units: *//p' "artifacts/$target.log")
    echo "fuzz $target: $executed executions, 0 crashes"
else
    tail -n 40 "artifacts/$target.log"
    echo "fuzz $target: failed; its input and its log are in fuzz/artifacts" >&2
    # This status makes xargs start no further target.
    exit 255
fi
