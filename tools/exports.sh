#!/bin/sh
# exports.sh [ROOT]: the functions that the public headers declare as exported (TR_API),
# sorted: what cmake/exports.txt is made of.
set -eu
cd "${1:-$(dirname "$0")/..}"
cat include/tranche.h include/tranche/*.h include/tranche/extend/*.h | sed 's|//.*$||' | tr '\n' ' ' | tr ';{}' '\n\n\n' |
    sed -n 's/.*\bTR_API [^(]*\b\(tr_[a-z0-9_]*\)(.*/\1/p' | LC_ALL=C sort -u
