#!/bin/sh
# check_cuda.sh [ROOT]: fails when nvcc does not compile a kernel file of the CUDA backend,
# for all GPUs that the build is for, or when a kernel needs local memory (a stack frame or
# spilled registers): CUDA would reserve it for each thread that a GPU can hold, beside the
# memory of the plan. Status 77 (skipped) where nvcc is not found.
set -eu
root=${1:-$(cd "$(dirname "$0")/.." && pwd)}
PATH=$PATH:${CUDA_HOME:-/usr/local/cuda}/bin
command -v nvcc >/dev/null 2>&1 || {
    echo "nvcc is not found" >&2
    exit 77
}

cd "$root"
report=$(mktemp)
trap 'rm -f "$report"' EXIT
rc=0
count=0
for file in src/ops/*/cuda*.cu; do
    [ -f "$file" ] || continue
    count=$((count + 1))
    nvcc -std=c++17 -Iinclude -Isrc -fatbin -o /dev/null -Werror all-warnings \
        -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90a,code=sm_90a \
        -Xptxas -v "$file" >"$report" 2>&1 || {
        cat "$report" >&2
        echo "$file does not compile" >&2
        rc=1
    }
    awk -v file="$file" '
        /Function properties for/ { kernel = $NF }
        /bytes stack frame/ && !/ 0 bytes stack frame, 0 bytes spill stores/ {
            printf "%s: %s needs local memory: %s\n", file, kernel, $0
            failed = 1
        }
        END { exit failed }' "$report" >&2 || rc=1
done
if [ "$count" -eq 0 ]; then
    echo "check_cuda: no kernels under $root" >&2
    exit 1
fi
[ "$rc" -eq 0 ] || exit 1
echo "$count files of kernels compile, and no kernel needs local memory"
