#!/bin/sh
# check_calls.sh [ROOT]: fails when a file of src/ calls what only one place may call:
# the library's memory comes from base/memory.h, only the program's own room ends the
# process.
set -eu
root=${1:-$(cd "$(dirname "$0")/.." && pwd)}

cd "$root"
rc=0

# only PLACES FUNCTION... : the functions may be called under src/PLACES (an expression)
# alone
only() {
    place=$1
    shift
    for name in "$@"; do
        if grep -rnE --include='*.[ch]' "(^|[^A-Za-z0-9_>.])$name\(" src |
            sed 's|//.*$||' | grep -E "(^|[^A-Za-z0-9_>.])$name\(" |
            grep -vE "^src/($place)"; then
            echo "only src/$place may call $name" >&2
            rc=1
        fi
    done
}

only 'base/memory.c|cli/|report/' malloc calloc realloc strdup strndup aligned_alloc posix_memalign \
    asprintf vasprintf
only base/host_memory.c mmap mremap
only cli/ exit _exit quick_exit abort
[ "$rc" -eq 0 ] && echo "every call is where it may be"
exit "$rc"
