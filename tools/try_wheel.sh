#!/bin/sh
# try_wheel.sh PYTHON...: installs the wheel that wheel.sh has made for each of these
# Pythons, into an environment that has nothing else, and runs the tests of the package
# there. WITH="numpy torch" installs these, too. Needs a build in build/ (for
# tests/python/test_layout.py).
set -eu
cd "$(dirname "$0")/.."
TRANCHE_SOURCE=$PWD
TRANCHE_LAYOUT=$PWD/build/tests/python/python-layout
OMP_WAIT_POLICY=passive
export TRANCHE_SOURCE TRANCHE_LAYOUT OMP_WAIT_POLICY
unset PYTHONPATH || true
[ $# -gt 0 ] || set -- python3
failed=0
for python; do
    place=$(mktemp -d)
    "$python" -m venv "$place/env"
    # shellcheck disable=SC2086
    "$place/env/bin/pip" install --quiet python/dist/tranche-*.whl ${WITH:-}
    echo "== $("$python" --version)${WITH:+ with $WITH}"
    for test in tests/python/test_*.py; do
        name=$(basename "$test" .py)
        "$place/env/bin/python" tests/python/run.py "$name" >"$place/log" 2>&1 ||
            failed=1
        grep -E '^(FAIL|ERROR|OK|\[  |test_.*skipped)' "$place/log" |
            sed "s/^/$name: /" || true
    done
    rm -rf "$place"
done
exit "$failed"
