#!/bin/sh
# A program that was compiled for LLVM's OpenMP computes the same with the library as one
# of GCC's, whichever of the two OpenMPs is loaded first. Status 77 (skipped) where there
# is no clang, or it has no OpenMP.
# check_openmp.sh SOURCE_DIR FOLDER_OF_LIBRARY CC
set -eu
source=$1 lib=$2 cc=$3
clang=$(command -v clang || true)
omp=$(${clang:-false} -print-file-name=libomp.so 2>/dev/null || true)
for file in /usr/lib/llvm-*/lib/libomp.so; do
    [ -z "$clang" ] || [ -e "$omp" ] || omp=$file
done
if [ ! -e "$omp" ]; then
    echo "no clang with libomp is installed: two OpenMPs in one process are not tested"
    exit 77
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT INT TERM
cd "$dir"
LD_LIBRARY_PATH=$lib:$(dirname "$omp")
OMP_NUM_THREADS=2
OMP_WAIT_POLICY=passive
export LD_LIBRARY_PATH OMP_NUM_THREADS OMP_WAIT_POLICY

# built NAME COMPILER LIBRARIES...
built() {
    name=$1 compiler=$2
    shift 2
    for file in tests/install/openmp examples/classifier; do
        main=main
        [ "$file" = tests/install/openmp ] || main=train_classifier
        "$compiler" -std=c17 -O1 -fopenmp -Dmain="$main" -I"$source/include" \
            -c "$source/$file.c" -o "$(basename "$file").o"
    done
    "$compiler" openmp.o classifier.o -L"$lib" -Wl,--no-as-needed "$@" -o "$name"
}

built gcc "$cc" -ltranche -fopenmp
built library_first "$clang" -ltranche "$omp"
built openmp_first "$clang" "$omp" -ltranche
readelf -d openmp_first | grep -q 'NEEDED.*libomp' || {
    echo "the program does not load libomp"
    exit 1
}
./gcc >expected
grep -q '^step 80 ' expected
grep -q 'the sums agree' expected
for name in library_first openmp_first; do
    ./"$name" >log 2>&1 || {
        cat log
        echo "$name failed"
        exit 1
    }
    diff expected log || {
        echo "$name computes something else"
        exit 1
    }
done
