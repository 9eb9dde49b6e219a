#!/bin/sh
# check_headers.sh [ROOT]: fails when a header does not compile alone, as C17; public
# headers also as strict C17 and as C++. CC and CXX name the compilers; without a C++
# compiler the check ends with status 77 (skipped) once the rest has passed.
set -eu
root=${1:-$(cd "$(dirname "$0")/.." && pwd)}
cc=${CC:-cc}
cxx=${CXX:-c++}
warnings='-Wall -Wextra -Werror'

cd "$root"
rc=0
count=0

# compiles COMPILER ARGUMENTS... : the header $header, included twice, is a whole file
compiles() {
    printf '#include "%s"\n#include "%s"\nextern int tr_alone;\n' "$header" "$header" |
        "$@" -fsyntax-only $warnings -Iinclude -Isrc - || {
        echo "$header does not compile alone: $*" >&2
        rc=1
    }
}

libraries=$(pkg-config --cflags jansson libxxhash libpcre2-8 2>/dev/null || true)
mpi=$(pkg-config --cflags mpi 2>/dev/null || pkg-config --cflags mpich 2>/dev/null || true)
libraries="$libraries $mpi"
# Without MPI, what is over it cannot be compiled.
headers=$(cd src && find . -name '*.h' | sed 's|^\./||' | LC_ALL=C sort)
printf '#include <mpi.h>\n' | "$cc" -x c $libraries -fsyntax-only - 2>/dev/null ||
    headers=$(echo "$headers" | grep -v '^comm/mpi_')
for header in $headers; do
    count=$((count + 1))
    # Kernel files are compiled with the name of their instruction set.
    compiles "$cc" -x c -std=gnu17 -D_GNU_SOURCE -DTR_ISA_SUFFIX=generic -fopenmp \
        -Wno-unused-function -Wno-psabi $libraries
done

# Programs on the library are strict C as well.
for example in examples/*.c; do
    [ -f "$example" ] || continue
    "$cc" -std=c17 -fsyntax-only -Wpedantic $warnings -Iinclude "$example" || {
        echo "$example is not strict C17" >&2
        rc=1
    }
done

plain=0
command -v "$cxx" >/dev/null 2>&1 || plain=1
for header in $(cd include && find . -name '*.h' | sed 's|^\./||' | LC_ALL=C sort); do
    count=$((count + 1))
    compiles "$cc" -x c -std=c17 -pedantic-errors
    [ "$plain" -eq 1 ] || compiles "$cxx" -x c++ -std=c++11
done

if [ "$count" -eq 0 ]; then
    echo "check_headers: no headers under $root" >&2
    exit 1
fi
[ "$rc" -eq 0 ] || exit 1
echo "$count headers compile alone"
if [ "$plain" -eq 1 ]; then
    echo "no C++ compiler ($cxx): public headers were not tried as C++" >&2
    exit 77
fi
