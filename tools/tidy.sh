#!/bin/sh
# tidy.sh [FILE...]: what clang-tidy 14 says, by .clang-tidy, of these sources, or of all in
# src/ but the kernels, which are compiled once for each instruction set: ten minutes of one
# core. It judges, and errs: not every finding is a fault, so no test runs it.
set -u
cd "$(dirname "$0")/.." || exit 1
if ! command -v clang-tidy-14 >/dev/null 2>&1; then
    echo "tidy: clang-tidy-14 is not installed" >&2
    exit 77
fi
commands=$(mktemp -d)
trap 'rm -rf "$commands"' EXIT
trap 'exit 130' INT TERM
cmake -S . -B "$commands" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_EXPORT_COMPILE_COMMANDS=ON >/dev/null || exit 1
if [ $# -gt 0 ]; then
    printf '%s\n' "$@"
else
    find src -name '*.c' ! -name 'cpu*.c' | LC_ALL=C sort
fi | xargs -n 1 -P "$(nproc)" sh -c '
    clang-tidy-14 -p "$1" --quiet "$2" 2>/dev/null
    [ $? -lt 126 ] || echo "$2: clang-tidy itself failed"' sh "$commands"
