#!/bin/sh
# has_fuzzer.sh: can clang build fuzz targets here? It needs libFuzzer and the sanitizers
# (Debian: libclang-rt-dev) and OpenMP (libomp-dev).
set -eu
command -v clang >/dev/null
program=$(mktemp)
trap 'rm -f "$program"' EXIT INT TERM
echo '#include <omp.h>
int LLVMFuzzerTestOneInput(const char *data, unsigned long size);
int LLVMFuzzerTestOneInput(const char *data, unsigned long size) {
    return size > 0 && data[0] && omp_get_max_threads() < 0;
}' | clang -fsanitize=fuzzer,address,undefined -fopenmp -x c - -o "$program"
