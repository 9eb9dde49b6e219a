#!/bin/sh
# The checks of the sources find what they look for: each is shown a small tree with one
# fault, and the same tree without it. Argument: the folder of the checks.
set -eu
tools=$1
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT INT TERM
rc=0

fresh() {
    rm -rf "$tree/src" "$tree/include"
    mkdir -p "$tree/src/base" "$tree/src/plan" "$tree/src/exec" "$tree/src/sim" \
        "$tree/include/tranche"
    printf '#ifndef A_H\n#define A_H\nint tr__a(void);\n#endif\n' >"$tree/src/base/a.h"
    printf '#ifndef B_H\n#define B_H\n#include <stdint.h>\nint64_t tr__b(void);\n#endif\n' \
        >"$tree/src/plan/b.h"
    cp "$tree/src/base/a.h" "$tree/src/exec/e.h"
    printf '#ifndef C_H\n#define C_H\nint tr_c(void);\n#endif\n' \
        >"$tree/include/tranche/c.h"
    printf '#include "base/a.h"\n#include "plan/b.h"\n#include <tranche/c.h>\n' \
        >"$tree/src/plan/b.c"
}

# expect WANTED NAME CHECK [ARGUMENT]: the check's status is zero (good) or not (bad)
expect() {
    wanted=$1 name=$2
    shift 2
    got=good
    "$@" "$tree" >"$tree/output" 2>&1 || got=bad
    if [ "$got" != "$wanted" ]; then
        echo "$name: $got, wanted $wanted"
        cat "$tree/output"
        rc=1
    fi
}

# Objects of base, run and train: two files of run that call each other, or not; and base
# calling train, or not. Argument: what a file of run, then one of base, calls.
objects() {
    rm -rf "$tree/objects"
    for file in base/a run/b run/c train/d; do
        mkdir -p "$tree/objects/src/${file%/*}"
    done
    compile() { # FILE CALLED
        printf 'void %s(void);\nvoid of_%s(void);\nvoid of_%s(void) { %s(); }\n' "$2" \
            "${1#*/}" "${1#*/}" "$2" | "${CC:-cc}" -x c -c -o "$tree/objects/src/$1.c.o" -
        echo "$tree/objects/src/$1.c.o" >>"$tree/objects/list"
    }
    compile base/a "$2"
    compile run/b of_c
    compile run/c "$1"
    compile train/d of_b
}
# The check of the objects, for the rooms of the small tree: none of them has a circle.
circles() {
    sed "s/^CIRCLES=.*/CIRCLES=''/" "$tools/check_circles.sh" >"$tree/check_circles.sh"
    cp "$tools/rooms.txt" "$tree"
    sh "$tree/check_circles.sh" "$1/objects/list"
}
objects exit exit
expect good 'files that call each other in one direction' circles
objects of_b exit
expect bad 'two files of run that call each other' circles
objects exit of_d
expect bad 'base calls train' circles

types=$tools/check_types.sh
fresh
printf 'typedef struct tr_x {\n    int a;\n} tr_x;\n' >"$tree/src/base/x.h"
printf 'typedef struct tr_x tr_x;\n' >"$tree/include/tranche/x.h"
expect good 'a type defined once' "$types"
printf 'typedef int (*tr_x)(void);\n' >"$tree/src/plan/x.c"
expect bad 'a type defined twice' "$types"

layers=$tools/check_layers.sh
fresh
expect good 'a clean tree' "$layers"
echo '#include "plan/b.h"' >>"$tree/src/base/a.h"
expect bad 'base includes plan' "$layers"
fresh
echo '#include "exec/e.h"' >"$tree/src/sim/s.c"
expect bad 'sim includes its neighbour exec' "$layers"
fresh
echo '#  include "a.h"' >"$tree/src/base/a.c"
expect bad 'an include without its room' "$layers"
fresh
echo '#include "base/gone.h"' >"$tree/src/base/a.c"
expect bad 'an include of nothing' "$layers"
fresh
echo '#include "base/a.h"' >>"$tree/include/tranche/c.h"
expect bad 'a public header includes an internal one' "$layers"
fresh
echo '#include <base/a.h>' >"$tree/src/base/a.c"
expect bad 'a header of ours in angle brackets' "$layers"
fresh
mkdir "$tree/src/attic"
echo '#include "base/a.h"' >"$tree/src/attic/x.c"
expect bad 'a room that is not on the list' "$layers"
fresh
mkdir "$tree/include/tranche/extend"
echo '#include <tranche/c.h>' >"$tree/include/tranche/extend/e.h"
expect good 'an extending header includes a stable one' "$layers"
echo '#include <tranche/extend/e.h>' >>"$tree/include/tranche/c.h"
expect bad 'a stable header includes one that may change' "$layers"
fresh
mkdir "$tree/src/cli" "$tree/src/report"
cp "$tree/src/base/a.h" "$tree/src/report/r.h"
printf '#include "report/r.h"\n#include <tranche/c.h>\n' >"$tree/src/cli/p.c"
expect good 'the program includes public headers and its own' "$layers"
echo '#include "base/a.h"' >>"$tree/src/cli/p.c"
expect bad 'the program includes an internal header' "$layers"
fresh
mkdir "$tree/src/report"
echo '#include "plan/b.h"' >"$tree/src/report/r.c"
expect bad 'what draws for the program includes an internal header' "$layers"
rm -rf "$tree/src"
mkdir "$tree/src"
rm "$tree/include/tranche/c.h"
expect bad 'an empty tree' "$layers"

