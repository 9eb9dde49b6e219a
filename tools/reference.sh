#!/bin/sh
# reference.sh [ROOT]: docs/library-reference.md, made of the stable headers: what each
# of them says, and the declarations that it says it of. It fails where a function that
# returns a status does not say its errors, or one that gives an object not whose that
# is.
set -eu
cd "${1:-$(dirname "$0")/..}"
cat <<'TEXT'
# The library, function by function

`sh tools/reference.sh >docs/library-reference.md` makes this page of the stable headers in
[include/tranche](../include/tranche); [library.md](library.md) shows how the functions go
together. What holds everywhere is said there once: a `NULL` for an object or a place that
has to be given is `TR_USAGE`, of functions without a status 0, `false` or `NULL`; an
argument `err` may be `NULL`. A function that is collective says so: all ranks call it, in
the same order. What is not said to be an engine's, which has its own rule, may be called
from any thread, for one object one thread at a time.
TEXT
rc=0
for name in status types run plan data model engine check sample checkpoint comm version; do
    awk -v header="$name" '
    function flush_text(    i) {
        if (text == "") return
        print "\n" text
        text = ""
    }
    # A group: comment lines, then code.
    function end_group() {
        if (code != "") {
            check(comment, code)
            if (comment != "") print "\n" comment
            print "\n```c\n" code "```"
        } else if (comment != "") {
            if (comment ~ /^---- /) {
                title = comment
                sub(/^---- /, "", title)
                rest = ""
                if (split(title, parts, "\n\n") > 1) {
                    rest = substr(title, length(parts[1]) + 3)
                    title = parts[1]
                }
                gsub(/\n/, " ", title)
                print "\n### " toupper(substr(title, 1, 1)) substr(title, 2)
                if (rest != "") print "\n" rest
            } else {
                print "\n" comment
            }
        }
        comment = code = ""
        depth = 0
    }
    function fault(what) {
        print "reference: include/tranche/" header ".h: " what >"/dev/stderr"
        faults = 1
    }
    function check(said, declared,    all, name) {
        if (declared !~ /TR_API/) return
        all = said declared
        name = declared
        sub(/^.*TR_API [^(]*[ *]/, "", name)
        sub(/\(.*/, "", name)
        if (said == "" && declared !~ /\/\/ /) fault(name ": nothing is said of it")
        if (declared ~ /TR_API tr_status tr_/ && declared !~ /tr_status_|tr_fail/ &&
            all !~ /TR_[A-Z]|[Ee]rror/) fault(name ": its errors are not said")
        if (declared ~ /\*\*out/ &&
            all !~ /destroy|own|close|same with|Joins/) fault(name ": whose *out is, is not said")
    }
    BEGIN { print "\n## tranche/" header ".h" }
    /^#(ifndef|define) TRANCHE_[A-Z_]*_H$/ || /^#include/ || /^#ifdef __cplusplus/ { next }
    depth == 0 && (/^extern "C"/ || /^#if defined|^#undef|^#endif|^#else|^#ifndef/) { next }
    /^}$/ && depth == 0 { next }
    /^$/ && depth == 0 { end_group(); next }
    /^\/\// && depth == 0 {
        if (code != "") end_group()
        line = $0
        sub(/^\/\/ ?/, "", line)
        comment = comment (comment == "" ? "" : "\n") line
        next
    }
    {
        code = code $0 "\n"
        opened = gsub(/{/, "{")
        closed = gsub(/}/, "}")
        depth += opened - closed
    }
    END { end_group(); exit faults }' "include/tranche/$name.h" || rc=1
done
exit "$rc"
