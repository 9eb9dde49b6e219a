#!/bin/sh
# check_abi.sh [ROOT] [CC]: are the types of the stable headers those of
# cmake/exports.abi, for which programs have been compiled? Functions keep their types, and
# structs their layouts; a member that is meant to come behind the last one of a struct
# that begins with its size is taken over into the file. Status 77 (skipped) where libabigail is not installed.
set -eu
root=$(cd "${1:-$(dirname "$0")/..}" && pwd)
cc=${2:-cc}
if ! command -v abidiff >/dev/null 2>&1 || ! command -v abidw >/dev/null 2>&1; then
    echo "abidiff (abigail-tools) is not installed: the layouts of types are not compared"
    exit 77
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT INT TERM
sh "$root/tools/abi.sh" "$root" "$cc" >"$dir/now.abi"
status=0
abidiff "$root/cmake/exports.abi" "$dir/now.abi" >"$dir/log" 2>&1 || status=$?
if [ "$status" -ne 0 ]; then
    cat "$dir/log"
    echo "The interface is not that of cmake/exports.abi. If that is meant, CHANGELOG.md" \
        "says so, and: sh tools/abi.sh >cmake/exports.abi"
    exit 1
fi
