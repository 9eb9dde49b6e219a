#!/bin/sh
# on_gpu.sh COMMAND...: runs a test that needs an NVIDIA GPU. Status 77 (skipped) where
# there is none. TR_GPU_UNDER is a tool that it runs under, with its options:
#
#     TR_GPU_UNDER="compute-sanitizer --tool memcheck --error-exitcode 1" \
#         ctest --test-dir build -L gpu
if ! nvidia-smi -L 2>/dev/null | grep -q '^GPU'; then
    echo "skipped: nvidia-smi shows no GPU here"
    exit 77
fi
# shellcheck disable=SC2086 # words
exec env TR_TEST_GPU=1 ${TR_GPU_UNDER:-} "$@"
