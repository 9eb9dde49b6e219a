#!/bin/sh
# quiet_rows.sh ROOT: rows of bench/run.sh are measured again while the machine's limit
# changes (bench/quiet.sh), and of two modes of torch.compile the better one counts. The
# limits and the peer are a list of numbers here.
set -eu
root=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$root/bench/quiet.sh"

fail() {
    echo "quiet_rows: $*" >&2
    exit 1
}

# The next number of the list.
listed() {
    head -n 1 "$work/limits"
    sed -i 1d "$work/limits"
}

measured=0
a_row() {
    measured=$((measured + 1))
    printf '| %-20s | %-8s |\n' "$1" "try $measured"
}

# expect TRIES MARKED LIMIT...
expect() {
    tries_expected=$1 mark=$2
    shift 2
    printf '%s\n' "$@" >"$work/limits"
    rm -f "$work/unquiet"
    measured=0
    quietly listed a_row "a row" >"$work/table" 2>"$work/log"
    explain_marks >>"$work/table"
    [ "$measured" -eq "$tries_expected" ] || fail "$measured tries at $*"
    [ ! -s "$work/limits" ] || fail "limits are left at $*"
    grep -q "try $measured " "$work/table" || fail "not the last try at $*"
    if [ "$mark" = marked ]; then
        grep -q '^| \* a row  *| try' "$work/table" || fail "no mark at $*"
        grep -q '^\\\* not from a quiet machine' "$work/table" || fail "no line at $*"
    else
        ! grep -q '\*' "$work/table" || fail "a mark at $*"
    fi
}

expect 1 plain 100 100
expect 1 plain 100 95.5
expect 1 plain 95.5 100
expect 2 plain 100 94 101 99
expect 3 plain 100 90 80 100 99 100
expect 3 marked 100 90 80 100 100 94
expect 3 marked 100 "" "" 100 0 0
grep -q "not quiet" "$work/log" || fail "nothing is said of a try that does not count"


# A mark takes no room: the cells stay below each other.
printf '%s\n' 1 2 1 2 1 2 >"$work/limits"
quietly listed a_row "a row" 2>/dev/null | grep -q '^| \* a row              | try' ||
    fail "the mark moves the cells"

# Measured once alone, where it takes too long.
printf '%s\n' 100 50 >"$work/limits"
measured=0
tries=1
quietly listed a_row "a row" >"$work/table" 2>/dev/null
[ "$measured" -eq 1 ] || fail "$measured tries of 1"

# The peer says 10 in one mode, and 12 in the other.
a_peer() { # DEFAULT MAX-AUTOTUNE
    cat >"$work/peer" <<END
#!/bin/sh
for last; do :; done
case \$last in
default) rate=$1 ;;
max-autotune) rate=$2 ;;
*) rate=7 ;;
esac
[ "\$rate" -gt 0 ] || exit 1
echo "{\"tokens_per_second\": \$rate}"
END
    chmod +x "$work/peer"
}

# faster DEFAULT MAX-AUTOTUNE WHICH RATE OPTION...
faster() {
    a_peer "$1" "$2"
    which=$3 rate_expected=$4
    shift 4
    (
        cd "$root"
        TRANCHE_PEER_PYTHON=$work/peer
        export TRANCHE_PEER_PYTHON
        . bench/common.sh
        run_peer torch_gpt2.py "$@"
        [ "$peer_mode" = "$which" ] || fail "$peer_mode counts, not $which"
        [ "$(figure tokens_per_second "$work/peer.json")" = "$rate_expected" ] ||
            fail "not $rate_expected"
    )
}
faster 10 12 max-autotune 12 --bf16 --compile
faster 12 10 default 12 --bf16 --compile
faster 10 0 default 10 --compile
faster 10 12 "" 7 --bf16
echo "rows of a busy machine are measured again, and marked"
