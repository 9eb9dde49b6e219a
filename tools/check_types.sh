#!/bin/sh
# check_types.sh [ROOT]: fails when a type's name (tr_...) is defined twice in src/ and
# include/, so that a reader who looks for a name finds one type; and at a line of dashes
# that a formatter has cut off a section's name.
set -eu
root=${1:-$(cd "$(dirname "$0")/.." && pwd)}
cd "$root"
find src include -name '*.[ch]' | LC_ALL=C sort | xargs awk '
    function define(name) {
        if (name !~ /^tr_/ || (FILENAME, name) in here) return
        here[FILENAME, name] = 1
        if (name in place) {
            print name " is defined in " place[name] " and in " FILENAME ":" FNR
            failed = 1
        } else {
            place[name] = FILENAME ":" FNR
            count++
        }
    }
    { line = $0; sub(/^[ \t]*/, "", line); sub(/^typedef /, "", line) }
    line ~ /^(struct|enum|union) [a-z0-9_]+ \{/ { split(line, word, " "); define(word[2]) }
    /^\} tr_[a-z0-9_]+;/ { sub(/;.*/, "", line); define(substr(line, 3)) }
    /^typedef / && !/^typedef (struct|enum|union) / {
        if (match($0, /\(\*tr_[a-z0-9_]+\)\(/)) define(substr($0, RSTART + 2, RLENGTH - 4))
        else if (match($0, / tr_[a-z0-9_]+;/)) define(substr($0, RSTART + 1, RLENGTH - 2))
    }
    /^\/\/ -----+$/ { print FILENAME ":" FNR ": half of a broken ruler: write // ---- name"; failed = 1 }
    END {
        if (!count) { print "check_types: no types"; failed = 1 }
        if (!failed) print count " types, each defined once"
        exit failed
    }'
