#!/bin/sh
# walk.sh LAUNCH MPIRUN PROGRAM PRELOAD RANKS START CALLS STRIDE [FIRST]: a short run on
# RANKS ranks, in which the n-th of CALLS (FAIL_CALLS of fail_nth.c, the library PRELOAD)
# fails, for n = FIRST (1), FIRST + STRIDE, ... up to as many as there are; of several
# ranks it is another one each time. Each fault must end with a status and a message, or
# do no harm; and the next start must end with the weights, states and metrics of a run
# that nothing has disturbed. START: see short_run.sh.
#
# Where jansson 2.14 has no memory for the rest of a string that it parses, it reads past
# what it has: a run that this ends by a signal is counted apart.
set -eu
launch=$1 mpirun=$2 program=$3 preload=$4 ranks=$5 start=$6 calls=$7 stride=$8
nth=${9:-1} steps=6
# shellcheck source=SCRIPTDIR/short_run.sh
. "$(dirname "$0")/short_run.sh"
faults=0 bad=0 quiet=0 signals=0

wrong() {
    bad=$((bad + 1))
    echo "$ranks ranks, $start, $(cat "$dir/report" 2>/dev/null | head -n 1) of rank" \
        "$rank (n = $nth): $1"
    tail -n 6 "$dir/log" | sed 's/^/    /'
}

# fault NTH: settings for that fault; 0: none, calls are counted
fault() {
    rm -f "$dir/report"
    echo "LD_PRELOAD=$preload FAIL_CALLS=$calls FAIL_RANK=$target FAIL_NTH=$1" \
        "FAIL_REPORT=$dir/report"
}

# Which rank is struck; one rank has no number.
choose() {
    rank=$((nth / stride % ranks))
    target=$rank
    [ "$ranks" -gt 1 ] || target=
}

prepare || {
    echo "the undisturbed run:"
    cat "$dir/log"
    exit 1
}
rank=0 target=
[ "$ranks" -eq 1 ] || target=0
begin
# shellcheck disable=SC2046
train $(fault 0) -- || {
    cat "$dir/log"
    exit 1
}
count=$(sed -n 's/^calls //p' "$dir/report")
[ "${count:-0}" -gt 3 ] || {
    echo "no calls were counted: $(cat "$dir/report")"
    exit 1
}

while [ "$nth" -le "$count" ]; do
    choose
    begin
    rc=0
    # shellcheck disable=SC2046
    train $(fault "$nth") -- || rc=$?
    faults=$((faults + 1))
    said=$(grep -c '^tranche: ' "$dir/log" || true)
    if [ "$rc" -eq 0 ]; then
        quiet=$((quiet + 1))
        left >"$dir/found" 2>&1 || true
        cmp -s "$dir/wanted" "$dir/found" || wrong "status 0, but not what was wanted"
    elif [ "$rc" -gt 128 ] && grep -q '^failed .* of jansson' "$dir/report"; then
        signals=$((signals + 1))
    elif [ "$rc" -gt 8 ] || [ "$said" -eq 0 ]; then
        wrong "status $rc, $said messages"
    fi
    await_none || wrong "ranks are left behind"
    if ! train --; then
        wrong "the next start fails"
    else
        left >"$dir/found" 2>&1 || true
        if ! cmp -s "$dir/wanted" "$dir/found"; then
            diff "$dir/wanted" "$dir/found" | head -n 4 >>"$dir/log"
            wrong "the next start ends elsewhere"
        fi
    fi
    nth=$((nth + stride))
done
echo "$ranks ranks, $start, $calls: $faults of $count faults, $quiet did no harm," \
    "$signals ended jansson by a signal, $bad went wrong"
[ "$bad" -eq 0 ] && [ "$faults" -gt 0 ]
