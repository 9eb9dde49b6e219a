#!/bin/sh
# tidy.sh [--deep] [FILE...]: fails where clang-tidy 14, by .clang-tidy, has a finding in
# these sources, or in all of src/ but the kernels, which are compiled once for each
# instruction set. The analyzer leaves a function after 20,000 states, which is half of the
# time that its own limit takes. --deep has it look at ten times as much: some ten minutes
# of one core, in place of one. Status 77 (skipped) where it is not installed.
# A finding that is none gets "// NOLINT(name of the check): why" in its line.
set -u
cd "$(dirname "$0")/.." || exit 1
if ! command -v clang-tidy-14 >/dev/null 2>&1; then
    echo "tidy: clang-tidy-14 is not installed" >&2
    exit 77
fi
mode=shallow
states=20000
if [ "${1:-}" = --deep ]; then
    mode=deep
    states=225000
    shift
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM
cmake -S . -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_EXPORT_COMPILE_COMMANDS=ON >"$folder/log" 2>&1 || {
    cat "$folder/log" >&2
    exit 1
}

# The sources that this machine's build has.
if [ $# -gt 0 ]; then
    printf '%s\n' "$@"
else
    sed -n "s|^ *\"file\": \"$PWD/\(src/.*\.c\)\",*|\1|p" "$folder/compile_commands.json" |
        grep -v '/cpu[^/]*$' | LC_ALL=C sort -u
fi >"$folder/sources"
[ -s "$folder/sources" ] || {
    echo "tidy: no sources" >&2
    exit 1
}

# tidy N CHECKS EARLY: looks at the sources of stdin, N by one clang-tidy.
tidy() {
    xargs -r -n "$1" -P "$(nproc)" sh -c '
        folder=$1 mode=$2 states=$3 checks=$4 early=$5
        shift 5
        clang-tidy-14 -p "$folder" --quiet --warnings-as-errors="*" --checks="$checks" \
            --extra-arg-before=-I"$PWD/include" --extra-arg-before=-I"$PWD/src" \
            --extra-arg-before=-DTR_TIDY $early \
            --extra-arg=-Xclang --extra-arg=-analyzer-config \
            --extra-arg=-Xclang --extra-arg=mode="$mode" \
            --extra-arg=-Xclang --extra-arg=-analyzer-config \
            --extra-arg=-Xclang --extra-arg=max-nodes="$states" "$@" \
            2>"$folder/said.$$" && exit
        echo "clang-tidy fails on one of: $*"
        tail -n 3 "$folder/said.$$"
        : >"$folder/failed"' sh "$folder" "$mode" "$states" "$2" "$3"
}

# Macros of tools/tidy.h stand before all but base/status.c and comm/alone.c, which define
# what these are of.
alone='src/base/status\.c$|src/comm/alone\.c$'
header=--extra-arg-before=$PWD/tools/tidy.h

# look LIST N CHECKS: at the sources of a list.
look() {
    grep -Ev "$alone" "$1" | tidy "$2" "$3" "--extra-arg-before=-include $header"
    grep -E "$alone" "$1" | tidy "$2" "$3" ""
}

# One clang-tidy looks at many sources: to start one takes half as long as a source does. But
# the checks of va_list keep, from the first source on, the addresses of va_start's name and
# its kin: in a later source these may be any other name's. So each source that has a
# va_list is looked at for these by a clang-tidy of its own.
look "$folder/sources" 12 '-clang-analyzer-valist.*'
xargs grep -lE 'va_(list|start|copy|end)' <"$folder/sources" >"$folder/lists"
look "$folder/lists" 1 '-*,clang-analyzer-valist.*,-clang-analyzer-valist.Uninitialized'
if [ -e "$folder/failed" ]; then
    echo "tidy: see .clang-tidy for what is asked" >&2
    exit 1
fi
echo "$(wc -l <"$folder/sources") sources, no finding"