headers=$tools/check_headers.sh
if command -v "${CXX:-c++}" >/dev/null 2>&1; then
    fresh
    expect good 'clean headers' "$headers"
    fresh
    echo 'int tr_d(int class);' >>"$tree/include/tranche/c.h"
    expect bad 'a public header that is not C++' "$headers"
fi
fresh
echo 'uint64_t tr__c(void);' >"$tree/src/base/a.h"
expect bad 'a header that needs another' "$headers"
fresh
echo 'struct tr_twice { int x; };' >"$tree/src/base/a.h"
expect bad 'a header that cannot be included twice' "$headers"

sizes=$tools/check_sizes.sh
# long LINES: a function of that many lines, its signature over two of them
long() {
    echo 'int tr__long(int a,'
    echo '             int b) {'
    seq $(($1 - 3)) | sed 's/.*/    a += b;/'
    echo '}'
}
fresh
{ long 100; echo 'int after;'; long 100; } >"$tree/src/base/a.c"
expect good 'functions of 100 lines' "$sizes"
long 101 >"$tree/src/base/a.c"
expect bad 'a function of 101 lines' "$sizes"
seq 500 | sed 's|.*|// &|' >"$tree/src/base/a.c"
expect good 'a file of 500 lines' "$sizes"
echo >>"$tree/src/base/a.c"
expect bad 'a file of 501 lines' "$sizes"
sed -i '1s|.*|// Longer than 500 lines: one table.|' "$tree/src/base/a.c"
expect good 'a long file that says why' "$sizes"
echo >"$tree/src/base/a.c"
mkdir -p "$tree/tests"
seq 800 | sed 's|.*|// &|' >"$tree/tests/a.c"
expect good 'a test of 800 lines' "$sizes"
echo >>"$tree/tests/a.c"
expect bad 'a test of 801 lines' "$sizes"
rm -r "$tree/tests"
printf '__attribute__((format(printf, 1, 2))) static inline void\n%s\n%s\n}\n' \
    'tr__many(int a, int (*b)(int, int), int c, int d, int e,' \
    '         int f, int g, int h[2]) { // i, j' >"$tree/src/base/a.c"
expect good 'a function of 8 parameters' "$sizes"
sed -i 's/ int f,/ int f, int i,/' "$tree/src/base/a.c"
expect bad 'a function of 9 parameters' "$sizes"

calls=$tools/check_calls.sh
fresh
echo 'int x = tr__calloc(1) + p->exit(2); // malloc() is elsewhere' >"$tree/src/base/a.c"
expect good 'calls by other names' "$calls"
echo 'void f(void) { char *p = malloc(3); }' >"$tree/src/base/a.c"
expect bad 'malloc' "$calls"
echo 'void f(void) { exit(3); }' >"$tree/src/base/a.c"
expect bad 'exit' "$calls"
echo 'void f(void) { abort(); }' >"$tree/src/base/a.c"
expect bad 'abort' "$calls"

backends=$tools/check_backends.sh
fresh
mkdir -p "$tree/src/backend/cpu" "$tree/src/ops/nn/relu" "$tree/src/ops/optimizers"
printf '#include "backend/cpu/x.h"\n#pragma omp parallel\nint tr__cpu_isa(void);\n' \
    >"$tree/src/ops/nn/relu/cpu.c"
cp "$tree/src/ops/nn/relu/cpu.c" "$tree/src/ops/optimizers/cpu_blocks.h"
cp "$tree/src/ops/nn/relu/cpu.c" "$tree/src/backend/cpu/x.c"
cp "$tree/src/ops/nn/relu/cpu.c" "$tree/src/base/parallel.c"
printf '#include "backend/backend.h"\nint computes = 1; // omp\nchar *key = "cpu";\n' \
    >"$tree/src/plan/b.c"
