#!/bin/sh
# trainer.sh FOLDER: chats by transformers' Trainer with a config of DeepSpeed's for ZeRO
# stages 2 and 3, on two ranks of torchrun and one thread each, with a model such as
# SmolLM2-135M (a Hugging Face folder of it, with a chat template): its steps by Tranche
# (tranche.hf.Trainer) and by DeepSpeed, by turns; at stage 2 also with ranks of mpirun,
# whose exchanges are MPI's in place of gloo's. Tokens a second, memory, and how far the
# losses of all steps are apart. At stage 2 Tranche also trains within a budget, 0.6 of
# the memory that DeepSpeed took. 6 steps take eight minutes on two quiet cores.
#
#     TRANCHE_PEER_PYTHON=... bench/trainer.sh FOLDER
#
#     TRANCHE_PEER_PYTHON     a Python that has PyTorch, transformers, accelerate, DeepSpeed
#     TRANCHE_BENCH_STEPS     of each run (20)
#     TRANCHE_BENCH_LENGTH    tokens that a chat has at most (256)
set -u
cd "$(dirname "$0")/.." || exit 1
. bench/common.sh
. bench/table.sh
model=$(cd "${1:?usage: bench/trainer.sh FOLDER}" && pwd) || exit 1
: "${peer:?TRANCHE_PEER_PYTHON has to name a Python with transformers and DeepSpeed}"
steps=${TRANCHE_BENCH_STEPS:-20}
length=${TRANCHE_BENCH_LENGTH:-256}
OMP_WAIT_POLICY=passive # DeepSpeed's ranks wait on their cores, too
PYTHONPATH=$PWD/build/python
export PYTHONPATH

# trained NAME WHAT OPTION...: its losses are then in $work/NAME.losses
trained() {
    saved=$1
    name=$1 what=$2
    shift 2
    peer_row "$name" "$what" ../trainer.py "$model" "$text" --steps "$steps" \
        --length "$length" "$@"
    sed -n 's/.*"losses": \[\([^]]*\)\].*/\1/p' "$work/peer.json" | tr ',' '\n' \
        >"$work/$saved.losses"
}

# apart WHAT NAME NAME: the most that the losses of a step are apart
apart() {
    paste "$work/$2.losses" "$work/$3.losses" | awk -v what="$1" '
        NF == 2 { n++; off = $1 > $2 ? $1 - $2 : $2 - $1 }
        NF == 2 && off > most { most = off }
        END {
            if (n) printf "%s: %.1e apart, the most of %d steps\n", what, most, n
            else print what ": no losses"
        }'
}

machine
"$peer" -c 'import deepspeed, torch, transformers
for each in torch, transformers, deepspeed: print(each.__name__, each.__version__)' \
    2>/dev/null | grep -v '^\['
printf 'load before: %s\n' "$(cut -d ' ' -f 1-3 /proc/loadavg)"
echo "chats of up to $length tokens, m = 2, g = 2, two ranks of one thread"
head_of_columns
for stage in 2 3; do
    trained "ours$stage" "Tranche, stage $stage" --steps-by tranche --stage $stage
    trained "theirs$stage" "DeepSpeed, stage $stage" --steps-by deepspeed --stage $stage
done
budget=$(awk '$1 == "theirs2" { printf "%.0f", 0.6 * $3 }' "$figures")
trained within "Tranche, stage 2, in 0.6 of DeepSpeed's memory" --steps-by tranche \
    --memory "${budget:-0}"
trained mpi "Tranche, stage 2, over MPI" --steps-by tranche --launcher mpirun
trained ours2 "Tranche, stage 2" --steps-by tranche
head_of_ratios
for stage in 2 3; do
    ratio "stage $stage: tokens/s, Tranche over DeepSpeed" 2 ">=" \
        "ours$stage.rate/theirs$stage.rate"
    ratio "stage $stage: peak, Tranche over DeepSpeed" 0.6 "<=" \
        "ours$stage.peak/theirs$stage.peak"
done
ratio "in 0.6 of its memory: tokens/s, Tranche over DeepSpeed" 2 ">=" \
    within.rate/theirs2.rate
ratio "in 0.6 of its memory: peak, Tranche over DeepSpeed" 0.6 "<=" \
    within.peak/theirs2.peak
ratio "time of a step, exchanges over gloo against MPI" 1.1 "<=" mpi.rate/ours2.rate
echo
for stage in 2 3; do
    apart "losses of stage $stage, Tranche and DeepSpeed" "ours$stage" "theirs$stage"
done
apart "losses in 0.6 of the memory, Tranche and DeepSpeed" within theirs2
apart "losses over MPI and over gloo" mpi ours2
printf 'load after: %s\n' "$(cut -d ' ' -f 1-3 /proc/loadavg)"
