#!/bin/sh
# check_exports.sh [ROOT] [LIBRARY]: fails where the functions that the public headers
# declare (TR_API), those that cmake/exports.txt names, and those that the shared library
# exports are not the same, or where the library's name is not that of its version.
set -eu
root=${1:-$(cd "$(dirname "$0")/.." && pwd)}
library=${2:-}
list=$root/cmake/exports.txt
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT INT TERM
rc=0

# same WHAT ADVICE: are $dir/found and the list the same names?
same() {
    if ! diff "$list" "$dir/found" >"$dir/difference"; then
        echo "$1 (>) and cmake/exports.txt (<) differ; $2:"
        grep '^[<>]' "$dir/difference" || true
        rc=1
    fi
}

sh "$(dirname "$0")/exports.sh" "$root" >"$dir/found"
same "what the headers declare with TR_API" \
    "if that is meant: sh tools/exports.sh >cmake/exports.txt"

if [ -n "$library" ]; then
    node=$(sed -n 's/^#define TRANCHE_VERSION_M[AI][JN]OR //p' \
        "$root/include/tranche/version.h" | paste -sd .)
    nm -D --defined-only --with-symbol-versions "$library" | awk '$2 != "A" { print $3 }' >"$dir/all"
    sed -n "s/@@TRANCHE_$node\$//p" "$dir/all" | LC_ALL=C sort >"$dir/found"
    same "what $library exports" \
        "a name that only the list has is declared, but no file defines it"
    grep -v "@@TRANCHE_$node\$" "$dir/all" && {
        echo "$library exports the names above without the version TRANCHE_$node"
        rc=1
    }
    readelf -d "$library" | grep -qF "[libtranche.so.$node]" || {
        echo "the SONAME of $library is not libtranche.so.$node"
        rc=1
    }
fi
[ "$rc" -eq 0 ] && echo "$(wc -l <"$list") functions are exported"
exit "$rc"