expect good 'backends in their places' "$backends"
# bad_line FILE LINE NAME: the line at the end of that file is a fault
bad_line() {
    cp "$tree/$1" "$tree/kept"
    echo "$2" >>"$tree/$1"
    expect bad "$3" "$backends"
    mv "$tree/kept" "$tree/$1"
}
bad_line src/plan/b.h '#include "backend/cpu/x.h"' 'plan includes a backend'
bad_line src/plan/b.h '#include "ops/optimizers/cpu_blocks.h"' 'plan includes kernels of all ops'
bad_line src/plan/b.h '#include "ops/nn/relu/cpu_relu.h"' 'plan includes kernels of an op'
bad_line src/exec/e.h '#include <omp.h>' 'exec includes OpenMP'
bad_line src/exec/e.h '#pragma omp parallel' 'a region of OpenMP'
bad_line src/plan/b.c 'int isa;' 'a variable isa'
bad_line include/tranche/c.h 'int tr_cpu_count(void);' 'a public function of the CPU'

docs=$tools/check_docs.sh
fresh
printf 'See [the plan](docs/plan.md#a-words-use) and [elsewhere](https://example.org/x).\n' \
    >"$tree/README.md"
mkdir -p "$tree/docs"
printf "Back to [the start](../README.md) or [here](#twice-1).\n## A word's use\n" \
    >"$tree/docs/plan.md"
printf '# Twice\n# Twice\n' >>"$tree/docs/plan.md"
expect good 'links that lead somewhere' "$docs"
echo 'See [less](docs/plan.md#words).' >>"$tree/README.md"
expect bad 'a link to a heading that is not there' "$docs"
sed -i '$d' "$tree/README.md"
echo 'See [here](#words).' >>"$tree/README.md"
expect bad 'a link to a heading of its own that is not there' "$docs"
sed -i '$d' "$tree/README.md"
expect good 'links to headings' "$docs"
echo 'See [nothing](plan.md).' >>"$tree/README.md"
expect bad 'a link that leads nowhere' "$docs"
printf '%120s\n' x >"$tree/README.md"
printf '| %200s |\n' x >>"$tree/README.md"
expect good 'a line of 120 columns and a wide table' "$docs"
printf '%121s\n' x >"$tree/README.md"
expect bad 'a line of 121 columns' "$docs"
mkdir -p "$tree/src/cli"
echo '    {"plan", "RUN.json", "Prints it."},' >"$tree/src/cli/main.c"
echo '    {"--json", 1},' >"$tree/src/cli/plan.c"
echo '    {"--out", 1},' >"$tree/src/cli/plot.c"
echo 'Run `tranche plan x.json --json` or `mpirun --bind-to none tranche plan`.' \
    >"$tree/README.md"
expect good 'commands and options that are there' "$docs"
echo 'Run `tranche prune x.json`.' >"$tree/README.md"
expect bad 'a command that is not there' "$docs"
printf '    tranche plan x.json \\\n        --out y\n' >"$tree/README.md"
expect bad 'an option of another command' "$docs"
rm -rf "$tree/docs" "$tree/README.md" "$tree/src/cli"
expect bad 'no documents' "$docs"

cuda=$tools/check_cuda.sh
# kernel LINE: a kernel of this line
# kernel LINE NAME: the same by another name than `a`
kernel() {
    mkdir -p "$tree/src/ops/nn/a"
    printf 'extern "C" __global__ void %s(int *x, int i) {\n    %s\n}\n' "${2:-a}" "$1" \
        >"$tree/src/ops/nn/a/cuda.cu"
}
fresh
kernel 'x[i] = i;'
found=0
"$cuda" "$tree" >/dev/null 2>&1 || found=$?
if [ "$found" -ne 77 ]; then
    expect good 'a kernel' "$cuda"
    kernel 'int y[9]; for (int j = 0; j < i; j++) y[x[j]] = j; x[i] = y[x[i]];'
    expect bad 'a kernel with local memory' "$cuda"
    kernel 'x[i] = j;'
    expect bad 'a kernel that does not compile' "$cuda"
    kernel 'x[i] = i;' a_bf16
    if command -v cuobjdump >/dev/null 2>&1 && command -v nvdisasm >/dev/null 2>&1; then
        expect bad 'a kernel of 16 bits without tensor cores' "$cuda"
    fi
    rm "$tree/src/ops/nn/a/cuda.cu"
    expect bad 'no kernels' "$cuda"
fi

[ "$rc" -eq 0 ] && echo 'every fault is found'
exit "$rc"
