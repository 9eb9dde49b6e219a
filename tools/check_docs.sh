#!/bin/sh
# check_docs.sh [ROOT]: fails when a link of a .md file leads to a file that is not there,
# or when a line of one is longer than 120 columns (rows of tables cannot be broken, so
# they may be).
set -eu
root=${1:-$(cd "$(dirname "$0")/.." && pwd)}

cd "$root"
find . -name '.*' ! -name . -prune -o -path './build*' -prune -o -path './out' -prune -o \
    -name '*.md' -print | LC_ALL=C sort | {
    rc=0
    files=0
    while IFS= read -r file; do
        files=$((files + 1))
        if LC_ALL=C.UTF-8 grep -nE '^[^|].{120}' "$file" | cut -c 1-60 |
            sed "s|^|$file:|" | grep .; then
            echo "$file: lines over 120 columns" >&2
            rc=1
        fi
        # Targets of [words](target); those of other places are not looked up.
        for link in $(grep -oE '\]\([^) ]+\)' "$file" | sed 's/^](//; s/)$//; s/#.*$//' |
            grep -vE '^[a-z]+:' || true); do
            if [ ! -e "$(dirname "$file")/$link" ]; then
                echo "$file: a link to $link, which is not there" >&2
                rc=1
            fi
        done
    done
    if [ "$files" -eq 0 ]; then
        echo "check_docs: no .md files under $root" >&2
        exit 1
    fi
    [ "$rc" -eq 0 ] && echo "$files files, every link leads somewhere"
    exit "$rc"
}
