#!/bin/sh
# simulate.sh: simulated step times beside measured ones, for plans on one and two ranks of
# this machine: GPT-2 124M without dropout in several cuts, recomputed, offloaded to the
# host and to NVMe, with layers that ranks share, and with stages of a pipeline. First
# build/bench/machine measures the machine, once for each context and number of ranks.
# Needs 6 GB of memory, 4 GB of disk and a quiet machine; about ten minutes on two fast
# cores. Then it says how good a choice by prediction is: among plans of the same ranks,
# context and T, how much slower than the fastest is the one that is predicted to be it,
# and of two that are more than 10 % apart, which is predicted to be faster? Ends with
# status 1 when a plan is off by more than 10 %.
#
#     bench/simulate.sh [FOLDER]    a folder on the NVMe disk (one below /tmp)
#
#     TRANCHE_BENCH_PLANS    a pattern of grep -E: only plans whose names it finds (all)
set -u
cd "$(dirname "$0")/.." || exit 1
work=$(mktemp -d)
nvme=${1:-$work}
trap 'rm -rf "$work"' EXIT INT TERM
OMP_WAIT_POLICY=passive
export OMP_WAIT_POLICY

find /usr/include -type f -name '*.h' | LC_ALL=C sort | xargs cat 2>/dev/null |
    head -c 4000000 >"$work/text.bin"
if [ ! -s "$work/text.bin" ]; then
    echo "bench: no text found below /usr/include" >&2
    exit 1
fi

# ranked W COMMAND...: on W ranks
ranked() {
    ranks=$1
    shift
    if [ "$ranks" -eq 1 ]; then
        "$@"
    else
        sh tests/launch.sh "${MPIRUN:-mpirun}" "$ranks" "$@"
    fi
}

