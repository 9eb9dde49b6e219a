#!/bin/sh
# check_cuda.sh [ROOT]: fails when nvcc does not compile a kernel file of the CUDA backend,
# for all GPUs that the build is for, or when a kernel needs local memory (a stack frame or
# spilled registers): CUDA would reserve it for each thread that a GPU can hold, beside the
# memory of the plan. Status 77 (skipped) where nvcc is not found. A build with TRANCHE_CUDA
# and TRANCHE_WERROR checks the same.
#
# Where cuobjdump and nvdisasm are found too (CUDA has them, and PyPI: nvidia-cuda-cuobjdump,
# nvidia-cuda-nvdisasm), it reads the machine code: no kernel has instructions for local
# memory, and kernels of 16 bits by name (tr_cuda_..._bf16..., _f16...) use tensor cores.
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
image=$(mktemp)
trap 'rm -f "$image"' EXIT
disassembles=
command -v cuobjdump >/dev/null 2>&1 && command -v nvdisasm >/dev/null 2>&1 &&
    disassembles=yes

# code FILE: what is wrong with the machine code of its kernels in $image.
code() {
    cuobjdump -sass "$image" | awk -v file="$1" '
    function close_kernel() {
        if (name ~ /_b?f16/ && products == 0) {
            printf "%s: %s does not use tensor cores\n", file, name
            failed = 1
        }
        if (locals > 0) {
            printf "%s: %s uses local memory\n", file, name
            failed = 1
        }
        products = locals = 0
    }
    /Function : / { close_kernel(); name = $3; kernels++ }
    / (HMMA|HGMMA)\./ { products++ }
    / (LDL|STL)[. ]/ { locals++ }
    END {
        close_kernel()
        if (kernels == 0) {
            printf "%s: cuobjdump shows no kernels\n", file
            failed = 1
        }
        exit failed
    }' >&2
}

for file in src/ops/*/*/cuda*.cu; do
    [ -f "$file" ] || continue
    count=$((count + 1))
    nvcc -std=c++17 -O3 -Iinclude -Isrc -fatbin -o "$image" -Werror all-warnings \
        -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90a,code=sm_90a \
        -Xptxas -warn-lmem-usage,-warn-spills "$file" || {
        echo "$file does not compile, or a kernel of it needs local memory" >&2
        rc=1
        continue
    }
    [ -z "$disassembles" ] || code "$file" || rc=1
done
if [ "$count" -eq 0 ]; then
    echo "check_cuda: no kernels under $root" >&2
    exit 1
fi
[ "$rc" -eq 0 ] || exit 1
echo "$count files of kernels compile, and no kernel needs local memory"
if [ -z "$disassembles" ]; then
    echo "their machine code is not read: cuobjdump and nvdisasm are not found"
else
    echo "their machine code uses tensor cores where it should"
fi
