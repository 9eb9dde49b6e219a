#!/bin/sh
# check_failure.sh LAUNCH MPIRUN PROGRAM MODE RANK STATUS MESSAGE [RANKS [ALGORITHM]]: on
# so many ranks, or three, rank RANK ends the run in the way MODE. The launcher's exit
# status, the message (once, or none where it is empty; where it ends in "...", as it
# begins), ten seconds, and nothing left behind. STATUS: a number, or "killed": whatever the launcher makes of a rank that
# was killed.
set -eu
launch=$1 mpirun=$2 program=$3 mode=$4 rank=$5 status=$6 message=${7:-} ranks=${8:-3} algorithm=${9:-}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT INT TERM

# A copy of its own name, so that what is left of it can be told from others' runs.
copy=$dir/$(basename "$dir" | tr -d .)
cp "$program" "$copy"

fails() {
    echo "$mode $rank: $1"
    sed 's/^/    /' "$dir/out" "$dir/err"
    exit 1
}

# The time counts from the blow on.
watch() {
    while ! grep -q struck "$dir/out" 2>/dev/null && [ ! -e "$dir/end" ]; do
        sleep 0.05
    done
    date +%s%N >"$dir/struck"
}

watch &
watcher=$!
rc=0
sh "$launch" "$mpirun" "$ranks" "$copy" "$mode" "$rank" $algorithm >"$dir/out" 2>"$dir/err" || rc=$?
ended=$(date +%s%N)
touch "$dir/end"
wait "$watcher"
passed=$(((ended - $(cat "$dir/struck")) / 1000000))

case $status in
killed)
    [ "$rc" -ne 0 ] || sh "$(dirname "$launch")/hides_kills.sh" "$mpirun" ||
        fails "status 0"
    ;;
*) [ "$rc" -eq "$status" ] || fails "status $rc, not $status" ;;
esac
said=$(grep -c '^failure: ' "$dir/err" || true)
if [ -n "$message" ]; then
    [ "$said" -eq 1 ] || fails "$said messages, not one"
    case $message in
    *...) grep -qF "failure: ${message%...}" "$dir/err" ;;
    *) grep -qxF "failure: $message" "$dir/err" ;;
    esac || fails "not the message \"$message\""
else
    [ "$said" -eq 0 ] || fails "$said messages, not none"
fi
[ "$mode" = slow ] || [ "$passed" -le 10000 ] || fails "took $passed ms to end"

# A launcher may be gone a moment before the last of its ranks.
left=
for try in 1 2 3 4 5 6 7 8 9 10; do
    left=$(for exe in /proc/[0-9]*/exe; do
        [ "$(readlink "$exe" 2>/dev/null)" != "$copy" ] || echo "$exe"
    done)
    [ -n "$left" ] || break
    sleep 0.2
done
[ -z "$left" ] || fails "left behind after try $try: $left"
echo "$mode $rank: status $rc after $passed ms"
