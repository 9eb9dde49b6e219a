#!/bin/sh
# abi.sh [ROOT] [CC]: the interface that programs are compiled for, as libabigail's abidw
# writes it: the types of all functions that the stable headers declare, and with them
# the layout of every struct and the numbers of every enum that these hand over. It is
# what cmake/exports.abi is made of. (The names that the library exports are compared by
# check_exports.sh. Of the library itself abidw would tell the insides, too.)
set -eu
root=$(cd "${1:-$(dirname "$0")/..}" && pwd)
cc=${2:-cc}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT INT TERM
cd "$dir"
{
    echo '#include <tranche.h>'
    cat "$root"/include/tranche/*.h | sed 's|//.*$||' | tr '\n' ' ' | tr ';{}' '\n\n\n' |
        sed -n 's/.*\bTR_API [^(]*\b\(tr_[a-z0-9_]*\)(.*/\1/p' | LC_ALL=C sort -u |
        sed 's/.*/#undef &\n__typeof__(\&&) of_&;/'
} >interface.c
"$cc" -std=gnu17 -g -shared -fPIC -I"$root/include" interface.c -o interface.so
abidw --no-corpus-path --no-comp-dir-path --no-show-locs interface.so |
    sed "s| path='[^']*'||; s| language='[^']*'||"
