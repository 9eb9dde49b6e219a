#!/bin/sh
# python.sh [cost] [programs] [gpt2]: the figures of the Python package in docs/python.md.
#   cost      what the package takes of a micro-batch's time, and of memory (python.py)
#   programs  the three programs of examples/python, whole processes, beside DeepSpeed, whose
#             programs they are with one import changed
#   gpt2      GPT-2 124M written in PyTorch (peers/gpt2.py), in float32, m = 1, g = 4, one
#             process of all cores: trained by tranche.initialize in three ways, by the
#             program's own model, and by PyTorch and DeepSpeed. Half an hour on two cores.
#
#     TRANCHE_PEER_PYTHON=... bench/python.sh
#
#     TRANCHE_PEER_PYTHON     a Python that has PyTorch, transformers and DeepSpeed
#     TRANCHE_BENCH_CONTEXT   tokens of a text (1,024)
#     TRANCHE_BENCH_STEPS     of each run (4)
#     TRANCHE_BENCH_TIMES     how often each program is run (3)
#     TRANCHE_BENCH_LAYERS    of GPT-2, for a quick try (12)
set -u
cd "$(dirname "$0")/.." || exit 1
. bench/common.sh
. bench/table.sh
threads=$(nproc)
context=${TRANCHE_BENCH_CONTEXT:-1024}
steps=${TRANCHE_BENCH_STEPS:-4}
times=${TRANCHE_BENCH_TIMES:-3}
: "${peer:?TRANCHE_PEER_PYTHON has to name a Python with PyTorch}"
PYTHONPATH=$PWD/build/python
export PYTHONPATH

bench_cost() {
    "$peer" bench/python.py
}

# seconds_of COMMAND...: of the whole process; what it prints is in $work/program.log
seconds_of() {
    begin=$(date +%s.%N)
    "$@" >"$work/program.log" 2>&1 || {
        tail -n 3 "$work/program.log" >&2
        return 1
    }
    calculate "$(date +%s.%N) - $begin" %.2f
}

# As torchrun starts one rank; without mpi4py DeepSpeed asks for these variables.
with_deepspeed() {
    env DS_ACCELERATOR=cpu RANK=0 LOCAL_RANK=0 WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 \
        MASTER_PORT=29573 "$peer" "$1"
}

last_loss() {
    sed -n 's/^epoch 4: loss //p' "$work/program.log"
}

# middle NUMBER...: the median
middle() {
    printf '%s\n' "$@" | sort -g | awk '{ value[NR] = $1 } END { print value[int((NR + 1) / 2)] }'
}

program_rows() {
    theirs=$work/$(basename "$1")
    sed 's/^import tranche as deepspeed$/import deepspeed/' "$1" >"$theirs"
    mine='' other=''
    for _ in $(seq "$times"); do # by turns
        mine="$mine $(seconds_of "$peer" "$1")"
        my_loss=$(last_loss)
        other="$other $(seconds_of with_deepspeed "$theirs")"
        their_loss=$(last_loss)
    done
    # shellcheck disable=SC2086
    printf '| %-22s | %7s | %9s | %6s | %6s |\n' "$(basename "$1" .py)" "$(middle $mine)" \
        "$(middle $other)" "$my_loss" "$their_loss"
}

bench_programs() {
    printf '| %-22s | %7s | %9s | %6s | %6s |\n' "seconds of the process" Tranche DeepSpeed \
        "loss" theirs
    echo '| ---------------------- | ------- | --------- | ------ | ------ |'
    for program_file in examples/python/classifier_*.py; do
        program_rows "$program_file"
    done
}

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

bench_gpt2() {
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
}

machine
"$peer" -c 'import torch; print("PyTorch", torch.__version__)'
printf 'load before: %s\n' "$(cut -d ' ' -f 1-3 /proc/loadavg)"
for part in ${*:-cost programs gpt2}; do
    echo
    "bench_$part"
done
printf '\nload after: %s\n' "$(cut -d ' ' -f 1-3 /proc/loadavg)"
