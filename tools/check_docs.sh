#!/bin/sh
# check_docs.sh [ROOT]: fails when a link of a .md file leads to a file or to a heading of
# one that is not there, or when a line of one is longer than 120 columns (rows of tables
# cannot be broken, so they may be).
set -eu
root=${1:-$(cd "$(dirname "$0")/.." && pwd)}

# The anchors that GitHub gives the headings of a file: small letters, spaces as hyphens,
# no other punctuation; those that come again are numbered.
anchors() {
    awk '
    /^```/ { code = !code }
    !code && /^#+ / {
        name = tolower($0)
        sub(/^#+ +/, "", name)
        gsub(/\]\([^)]*\)/, "", name)
        gsub(/[^-_ a-z0-9]/, "", name)
        gsub(/ /, "-", name)
        print seen[name]++ ? name "-" (seen[name] - 1) : name
    }' "$1"
}

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
        for link in $(grep -oE '\]\([^) ]+\)' "$file" | sed 's/^](//; s/)$//' |
            grep -vE '^[a-z]+:' || true); do
            target=$(dirname "$file")/${link%%#*}
            [ -n "${link%%#*}" ] || target=$file
            if [ ! -e "$target" ]; then
                echo "$file: a link to $link, which is not there" >&2
                rc=1
            elif [ "$link" != "${link#*#}" ] && [ "$target" != "${target%.md}" ] &&
                ! anchors "$target" | grep -qxF -e "${link#*#}"; then
                echo "$file: a link to $link, a heading that is not there" >&2
                rc=1
            fi
        done
    done
    if [ "$files" -eq 0 ]; then
        echo "check_docs: no .md files under $root" >&2
        exit 1
    fi
    [ "$rc" -eq 0 ] && echo "$files files, every link leads to a file and a heading"
    exit "$rc"
}
