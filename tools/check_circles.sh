#!/bin/sh
# check_circles.sh OBJECTS: fails when a file of src/ calls one of a room above its own,
# or when files of one room call each other in a circle. OBJECTS lists the library's
# object files, one a line; a call is a symbol that one defines and another needs. So it
# also sees what check_layers.sh cannot: functions whose header is not named for the file
# that they are in.
set -eu
objects=$1
rooms=$(cat "$(dirname "$0")/rooms.txt")

missing=$(while IFS= read -r object; do [ -e "$object" ] || echo "$object"; done <"$objects")
if [ -n "$missing" ]; then
    echo "check_circles: build the library first: there is no" $missing >&2
    exit 1
fi
# "FILE.o:ADDRESS TYPE SYMBOL"; what the build makes itself (lists) is not in src/.
xargs -d '\n' nm -A -g <"$objects" | awk -v rooms="$rooms" '
    function room(file,   part) {
        split(file, part, "/")
        return (part[1] "/" part[2]) in level ? part[1] "/" part[2] : part[1]
    }
    BEGIN {
        lines = split(rooms, row, "\n")
        for (i = 1; i <= lines; i++) {
            count = split(row[i], name, " ")
            for (j = 1; j <= count; j++) level[name[j]] = i
        }
    }
    !/\/src\/.*\.o:/ { next }
    {
        file = $1
        sub(/\.c\.o:.*$/, "", file)
        sub(/^.*\/src\//, "", file)
        files[file] = 1
    }
    $(NF - 1) ~ /^[TDRBVW]$/ { home[$NF] = file; next }
    $(NF - 1) == "U" { needs[file, $NF] = 1 }
    END {
        for (pair in needs) {
            split(pair, part, SUBSEP)
            from = part[1]
            to = home[part[2]]
            if (to == "" || to == from || !(room(from) in level)) continue
            if (room(from) != room(to)) {
                if (level[room(to)] >= level[room(from)]) {
                    print from " calls " part[2] " of " to ", which is not below it"
                    failed = 1
                }
                continue
            }
            calls[from, to] = part[2]
        }
        # Files that call nobody of what is left, or whom nobody calls, are in no circle.
        do {
            gone = 0
            split("", out)
            split("", in_)
            for (pair in calls) {
                split(pair, part, SUBSEP)
                out[part[1]] = in_[part[2]] = 1
            }
            for (pair in calls) {
                split(pair, part, SUBSEP)
                if (!(part[2] in out) || !(part[1] in in_)) {
                    delete calls[pair]
                    gone = 1
                }
            }
        } while (gone)
        for (pair in calls) {
            split(pair, part, SUBSEP)
            print "in a circle: " part[1] " calls " calls[pair] " of " part[2]
            failed = 1
        }
        for (file in files) total++
        if (total == 0) {
            print "check_circles: no objects"
            failed = 1
        }
        if (!failed) print total " files: no call goes up, none is in a circle"
        exit failed
    }'
