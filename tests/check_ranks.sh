#!/bin/sh
# check_ranks.sh LAUNCH MPIRUN RANKS STATUS COMMAND...: a cmocka program on ranks that end
# by tr_comm_end after an error. Each rank must say that its tests passed, none that one
# failed, and the launcher must end with STATUS.
set -eu
launch=$1 mpirun=$2 ranks=$3 status=$4
shift 4
log=$(mktemp)
trap 'rm -f "$log"' EXIT INT TERM

rc=0
sh "$launch" "$mpirun" "$ranks" "$@" >"$log" 2>&1 || rc=$?
cat "$log"
passed=$(grep -c '\[  PASSED  \] [1-9]' "$log" || true)
[ "$passed" -eq "$ranks" ] || {
    echo "$passed of $ranks ranks passed"
    exit 1
}
! grep -qE '\[  (FAILED|ERROR) ' "$log" || exit 1
[ "$rc" -eq "$status" ] || {
    echo "the launcher's status is $rc, not $status"
    exit 1
}
