#!/bin/sh
# Programs in C and C++ that know the public headers and the shared library alone: the
# examples are built, those of C and C++ train, and <tranche.h> says the version that the
# library has.
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
# Does the program's output have this line?
trains() {
    "./$1" >log || {
        cat log
        exit 1
    }
    grep -q "$2" log
}

# A whole program in C++, and the examples in both languages.
"$cxx" -std=c++11 -Wall -Wextra -Werror -I"$source/include" \
    "$source/tests/install/program.cpp" -L"$lib" -ltranche -o program
./program
for name in ledger own_model ask; do
    "$cc" -std=c17 -I"$source/include" "$source/examples/$name.c" -L"$lib" -ltranche \
        -o "$name"
done
./ledger "$source/examples/classifier.json" | grep -q parameters
"$cc" -std=c17 -I"$source/include" "$source/examples/classifier.c" -L"$lib" -ltranche \
    -o classifier
trains classifier '^step 80 '
cp log of_c
for name in classifier ledger own_model ask; do
    "$cxx" -std=c++11 -Wall -Wextra -Werror -I"$source/include" \
        "$source/examples/cpp/$name.cpp" -L"$lib" -ltranche -o "$name"
done
./ledger "$source/examples/classifier.json" | grep -q parameters
trains own_model '^step 400'
trains classifier '^step 80 '
diff of_c log # the same run
