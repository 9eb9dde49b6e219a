#!/bin/sh
# check_cuda.sh [ROOT]: fails when nvcc does not compile a kernel file of the CUDA backend,
# for all GPUs that the build is for, or when a kernel needs local memory (a stack frame or
# spilled registers): CUDA would reserve it for each thread that a GPU can hold, beside the
# memory of the plan. Status 77 (skipped) where nvcc is not found. A build with TRANCHE_CUDA
# and TRANCHE_WERROR checks the same.
set -eu
root=${1:-$(cd "$(dirname "$0")/.." && pwd)}
PATH=$PATH:${CUDA_HOME:-/usr/local/cuda}/bin
command -v nvcc >/dev/null 2>&1 || {
    echo "nvcc is not found" >&2
    exit 77
}

cd "$root"
rc=0
count=0
for file in src/ops/*/cuda*.cu; do
    [ -f "$file" ] || continue
    count=$((count + 1))
    nvcc -std=c++17 -Iinclude -Isrc -fatbin -o /dev/null -Werror all-warnings \
        -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90a,code=sm_90a \
        -Xptxas -warn-lmem-usage,-warn-spills "$file" || {
        echo "$file does not compile, or a kernel of it needs local memory" >&2
        rc=1
    }
done
if [ "$count" -eq 0 ]; then
    echo "check_cuda: no kernels under $root" >&2
    exit 1
fi
[ "$rc" -eq 0 ] || exit 1
echo "$count files of kernels compile, and no kernel needs local memory"
