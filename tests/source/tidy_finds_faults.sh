#!/bin/sh
# tidy_finds_faults.sh TOOLS: does tidy.sh find faults, and only these? The analyzer has to
# know that tr_fail hands its status on.
set -u
tools=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM

write() {
    {
        printf '#include <tranche/status.h>\n#include <stdlib.h>\n'
        printf 'int f(int n, tr_error *err);\n'
        printf 'int f(int n, tr_error *err) {\n%s\n}\n' "$1"
    } >"$folder/f.c"
    sh "$tools/tidy.sh" "$folder/f.c" >"$folder/log" 2>&1
}

expect() {
    write "$2"
    status=$?
    [ "$status" -ne 77 ] || exit 77
    if [ "$status" -ne "$1" ]; then
        echo "status $status, expected $1, of: $2"
        cat "$folder/log"
        exit 1
    fi
}

alloc='int *p = malloc(sizeof *p);'
expect 0 "$alloc
    tr_status status = p ? TR_OK : tr_fail(err, TR_MEMORY, \"no memory\");
    if (status == TR_OK) { *p = n; }
    free(p);
    return (int)status;"
expect 1 "$alloc
    if (!p) { *p = n; }
    free(p);
    return !err;"
expect 1 "$alloc
    free(p);
    return err ? *p : n;"
expect 1 "return err && n == n;"
echo 'every fault is found'
