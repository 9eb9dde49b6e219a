#!/bin/sh
# faults.sh [STRIDE]: every call of a short run that can fail does so once: allocations of
# ours and of jansson's, mmap, open, read, write, fsync, rename and the like; on one rank
# and on two, from nothing and resumed (tests/faults/walk.sh tells what must come of it).
# STRIDE (1): only every so many. A line for each walk; ends with 1 where one went wrong.
# All faults take hours, every 37th half an hour.
set -eu
cd "$(dirname "$0")/.."
stride=${1:-1}
case $stride in
'' | *[!0-9]* | 0)
    sed -n '2,6s/^# //p' "$0" >&2
    exit 2
    ;;
esac
cmake --build build --target tranche-program --target fail_nth >/dev/null
preload=$PWD/build/tests/faults/libfail_nth.so
mpirun=$(sh bench/mpirun.sh)
files=open,read,write,sync,reserve,rename,folder
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
trap 'exit 130' INT TERM

# walk RANKS START CALLS: on all cores, each with a share of the faults
walk() {
    parts=$(nproc)
    [ "$1" -eq 1 ] || parts=$(((parts + $1 - 1) / $1))
    running= rc=0
    for part in $(seq "$parts"); do
        sh tests/faults/walk.sh tests/launch.sh "$mpirun" build/tranche "$preload" \
            "$1" "$2" "$3" $((stride * parts)) $((1 + stride * (part - 1))) \
            >"$logs/$part" 2>&1 &
        running="$running $!"
    done
    for pid in $running; do wait "$pid" || rc=1; done
    for part in $(seq "$parts"); do cat "$logs/$part"; done
    return "$rc"
}

failed=0
for ranks in 1 ${mpirun:+2}; do
    for start in fresh resumed; do
        for calls in "$files" memory,map; do
            walk "$ranks" "$start" "$calls" || failed=1
        done
    done
done
[ -n "$mpirun" ] || echo "two ranks: left out, the build is without MPI"
exit "$failed"
