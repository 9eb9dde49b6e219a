#!/bin/sh
# check_backends.sh [ROOT]: fails when a file names a backend and is not part of one.
#
# Of a backend are src/backend, the files cpu* and cuda* of the ops (src/ops/optimizers/cpu_*,
# src/ops/*/*/cpu*) and src/base, which knows the machine. All else asks
# src/backend/backend.h, whose queues are in src/backend/queue.h and whose exchanges among
# devices in src/backend/peers.h, and what attention may be taken from in
# src/backend/attention.h; src/backend/host has the threads of the host that work
# beside any backend. It includes no other file of a
# backend, uses no OpenMP, and has no identifier with cpu, cuda, isa, omp, openmp, dnnl or
# avx among its words; include/tranche/extend/target.h lists the backends. Texts and comments may
# say what they like: run files have keys such as "device": "cpu".
set -eu
root=${1:-$(cd "$(dirname "$0")/.." && pwd)}

cd "$root"
find src include -name '*.[ch]' | LC_ALL=C sort |
    awk '
    function fail(text) {
        printf "%s:%d: %s\n    %s\n", file, line, text, whole
        failed = 1
    }
    # The line without texts and comments.
    function code(text,   out, c, i, inside) {
        out = ""
        inside = ""
        for (i = 1; i <= length(text); i++) {
            c = substr(text, i, 1)
            if (inside != "") {
                if (c == "\\") i++
                else if (c == inside) inside = ""
            } else if (c == "\"" || c == "\047") {
                inside = c
            } else if (c == "/" && substr(text, i + 1, 1) == "/") {
                break
            } else {
                out = out c
            }
        }
        return out
    }
    function check_include(path) {
        if (path == "backend/backend.h" || path == "backend/queue.h" ||
            path == "backend/peers.h" || path == "backend/attention.h" ||
            path ~ /^backend\/host\//)
            return
        if (path ~ /^backend\// || path ~ /^ops\/[a-z]+\/(cpu|cuda)_/ ||
            path ~ /^ops\/[a-z]+\/[^\/]*\/(cpu|cuda)/)
            fail("of a backend only backend/backend.h may be included")
        if (path == "omp.h" || path ~ /^oneapi\//)
            fail("a library of a backend; base/parallel.h shares work among threads")
    }
    function check_words(text,   word) {
        while (match(text, /[A-Za-z_][A-Za-z_0-9]*/)) {
            word = substr(text, RSTART, RLENGTH)
            text = substr(text, RSTART + RLENGTH)
            if (tolower(word) ~ words && file != "include/tranche/extend/target.h")
                fail("\"" word "\" names a backend")
        }
    }
    BEGIN {
        words = "(^|_)(cpus?|cuda|isas?|omp|openmp|dnnl|avx[0-9a-z]*)(_|$)"
    }
    {
        file = $0
        files++
        # A backend itself, but for the door to all of them.
        if (file ~ /^src\/base\// || file ~ /^src\/ops\/[a-z]+\/(cpu|cuda)_/ ||
            file ~ /^src\/ops\/[a-z]+\/[^\/]*\/(cpu|cuda)/ ||
            (file ~ /^src\/backend\// && file != "src/backend/backend.h"))
            next
        line = 0
        while ((getline whole < file) > 0) {
            line++
            if (match(whole, /^[ \t]*#[ \t]*include[ \t]*["<]/)) {
                path = substr(whole, RSTART + RLENGTH)
                sub(/[">].*$/, "", path)
                check_include(path)
            } else {
                check_words(code(whole))
            }
        }
        close(file)
    }
    END {
        if (files == 0) {
            print "check_backends: no sources" > "/dev/stderr"
            exit 1
        }
        if (!failed)
            print files " files, none outside of a backend names one"
        exit failed
    }'
