#!/bin/sh
# mpirun.sh: prints the launcher of the MPI that the build found (TRANCHE_MPIRUN: that
# one); nothing where there is none. Called at the root of the sources.
set -eu
[ -z "${TRANCHE_MPIRUN:-}" ] || { echo "$TRANCHE_MPIRUN" && exit; }
for name in TR_MPIRUN_COMMAND MPIEXEC_EXECUTABLE; do
    sed -n "s/^$name:FILEPATH=\(.*[^D]\)$/\1/p" build/CMakeCache.txt
done | { grep -v -- '-NOTFOUND$' || true; } | head -n 1
