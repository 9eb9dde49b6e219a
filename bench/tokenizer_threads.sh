#!/bin/sh
# tokenizer_threads.sh TOKENIZER FILE...: MB/s of `tranche tokenize` with 1, 2, 4, ... threads
# up to the cores, the fastest of five runs each, by the clock on the wall; and that the
# ids are the same. Reading the tokenizer does not count. On a machine that does other
# work, threads get less than a core each: the load is printed beside.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
program=${TRANCHE:-$here/../build/tranche}
tokenizer=$1
shift
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# "12 tokens from 3 MiB (2.3 bytes a token, 86.0 MB/s)"
measure() {
    threads=$1
    shift
    for _ in 1 2 3 4 5; do
        "$program" tokenize --tokenizer "$tokenizer" --threads "$threads" "$@" \
            2>/dev/null | sed 's/.*, \([0-9.]*\) MB\/s.*/\1/'
    done | sort -n | tail -n 1
}

cores=$(nproc)
echo "threads  MB/s   load"
threads=1
while [ "$threads" -le "$cores" ]; do
    best=$(measure "$threads" "$@")
    printf '%-8s %-6s %s\n' "$threads" "$best" "$(cut -d ' ' -f 1 /proc/loadavg)"
    "$program" tokenize --tokenizer "$tokenizer" --threads "$threads" "$@" \
        --out "$out/$threads" >/dev/null
    cmp "$out/1" "$out/$threads"
    threads=$((threads * 2))
done
