#!/bin/sh
# check_killed.sh LAUNCH MPIRUN SAVE TRANCHE: one of three ranks is killed in the midst of
# a save, at one call after another. What `latest` points to is always a checkpoint that
# one process would have saved, bit for bit.
set -eu
launch=$1 mpirun=$2 save=$3 tranche=$4
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT INT TERM
out=$dir/out

fails() {
    echo "$1"
    cat "$dir/log"
    exit 1
}

# on_ranks STEP RANK N: what save.c does with them
on_ranks() {
    sh "$launch" "$mpirun" 3 "$save" "$out" "$@" >"$dir/log" 2>&1
}

# killed STEP RANK N: the same, and the launcher tells of it
killed() {
    ! on_ranks "$@" || sh "$(dirname "$launch")/hides_kills.sh" "$mpirun" ||
        fails "$2 $3: nobody was killed"
}

# latest_is STEP: bit for bit
latest_is() {
    [ "$(readlink "$out/checkpoints/latest")" = "step-0000000$1" ] ||
        fails "latest is not step $1"
    "$tranche" diff "$out" "$dir/alone-$1" >"$dir/log" 2>&1 || fails "step $1 differs"
}

for step in 1 2; do
    "$save" "$dir/alone-$step" $step 0 0 >/dev/null
done
on_ranks 1 0 0 || fails "status $?"
# The last calls of a save on rank 0: the folder gets its name, that is synced, latest
# moves, that is synced.
first=$(sed -n 's/^calls of rank 0: //p' "$dir/log")
second=$(sed -n 's/^calls of rank 1: //p' "$dir/log")
latest_is 1
for blow in "0 2" "0 $((first / 2))" "0 $((first - 3))" "0 $((first - 2))" \
    "0 $((first - 1))" "1 1" "1 $second"; do
    # shellcheck disable=SC2086
    killed 2 $blow
    latest_is 1
    rm -rf "$out/checkpoints/step-00000002" # complete, but for its name in latest
done
killed 2 0 "$first"
latest_is 2
on_ranks 2 0 0 || fails "status $?"
latest_is 2
[ "$(ls "$out/checkpoints" | tr '\n' ' ')" = "latest step-00000001 step-00000002 " ] ||
    fails "something is left: $(ls "$out/checkpoints")"
