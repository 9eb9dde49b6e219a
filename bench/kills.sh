#!/bin/sh
# kills.sh [KILLS [SEED]]: SIGKILL for ranks and launchers of a short run, at moments drawn
# at random, KILLS times (100) on one rank and on two; whatever was killed is resumed, and
# must end with the weights of an undisturbed run (tests/faults/kills.sh).
set -eu
cd "$(dirname "$0")/.."
kills=${1:-100} seed=${2:-1}
cmake --build build --target tranche-program >/dev/null
mpirun=$(sh bench/mpirun.sh)
failed=0
for ranks in 1 ${mpirun:+2}; do
    sh tests/faults/kills.sh tests/launch.sh "$mpirun" build/tranche "$ranks" "$kills" \
        "$seed" || failed=1
done
[ -n "$mpirun" ] || echo "two ranks: left out, the build is without MPI"
exit "$failed"
