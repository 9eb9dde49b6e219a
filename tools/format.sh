#!/bin/sh
# format.sh [--check] [ROOT]: formats every C file with the pinned clang-format, or says
# which are not formatted. Status 77 (skipped) where that version is not installed.
set -eu
check=
if [ "${1:-}" = --check ]; then
    check='--dry-run -Werror'
    shift
fi
root=${1:-$(cd "$(dirname "$0")/.." && pwd)}
version=14

tool=
for name in clang-format-$version clang-format; do
    if "$name" --version 2>/dev/null | grep -q "version $version\."; then
        tool=$name
        break
    fi
done
if [ -z "$tool" ]; then
    echo "clang-format $version is not installed" >&2
    exit 77
fi

cd "$root"
list=$(find src include tests bench examples -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' \
    -o -name '*.cpp' 2>/dev/null | LC_ALL=C sort)
if [ -z "$list" ]; then
    echo "format: no sources under $root" >&2
    exit 1
fi
# shellcheck disable=SC2086
"$tool" ${check:--i} $list
