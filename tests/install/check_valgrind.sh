#!/bin/sh
# A program that trains and destroys what it was given leaves no byte of the library's,
# and reads and writes nothing that is not its own. Valgrind knows no AVX-512: kernels
# are held to SSE 4.1. Status 77 (skipped) where there is no valgrind.
# check_valgrind.sh SOURCE_DIR FOLDER_OF_LIBRARY CC
set -eu
source=$1 lib=$2 cc=$3
if ! command -v valgrind >/dev/null 2>&1; then
    echo "valgrind is not installed: whether bytes are left behind is not tested"
    exit 77
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT INT TERM
cd "$dir"
cat >leaves.c <<'CODE'
#include <tranche.h>

int main(void) {
    tr_run *run = 0;
    return tr_run_create(&run, 0) != TR_OK;
}
CODE
LD_LIBRARY_PATH=$lib
DNNL_MAX_CPU_ISA=SSE41
OMP_NUM_THREADS=2
export LD_LIBRARY_PATH DNNL_MAX_CPU_ISA OMP_NUM_THREADS

# watched PROGRAM: its output, and what valgrind says, in log; status 9: there is a leak
watched() {
    valgrind --leak-check=full --show-leak-kinds=all --errors-for-leak-kinds=all \
        --error-exitcode=9 --suppressions="$source/tests/install/valgrind.supp" \
        "./$1" >log 2>&1
}

"$cc" -std=c17 -g -I"$source/include" leaves.c -L"$lib" -ltranche -o leaves
status=0
watched leaves || status=$?
if [ "$status" -ne 9 ] || ! grep -q "definitely lost: [1-9]" log; then
    cat log
    echo "a run that is not destroyed was not found"
    exit 1
fi
"$cc" -std=c17 -g -I"$source/include" "$source/examples/classifier.c" -L"$lib" \
    -ltranche -o classifier
if ! watched classifier || ! grep -q '^step 80 ' log; then
    cat log
    exit 1
fi
