#!/bin/sh
# check_docs.sh [ROOT]: fails when a link of a .md file leads to a file or to a heading of
# one that is not there, when a line of one is longer than 120 columns (rows of tables
# cannot be broken, so they may be), or when one names a command of tranche, or an option
# behind it, that src/cli does not have.
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

# The commands that a file names, each with its options in a line: "plan --json". A line
# that ends with a backslash goes on.
# What `python -m tranche` has beside the program is the Python package's.
commands() {
    sed -e 's/python -m tranche \(launch\|follow\|from-deepspeed\)//g' -e ':more' -e '/\\$/{N;s/\\\n//;b more' -e '}' "$1" |
        grep -oE "(^|[^-a-zA-Z0-9_/.])tranche [a-z]+[^\`|;)]*" |
        sed -E "s/^.*tranche ([a-z]+)/\1/; s/  +[a-z].*//" | awk '{
            line = $1
            for (i = 2; i <= NF; i++) {
                if ($i ~ /^\[?--[a-z]/) {
                    sub(/^\[/, "", $i)
                    sub(/[^-a-z0-9].*$/, "", $i)
                    line = line " " $i
                }
            }
            print line
        }'
}

# has WORD COMMAND: is the option one of the command's? Its files are named after it; what
# all commands have is in options.c and main.c.
has() {
    cat src/cli/"$2".c src/cli/"$2"_*.c src/cli/options.c src/cli/main.c 2>/dev/null |
        grep -qF -e "\"$1\""
}

check_commands() {
    good=0
    [ -f src/cli/main.c ] || return 0
    commands "$1" | LC_ALL=C sort -u >"$list"
    while read -r command options; do
        if ! grep -qF "{\"$command\", " src/cli/main.c; then
            echo "$1: tranche $command: there is no such command" >&2
            good=1
            continue
        fi
        for option in $options; do
            if ! has "$option" "$command"; then
                echo "$1: tranche $command $option: there is no such option" >&2
                good=1
            fi
        done
    done <"$list"
    return "$good"
}

cd "$root"
list=$(mktemp)
trap 'rm -f "$list"' EXIT
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
        check_commands "$file" || rc=1
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
