#!/bin/sh
# check_packed.sh SOURCES: what tools/pack_gpu.sh packs runs with the libraries that it
# packs, from another folder: the tests pass where there is a GPU, else they are skipped.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sh "$1/tools/pack_gpu.sh" "$folder/gpu.tar" # xz would take most of the time
tar xf "$folder/gpu.tar" -C "$folder"
cd "$folder/tranche-gpu"
result=0
TRANCHE_OWN_LIBRARIES=1 ./try.sh tests >"$folder/said" || result=$?
cat "$folder/said"
[ "$(grep -c '^gpu/[a-z]*: ' "$folder/said")" -ge 5 ]
[ "$result" -eq 0 ] || [ "$result" -eq 77 ]
TRANCHE_CONTACT_OPS=relu TRANCHE_OWN_LIBRARIES=1 ./try.sh contact open conformance \
    >"$folder/said" 2>&1 || true # without a GPU no op conforms
cat "$folder/said"
grep -q '^open: passed' "$folder/said"
grep -q '^op relu: ' "$folder/said"

# Each of its libraries is there, or the system's.
for program in build/tranche build/bench/* build/tests/gpu-*; do
    LD_LIBRARY_PATH=$PWD/lib ldd "$program" >"$folder/linked"
    if grep 'not found' "$folder/linked" ||
        ! grep -q "$PWD/lib/libjansson" "$folder/linked"; then
        echo "check_packed: $program lacks a library" >&2
        exit 1
    fi
done
LD_LIBRARY_PATH=$PWD/lib build/tranche --version
