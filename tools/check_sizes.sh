#!/bin/sh
# check_sizes.sh [ROOT]: fails on a function over 100 lines or a file over 800. It reads
# formatted C: a function begins and ends in the first column.
set -eu
root=${1:-$(cd "$(dirname "$0")/.." && pwd)}

cd "$root"
find . -name '.git' -prune -o -path './build*' -prune -o -type f \
    \( -name '*.[ch]' -o -name '*.py' -o -name '*.sh' -o -name '*.cmake' \
    -o -name CMakeLists.txt \) -print | LC_ALL=C sort | {
    rc=0
    files=0
    while IFS= read -r file; do
        files=$((files + 1))
        awk -v file="${file#./}" -v c="${file##*.}" '
        c !~ /^[ch]$/ { next }
        /^[A-Za-z_]/ && !/^[A-Za-z_0-9]+:/ && (open == 0) { start = FNR }
        /^[A-Za-z_].*\{$/ || /^[ \t].*\) *\{$/ { if (start) open = 1 }
        /^\}/ {
            if (start && $0 == "}" && FNR - start + 1 > 100) {
                printf "%s:%d: a function of %d lines\n", file, start, FNR - start + 1
                failed = 1
            }
            start = open = 0
        }
        END {
            if (FNR > 800) {
                printf "%s: %d lines\n", file, FNR
                failed = 1
            }
            exit failed ? 1 : 0
        }' "$file" || rc=1
    done
    if [ "$files" -eq 0 ]; then
        echo "check_sizes: no sources under $root" >&2
        exit 1
    fi
    [ "$rc" -eq 0 ] && echo "$files files: no function over 100 lines, no file over 800"
    exit "$rc"
}
