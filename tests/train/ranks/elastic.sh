#!/bin/sh
# elastic.sh LAUNCH MPIRUN PROGRAM: one run of each model of mesh_goldens.c from mesh to
# mesh, 4 ranks, 3 and 4. Each part ends with a checkpoint, and the next one begins there.
set -eu
launch=$1 mpirun=$2 program=$3
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
part=1
for ranks in 4 3 4; do
    sh "$launch" "$mpirun" $ranks "$program" elastic "$out" $part
    part=$((part + 1))
done
