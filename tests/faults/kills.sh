#!/bin/sh
# kills.sh LAUNCH MPIRUN PROGRAM RANKS KILLS [SEED]: a short run on RANKS ranks whose
# ranks or launcher are killed (SIGKILL), KILLS times, at moments drawn at random, from
# the start of the processes to the run's end. After each kill the run goes on, is killed
# again, and so on; whenever it comes to its end, it must have the weights, states and
# metrics of a run that nothing has disturbed, and it begins anew.
set -eu
launch=$1 mpirun=$2 program=$3 ranks=$4 kills=$5 seed=${6:-1} start=fresh steps=90
# shellcheck source=SCRIPTDIR/short_run.sh
. "$(dirname "$0")/short_run.sh"
done_kills=0 drawn=0 ends=0 launchers=0

fails() {
    echo "kills, seed $seed, $ranks ranks, kill $done_kills: $1"
    tail -n 8 "$dir/log" | sed 's/^/    /'
    exit 1
}

# draw MOST: sets $value, from 0 to MOST
draw() {
    drawn=$((drawn + 1))
    value=$(awk -v seed="$seed$ranks" -v n="$drawn" -v most="$1" 'BEGIN {
        srand(seed)
        for (i = 0; i < n; i++) value = rand()
        print int(value * (most + 1))
    }')
}

milliseconds() {
    echo $(($(date +%s%N) / 1000000))
}

# Strikes one of the ranks, or the process that started them.
strike() {
    victim=$running
    [ "$ranks" -gt 1 ] || {
        kill -9 "$victim" 2>/dev/null || true
        return 0
    }
    pids=$(ranks_of)
    count=$(echo "$pids" | grep -c . || true)
    draw "$count"
    [ "$value" -eq "$count" ] || victim=$(echo "$pids" | sed -n "$((value + 1))p")
    kill -9 "$victim" 2>/dev/null || true
}

# The run beside this script, whose process is the launcher (or the one rank) itself.
launch_run() {
    if [ "$ranks" -eq 1 ]; then
        (cd "$dir" && exec "$copy" train run.json) >"$dir/log" 2>&1 &
    else
        (cd "$dir" && exec sh "$launch" "$mpirun" "$ranks" "$copy" train run.json) \
            >"$dir/log" 2>&1 &
    fi
    running=$!
}

check_end() {
    ends=$((ends + 1))
    left >"$dir/found" 2>&1 || true
    cmp -s "$dir/wanted" "$dir/found" || {
        diff "$dir/wanted" "$dir/found" | head -n 6 >>"$dir/log"
        fails "not what an undisturbed run leaves"
    }
}

prepare || fails "the undisturbed run"
begin
from=$(milliseconds)
train -- || fails "the undisturbed run"
whole=$(($(milliseconds) - from))
begin
while [ "$done_kills" -lt "$kills" ]; do
    launch_run
    draw "$whole"
    sleep "$(awk -v ms="$value" 'BEGIN { printf "%.3f", ms / 1000 }')"
    strike
    rc=0
    wait "$running" 2>/dev/null || rc=$?
    await_none || fails "ranks are left behind: $(ranks_of)"
    if [ "$rc" -eq 0 ]; then # the end came first
        check_end
        begin
        [ "$ends" -le $((10 * kills)) ] || fails "the run is too short to be killed"
        continue
    fi
    done_kills=$((done_kills + 1))
    [ "$ranks" -eq 1 ] || [ "$victim" != "$running" ] || launchers=$((launchers + 1))
done
train -- || fails "the last start ends with status $?"
check_end
echo "$ranks ranks: $kills kills, $launchers of them of the launcher, seed $seed;" \
    "$ends ends, each with the weights of an undisturbed run"
