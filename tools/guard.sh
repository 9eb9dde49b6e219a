#!/bin/sh
# guard.sh [SEEDS] [BUILD]: the tests of training and of the executor on the guard
# backend (tests/guard/guard.h), whose queues are as late as their waits let them (seed
# 0), or late at random. SEEDS: how many seeds, from 0 on (10); BUILD: a folder that is
# configured with tests (build). About 6 minutes a seed on two cores.
set -eu
cd "$(dirname "$0")/.."
seeds=${1:-10}
build=${2:-build}
OMP_WAIT_POLICY=passive
export OMP_WAIT_POLICY
cmake --build "$build" --target tests-guard
log=$(mktemp)
trap 'rm -f "$log"' EXIT
passed=0
failed=0
seed=0
while [ "$seed" -lt "$seeds" ]; do
    for test in "$build"/tests/guard-train-* "$build"/tests/guard-exec-*; do
        if TR_GUARD_SEED=$seed timeout 900 "$test" >"$log" 2>&1; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            echo "guard: seed $seed: $test failed:"
            tail -n 30 "$log"
        fi
    done
    seed=$((seed + 1))
    echo "guard: $seed of $seeds seeds: $passed passed, $failed failed"
done
[ "$failed" -eq 0 ]