# run_file CONTEXT
run_file() {
    cat >"$work/run.json" <<END
{"model": {"model_type": "gpt2", "vocab_size": 50257, "n_positions": $1,
           "resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0},
 "data": {"format": "bytes", "train": ["$work/text.bin"]}, "out": "$work/out", "steps": 4,
 "train_batch_size": 2, "train_micro_batch_size_per_gpu": 1, "checkpoint": {"keep": 1},
 "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "weight_decay": 0.1}}}
END
}

# The median of the steps after the first, which touches memory for the first time.
measured() {
    sed -n 's/.*"loss": .*"seconds": \([0-9.e+-]*\),.*/\1/p' "$work/out/metrics.jsonl" |
        sed 1d | sort -g | awk '{ value[NR] = $1 } END { print value[int(NR / 2) + 1] }'
}

# Takes one field of an object of one line a field.
field() {
    sed -n "s/^ *\"$1\": \([0-9.e+-]*\),*/\1/p" | head -n 1
}

# plan NAME RANKS CONTEXT BATCH MICRO [KEY=VALUE...]
plan() {
    name=$1 ranks=$2 context=$3 batch=$4 micro=$5
    shift 5
    printf '%s\n' "$name" | grep -Eq "${TRANCHE_BENCH_PLANS:-.}" || return
    work_of="$ranks rank, context $context, T = $batch"
    run_file "$context"
    machine=$work/machine-$ranks-$context.json
    set -- "train_batch_size=$batch" "train_micro_batch_size_per_gpu=$micro" "$@"
    if [ ! -s "$machine" ]; then
        ranked "$ranks" build/bench/machine --nvme "$nvme" "$work/run.json" \
            train_batch_size=8 >"$machine" || exit 1
    fi
    options=
    for set in "$@"; do
        options="$options --set $set"
    done
    # shellcheck disable=SC2086
    simulated=$(build/tranche simulate "$work/run.json" --ranks "$ranks" $options \
        --machine "$machine" --set "execution.threads=$((threads / ranks))" --json |
        field seconds)
    # shellcheck disable=SC2086
    ranked "$ranks" build/tranche train "$work/run.json" --resume never $options \
        >"$work/log" 2>&1 || {
        cat "$work/log" >&2
        exit 1
    }
    took=$(measured)
    rm -rf "$work/out"
    awk -v name="$name" -v simulated="$simulated" -v took="$took" 'BEGIN {
        off = 100 * (simulated / took - 1)
        printf "| %-60s | %9.3f | %9.3f | %+6.1f %% |\n", name, simulated, took, off
    }' | tee -a "$work/table"
    printf '%s|%s|%s|%s\n' "$work_of" "$simulated" "$took" "$name" >>"$work/figures"
}

threads=$(nproc)
blocks=activation_checkpointing.number_checkpoints=13
state=zero_optimization.offload_optimizer.device
params=zero_optimization.offload_param.device
zero3=zero_optimization.stage=3
disk=memory.nvme.path=$nvme
tensor=tensor_parallel.size=2
stages=pipeline.stages=2
echo "| GPT-2 124M                                                   | simulated |  measured |      off |"
echo "|--------------------------------------------------------------|-----------|-----------|----------|"
plan "1 rank, context 256, T = 4, m = 2" 1 256 4 2
plan "1 rank, context 256, T = 4, m = 1" 1 256 4 1
plan "1 rank, context 256, T = 4, m = 4" 1 256 4 4
plan "1 rank, context 256, T = 8, m = 1, wave 8" 1 256 8 1 execution.wave=8
plan "1 rank, context 256, T = 4, m = 1, recomputed" 1 256 4 1 $blocks
plan "1 rank, context 256, T = 4, m = 2, nothing recomputed" 1 256 4 2 execution.recompute=none
plan "1 rank, context 256, T = 4, m = 2, attention recomputed" 1 256 4 2 \
    execution.recompute=attention
plan "1 rank, context 256, T = 8, m = 4, wave 2, recomputed" 1 256 8 4 execution.wave=2 $blocks
plan "1 rank, context 1024, T = 2, m = 1" 1 1024 2 1
plan "1 rank, context 128, T = 8, m = 4" 1 128 8 4
plan "1 rank, context 256, T = 8, m = 2, state on the host" 1 256 8 2 $state=cpu
plan "1 rank, context 128, T = 8, m = 4, state on the host" 1 128 8 4 $state=cpu
plan "1 rank, context 256, T = 4, m = 1, all on the host" 1 256 4 1 $zero3 $state=cpu $params=cpu
plan "1 rank, context 256, T = 8, wave 8, all on the host, recomputed" 1 256 8 1 \
    execution.wave=8 $zero3 $state=cpu $params=cpu $blocks
plan "1 rank, context 256, T = 8, m = 2, state on NVMe" 1 256 8 2 $state=nvme "$disk"
plan "1 rank, context 256, T = 8, m = 1, wave 8, all on NVMe" 1 256 8 1 \
    execution.wave=8 $zero3 $state=nvme $params=nvme "$disk"
if [ "$threads" -ge 2 ] && command -v "${MPIRUN:-mpirun}" >/dev/null; then
    for stage in 0 1 2 3; do
        plan "2 ranks, context 256, T = 8, m = 2, stage $stage" 2 256 8 2 \
            zero_optimization.stage=$stage
    done
    plan "2 ranks, context 256, T = 8, m = 1, stage 3, wave 4" 2 256 8 1 \
        $zero3 execution.wave=4
    plan "2 ranks, context 256, T = 8, m = 2, stage 3, no overlap" 2 256 8 2 \
        $zero3 zero_optimization.overlap_comm=false
    plan "2 ranks, context 256, T = 2, m = 1, stage 1" 2 256 2 1 zero_optimization.stage=1
    plan "2 ranks, context 256, T = 8, m = 2, stage 1, state on the host" 2 256 8 2 \
        zero_optimization.stage=1 $state=cpu
    plan "2 ranks, context 256, T = 8, m = 1, stage 3, wave 4, all on NVMe" 2 256 8 1 \
        $zero3 execution.wave=4 $state=nvme $params=nvme "$disk"
    plan "2 stages, context 256, T = 8, m = 1" 2 256 8 1 $stages
    plan "2 stages, context 256, T = 8, m = 2" 2 256 8 2 $stages
    plan "2 stages, context 256, T = 8, m = 1, two parts each" 2 256 8 1 $stages \
        pipeline.virtual_stages=2
    plan "2 ranks that share layers, context 256, T = 4, m = 2" 2 256 4 2 $tensor
    plan "2 ranks that share layers, context 256, T = 8, m = 1" 2 256 8 1 $tensor
    plan "2 ranks that share layers, context 256, T = 8, m = 4, recomputed" 2 256 8 4 \
        $tensor $blocks
fi
[ -s "$work/table" ] || exit 1
awk -F'|' '{ work[NR] = $1; simulated[NR] = $2; took[NR] = $3; name[NR] = $4 }
END {
    for (i = 1; i <= NR; i++) {
        w = work[i]
        if (!(w in choice) || simulated[i] < simulated[choice[w]]) choice[w] = i
        if (!(w in best) || took[i] < took[best[w]]) best[w] = i
        for (j = 1; j < i; j++) {
            if (work[j] != w) continue
            apart = took[i] > took[j] ? took[i] / took[j] : took[j] / took[i]
            if (apart <= 1.1) continue
            pairs++
            right = (took[i] > took[j]) == (simulated[i] > simulated[j])
            good += right
            if (!right) wrong = wrong "  the wrong way round: " name[j] "; " name[i] "\n"
        }
    }
    for (w in choice) {
        if (choice[w] == 0) continue
        printf "%s: the choice takes %.3f of the fastest\n", w, took[choice[w]] / took[best[w]]
    }
    printf "pairs more than 10 %% apart: %d, of them predicted in their order: %d\n%s", \
        pairs, good, wrong
}' "$work/figures"
awk -F'|' '{
    off = $5 + 0
    off = off < 0 ? -off : off
    wrong += off > 10
    if (off >= worst) { worst = off; name = $2 }
} END {
    gsub(/^ +| +$/, "", name)
    printf "the worst of %d: %.1f %%, %s\n%d are off by more than 10 %%\n", NR, worst, name, wrong
    exit wrong > 0
}' "$work/table"
