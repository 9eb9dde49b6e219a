#!/bin/sh
# python_gpt2.sh: GPT-2 124M written in PyTorch (bench/peers/gpt2.py), in float32, m = 1,
# g = 4, one process of all cores: trained by tranche.initialize in three ways, by the
# program's own model, and by PyTorch and DeepSpeed beside them. Tokens a second and peak
# memory. Half an hour on two cores.
#
#     TRANCHE_PEER_PYTHON=... bench/python_gpt2.sh
#
#     TRANCHE_PEER_PYTHON     a Python that has PyTorch, transformers and DeepSpeed
#     TRANCHE_BENCH_CONTEXT   tokens of a text (1,024)
#     TRANCHE_BENCH_STEPS     of each run (4)
#     TRANCHE_BENCH_LAYERS    for a quick try (12)
set -u
cd "$(dirname "$0")/.." || exit 1
. bench/common.sh
. bench/table.sh
threads=$(nproc)
context=${TRANCHE_BENCH_CONTEXT:-1024}
steps=${TRANCHE_BENCH_STEPS:-4}
: "${peer:?TRANCHE_PEER_PYTHON has to name a Python with PyTorch}"
PYTHONPATH=$PWD/build/python
export PYTHONPATH

all="--context $context --micro-batch 1 --accumulation 4 --steps $steps"

native() {
    gpt2_file native "$context" 4 1 "$steps"
    run_ranks native "the program's own model" 1 "$threads"
}

# ours WAY WHAT
ours() {
    # shellcheck disable=SC2086
    peer_row "$1" "$2" ../python_gpt2.py "$1" --layers "$layers" --threads "$threads" $all
    [ "$1" != logits ] || loss_seconds=$(figure loss_seconds "$work/peer.json")
}

machine
"$peer" -c 'import torch; print("PyTorch", torch.__version__)'
printf 'load before: %s\n\n' "$(cut -d ' ' -f 1-3 /proc/loadavg)"
head_of_columns
native
ours batch "a module of PyTorch's, train_batch"
ours parts "forward, backward, step; the module has its loss"
ours logits "the same with PyTorch's loss on whole logits"
native
# shellcheck disable=SC2086
peer_row eager "PyTorch, eager" torch_gpt2.py --layers "$layers" $all
# shellcheck disable=SC2086
peer_row compiled "PyTorch, compiled" torch_gpt2.py --layers "$layers" $all --compile
deepspeed deepspeed "DeepSpeed, one rank" --ranks 1 --threads "$threads" \
    --context "$context" --micro-batch 1 --accumulation 4 --steps "$steps"
native
printf '\nPyTorch'\''s loss of whole logits took %s s of the last step, its gradient apart\n' \
    "${loss_seconds:--}"
head_of_ratios
ratio "train_batch over the program's own model, tokens/s" 0.95 ">=" batch.rate/native.rate
ratio "forward, backward, step over the program's own model" 0.90 ">=" parts.rate/native.rate
ratio "train_batch over PyTorch compiled, tokens/s" 1 ">=" batch.rate/compiled.rate
ratio "train_batch over DeepSpeed, tokens/s" 1 ">=" batch.rate/deepspeed.rate
ratio "memory over PyTorch compiled" 1 "<=" batch.peak/compiled.peak
ratio "memory over DeepSpeed" 1 "<=" batch.peak/deepspeed.peak
printf '\nload after: %s\n' "$(cut -d ' ' -f 1-3 /proc/loadavg)"
