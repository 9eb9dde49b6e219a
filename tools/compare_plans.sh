#!/bin/sh
# compare_plans.sh OLD [COUNT]: are the plans of COUNT (5,000) drawn requests those of an
# older version? OLD is a file that an earlier run of --save wrote, which stays valid only
# as long as tests/plan/drawn.c does.
#
#     tools/compare_plans.sh --save FILE [COUNT]     writes the plans of this version
#
# Compared are steps, waits, accesses at their places in the arenas, ledger and traffic, as
# a hash for each request. The first requests that differ are printed;
# `dump_plans --steps NUMBER 1` shows the steps of one. Status 1: some differ.
set -eu
cd "$(dirname "$0")/.."
save=0
if [ "${1:-}" = --save ]; then
    save=1
    shift
fi
[ $# -ge 1 ] && [ $# -le 2 ] || {
    sed -n '2,6s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
file=$1 count=${2:-5000}
cmake --build build --target dump-plans >/dev/null
dump=build/tests/plan/dump/dump_plans
if [ "$save" -eq 1 ]; then
    exec "$dump" 0 "$count" >"$file"
fi
new=$(mktemp)
trap 'rm -f "$new"' EXIT INT TERM
"$dump" 0 "$count" >"$new"
if cmp -s "$file" "$new"; then
    echo "$count requests: the same plans"
    exit 0
fi
echo "the first requests whose plans differ (old, new):" >&2
diff "$file" "$new" | head -n 20 >&2 || true
awk 'NR == FNR { status[$1] = $2; bytes[$1] = $4; line[$1] = $2 " " $3; next }
     line[$1] != $2 " " $3 { differ++ }
     status[$1] != $2 { other++ }
     status[$1] == $2 && $4 > bytes[$1] { larger++ }
     status[$1] == $2 && $4 < bytes[$1] { smaller++ }
     END { printf "%d differ: %d have another status, %d larger arenas, %d smaller\n",
           differ, other, larger, smaller }' "$file" "$new" >&2
exit 1
