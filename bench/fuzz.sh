#!/bin/sh
# fuzz.sh [MINUTES [TARGET...]]: runs each fuzz target (tests/fuzz; left out: all) for so
# many minutes (10), as many side by side as there are cores. Inputs that reach new code
# are kept in build-fuzz/corpus/TARGET, and the next call goes on from them; an input that
# fails is kept in build-fuzz/found. Prints a table; ends with 1 where something failed.
# To run one input again: build-fuzz/tests/fuzz/fuzz-TARGET FILE
set -eu
cd "$(dirname "$0")/.."
minutes=${1:-10}
case $minutes in
'' | *[!0-9]* | 0)
    sed -n '2,6s/^# //p' "$0" >&2
    exit 2
    ;;
esac
[ $# -eq 0 ] || shift
if ! why=$(tools/has_fuzzer.sh 2>&1); then
    echo "fuzz: clang with libFuzzer is not installed (make setup): $why" >&2
    exit 2
fi

cmake --preset fuzz >/dev/null
cmake --build build-fuzz --target fuzz >/dev/null
folder=$PWD/build-fuzz/tests/fuzz
if [ $# -eq 0 ]; then
    set -- $(cd "$folder" && ls fuzz-* | grep -v '\.' | sed 's/^fuzz-//')
fi
mkdir -p build-fuzz/found

# fuzz TARGET: prints its row
fuzz() {
    own=build-fuzz/corpus/$1
    log=build-fuzz/found/$1.log
    mkdir -p "$own"
    rc=0
    OMP_NUM_THREADS=1 "$folder/fuzz-$1" -max_total_time=$((minutes * 60)) -max_len=4096 \
        -timeout=20 -rss_limit_mb=4096 -print_final_stats=1 \
        -artifact_prefix="build-fuzz/found/$1-" "$own" "tests/fuzz/corpus/$1" \
        >"$log" 2>&1 || rc=$?
    awk -v target="$1" -v rc="$rc" '
    / cov: / { for (i = 1; i < NF; i++) if ($i == "cov:") cov = $(i + 1) }
    /^stat::number_of_executed_units/ { runs = $2 }
    /^stat::new_units_added/ { new = $2 }
    /^SUMMARY:|^fuzz:/ { found = $0 }
    END {
        printf "%-18s %10d %9d %7d  %s\n", target, runs, cov, new,
            rc == 0 ? "nothing found" : "FOUND: " found
    }' "$log"
    return "$rc"
}

echo "target                   inputs  branches    kept"
rc=0
running=
count=0
cores=$(nproc)
for target in "$@"; do
    fuzz "$target" &
    running="$running $!"
    count=$((count + 1))
    if [ $((count % cores)) -eq 0 ]; then
        for pid in $running; do wait "$pid" || rc=1; done
        running=
    fi
done
for pid in $running; do wait "$pid" || rc=1; done
[ "$rc" -eq 0 ] || echo "what failed is in build-fuzz/found" >&2
exit "$rc"
