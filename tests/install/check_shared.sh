#!/bin/sh
# Programs in C and C++ that know the public headers and the shared library alone: the
# example trains, and <tranche.h> says the version that the library has.
# check_shared.sh SOURCE_DIR FOLDER_OF_LIBRARY CC CXX
set -eu
source=$1 lib=$2 cc=$3 cxx=$4
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT INT TERM
cat >"$dir/version.c" <<'CODE'
#include <tranche.h>

#include <stdio.h>
#include <string.h>

#if TRANCHE_VERSION_NUMBER < 1000
#error "TRANCHE_VERSION_NUMBER"
#endif

int main() {
    puts(tr_version());
    return strcmp(tr_version(), TRANCHE_VERSION) != 0 ||
           tr_version_number() != TRANCHE_VERSION_NUMBER;
}
CODE
cp "$dir/version.c" "$dir/version.cpp"
LD_LIBRARY_PATH=$lib
export LD_LIBRARY_PATH
cd "$dir"
"$cc" -std=c17 -I"$source/include" version.c -L"$lib" -ltranche -o c
"$cxx" -std=c++11 -I"$source/include" version.cpp -L"$lib" -ltranche -o cpp
./c
./cpp
"$cc" -std=c17 -I"$source/include" "$source/examples/classifier.c" -L"$lib" -ltranche \
    -o classifier
./classifier >log || {
    cat log
    exit 1
}
grep -q '^step 80 ' log
