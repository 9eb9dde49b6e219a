#!/bin/sh
# try.sh [tests] [bench [PART]... | contact [STAGE]...]: what tools/pack_gpu.sh has packed,
# on this machine's GPU: all tests, then bench/gpu.sh with these parts, or
# bench/first_contact.sh with these stages. Status 77 where there is no GPU.
#
#     TRANCHE_OWN_LIBRARIES=1    all libraries are those that are packed; else those that
#                                this machine lacks
set -u
here=$(cd "$(dirname "$0")" && pwd)
[ $# -gt 0 ] || set -- tests

# libraries that the loader does not find, and cuBLASLt where Python packages have it
lacking=$(mktemp -d)
trap 'rm -rf "$lacking"' EXIT
trap 'exit 130' INT TERM
known=$(ldconfig -p 2>/dev/null || /sbin/ldconfig -p)
for library in "$here"/lib/*; do
    case $known in
    *"	${library##*/} "*) [ -z "${TRANCHE_OWN_LIBRARIES:-}" ] || ln -s "$library" "$lacking/" ;;
    *) ln -s "$library" "$lacking/" ;;
    esac
done
python=$(python3 -c 'import glob, sys
print(":".join(d for p in sys.path if p for d in glob.glob(p + "/nvidia/*/lib")))' 2>/dev/null)
LD_LIBRARY_PATH=$lacking${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}${python:+:$python}
export LD_LIBRARY_PATH

# The tests look for their data where they were compiled.
built=$(cat "$here/built_at")
if [ ! -e "$built/tests/data" ]; then
    mkdir -p "$built/tests" && ln -s "$here/tests/data" "$built/tests/data" || exit 1
fi

# one TEST: its status, a line of how it went, and the end of what it said where it failed
one() {
    name=${1##*/gpu-} begin=$(date +%s)
    sh "$here/tests/cuda/on_gpu.sh" timeout 300 "$1" >"$lacking/said" 2>&1
    result=$?
    case $result in
    0) how=passed ;;
    77) how=skipped ;;
    *) how="FAILED ($result)" ;;
    esac
    echo "gpu/$name: $how, $(($(date +%s) - begin)) s"
    [ "$result" -eq 0 ] || grep -v '^\[ *\(RUN\|OK\) ' "$lacking/said" | tail -n 40
    return "$result"
}

status=0
if [ "$1" = tests ]; then
    shift
    for test in "$here"/build/tests/gpu-*; do
        one "$test" || status=$?
    done
fi
case ${1:-} in
bench) script=gpu.sh ;;
contact) script=first_contact.sh ;;
*) exit "$status" ;;
esac
shift
"$here/bench/$script" "$@" || status=$?
exit "$status"
