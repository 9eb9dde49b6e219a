# shellcheck shell=sh
# quiet.sh: rows of a table that are measured while the machine is quiet. What the machine
# can do is measured before and after a row. Where the two are apart by more than 5%,
# something else was at work, and the row is measured again, three times at most; then it
# is marked. Work that goes on from the first row to the last, always alike, does not show
# in this way, but in the load that scripts print. Read with "." after common.sh.
# shellcheck disable=SC2154 # $work: common.sh

# are_near A B: both are there, and the lower is at least 95% of the higher
are_near() {
    awk -v a="$1" -v b="$2" 'BEGIN {
        low = a + 0 < b + 0 ? a + 0 : b + 0
        high = a + 0 < b + 0 ? b + 0 : a + 0
        exit !(low > 0 && low >= 0.95 * high)
    }'
}

# quietly PACE COMMAND...: what the command prints, the rows of a table; it runs in this
# shell. PACE is a command that prints what the machine can do. $before and $after are
# then what it printed. tries=N before it: N times at most, not three.
quietly() {
    pace=$1 left=${tries:-3}
    shift
    while [ "$left" -gt 0 ]; do
        left=$((left - 1))
        # shellcheck disable=SC2086 # it has arguments
        before=$($pace)
        "$@" >"$work/rows.txt" || return
        # shellcheck disable=SC2086
        after=$($pace)
        if are_near "$before" "$after"; then
            cat "$work/rows.txt"
            return
        fi
        echo "bench: the machine is not quiet: its limit was $before before \"$*\" and" \
            "$after after it; tries left: $left" >&2
    done
    : >"$work/unquiet"
    sed 's/^| \([^|]*\)  |/| * \1|/; t
         s/^| /| * /' "$work/rows.txt"
}

# The line under the table, if a row has a mark.
explain_marks() {
    if [ -e "$work/unquiet" ]; then
        printf '\n\\* not from a quiet machine: its limit before and after this row was '
        echo "apart by more than 5%, each time that the row was measured"
    fi
}
