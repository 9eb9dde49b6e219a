#!/bin/sh
# check_layers.sh [ROOT]: fails when a file of src/ includes something of a room above its
# own, or includes by anything but "room/file.h" and <tranche/file.h>.
#
# rooms.txt lists the rooms from the lowest to the highest. A room inside of another
# (data/text) has a place of its own. Those on one line are neighbours: they do not know
# each other. Those of the program include each other and
# public headers alone, and the stable ones of these know nothing of tranche/extend.
set -eu
root=${1:-$(cd "$(dirname "$0")/.." && pwd)}

ROOMS=$(cat "$(dirname "$0")/rooms.txt")

cd "$root"
find src include -name '*.[ch]' | LC_ALL=C sort | {
    rc=0
    files=0
    while IFS= read -r file; do
        files=$((files + 1))
        awk -v rooms="$ROOMS" -v file="$file" '
        function fail(text) {
            printf "%s:%d: %s\n    %s\n", file, FNR, text, $0
            failed = 1
        }
        function exists(path,   line, rc) {
            rc = (getline line < path)
            close(path)
            return rc >= 0
        }
        # The room of a file or header: "data/text" where the list has it, else "data".
        function room(path,   part) {
            split(path, part, "/")
            return (part[1] "/" part[2]) in level ? part[1] "/" part[2] : part[1]
        }
        BEGIN {
            levels = split(rooms, row, "\n")
            for (i = 1; i <= levels; i++) {
                count = split(row[i], name, " ")
                for (j = 1; j <= count; j++) level[name[j]] = i
            }
            split(file, part, "/")
            program["report"] = program["cli"] = 1
            public = part[1] == "include"
            own = public ? part[2] : room(substr(file, 5))
            if (!public && !(own in level)) {
                printf "%s: no room is called \"%s\"\n", file, own
                failed = 1
            }
        }
        /^[ \t]*#[ \t]*include/ {
            rest = $0
            sub(/^[ \t]*#[ \t]*include[ \t]*/, "", rest)
            mark = substr(rest, 1, 1)
            path = substr(rest, 2)
            sub(/[">].*$/, "", path)
            split(path, step, "/")
            if (mark == "\"") {
                other = room(path)
                if (public)
                    fail("a public header includes only public ones, as <tranche/...>")
                else if (!(other in level) || path !~ /\//)
                    fail("write \"room/file.h\"")
                else if (!exists("src/" path))
                    fail("src/" path " is not there")
                else if (own in program && !(other in program))
                    fail("the program knows the public headers of the library alone")
                else if (other != own && level[other] >= level[own])
                    fail(own " is not above " other)
            } else if (mark == "<") {
                if (step[1] == "tranche" && !exists("include/" path))
                    fail("include/" path " is not there")
                else if (public && part[3] != "extend" && step[2] == "extend")
                    fail("a stable header includes one that may change")
                else if (room(path) in level && exists("src/" path))
                    fail("a header of ours in angle brackets")
            } else {
                fail("an include by a macro cannot be checked")
            }
        }
        END { exit failed ? 1 : 0 }' "$file" || rc=1
    done
    if [ "$files" -eq 0 ]; then
        echo "check_layers: no sources under $root" >&2
        exit 1
    fi
    [ "$rc" -eq 0 ] && echo "$files files, no include goes up"
    exit "$rc"
}
