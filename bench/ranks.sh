#!/bin/sh
# ranks.sh: several ranks on this machine, Tranche and DeepSpeed in the same run, and the
# ratios that matter. One thread a rank. About half an hour on two cores, which should
# have nothing else to do.
#
#     bench/ranks.sh [stages] [scaling] [reproducible] [pipeline] [mesh] [schedules]   (default: all)
#
#     stages         two ranks, GPT-2 124M, context 256, m = 1, g = 4: ZeRO stages, waves,
#                    recomputation, slices of the vocabulary; DeepSpeed where
#                    TRANCHE_PEER_PYTHON has it
#     scaling        context 1024, g = 8, stage 0: two ranks of one thread beside one rank
#                    of two threads, and beside one rank of one thread (half the samples)
#     pipeline       two stages of a small GPT-2 with 2 to 16 micro-batches: the share of a
#                    step in which each waits, three rounds, and what the plan says
#     mesh           GPT-2 124M, context 1024, 16 samples: two data ranks, two tensor ranks, two
#                    stages of a pipeline with 16 micro-batches
#     schedules      GPT-2 124M, context 256, 4 samples: two stages by each schedule
#     reproducible   one process of all threads, with and without reproducible mode
set -u
cd "$(dirname "$0")/.." || exit 1
. bench/common.sh
OMP_WAIT_POLICY=passive # the communication thread shares a core
export OMP_WAIT_POLICY
. bench/table.sh

# ---- stages

stage() { # NAME WHAT OPTION...
    name=$1 what=$2
    shift 2
    gpt2_file "$name" 256 8 1 "${TRANCHE_BENCH_STEPS:-4}"
    run_ranks "$name" "$what" 2 1 "$@"
}

bench_stages() {
    zero=zero_optimization.stage
    wave="--set execution.wave=4"
    again="--set activation_checkpointing.number_checkpoints=1000" # all but the last
    slices="--set execution.vocabulary_slices=4"
    echo "two ranks of one thread, GPT-2, context 256, m = 1, g = 4"
    head_of_columns
    # shellcheck disable=SC2086
    for s in 0 1 2 3; do
        stage "s$s" "stage $s, wave 1" --set $zero=$s
        stage "s$s-g" "stage $s, wave 4" --set $zero=$s $wave
        deepspeed deepspeed$s "DeepSpeed, stage $s" --stage $s \
            --steps "${TRANCHE_BENCH_STEPS:-4}"
    done
    # shellcheck disable=SC2086
    {
        for s in 0 3; do
            stage "s$s-a" "stage $s, wave 1, recomputed" --set $zero=$s $again
            stage "s$s-ga" "stage $s, wave 4, recomputed" --set $zero=$s $wave $again
            stage "s$s-as" "stage $s, wave 1, recomputed, 4 slices" --set $zero=$s \
                $again $slices
        done
        stage s3-gas "stage 3, wave 4, recomputed, 4 slices" --set $zero=3 $wave $again \
            $slices
        stage s3-n "stage 3, wave 1, no overlap" --set $zero=3 \
            --set zero_optimization.overlap_comm=false
    }
    head_of_ratios
    for s in 0 1 2 3; do
        ratio "stage $s: tokens/s, Tranche over DeepSpeed" 2 ">=" \
            "s$s.rate/deepspeed$s.rate"
    done
    ratio "tokens/s, wave 4: stage 3 over stage 0" 0.95 ">=" s3-g.rate/s0-g.rate
    ratio "the same, recomputed" 0.95 ">=" s3-ga.rate/s0-ga.rate
    ratio "peak, wave 1: stage 3 over stage 0" 0.75 "<=" s3.peak/s0.peak
    ratio "peak: stage 3, recomputed, 4 slices, over stage 0" 0.65 "<=" s3-as.peak/s0.peak
    ratio "the same over stage 0, recomputed, 4 slices" 0.65 "<=" s3-as.peak/s0-as.peak
    awk '/^s[0-9]/ && ($3 - $4) / 1048576 > most { most = ($3 - $4) / 1048576 }
         END { printf "the most that a process had beyond its plan: %.1f MiB (at most 96)\n", most }' \
        "$figures"
}

# ---- scaling

bench_scaling() {
    steps=${TRANCHE_BENCH_STEPS:-3}
    context=${TRANCHE_BENCH_CONTEXT:-1024}
    gpt2_file two "$context" 16 1 "$steps"
    gpt2_file one "$context" 16 1 "$steps"
    gpt2_file half "$context" 8 1 "$steps"
    echo "GPT-2, context $context, m = 1, stage 0"
    head_of_columns
    run_ranks one "one rank of two threads, 16 samples" 1 2
    run_ranks two "two ranks of one thread, 16 samples, g = 8" 2 1
    run_ranks half "one rank of one thread, 8 samples, g = 8" 1 1
    head_of_ratios
    ratio "tokens/s: two ranks of one thread over one rank of two" 0.95 ">=" \
        two.rate/one.rate
    # Twice the tokens in the same time is twice the rate.
    awk '$1 == "two" { two = $2 } $1 == "half" { half = $2 }
         END { if (half > 0 && two > 0) printf "weak scaling: a step of two ranks takes " \
                   "%.3f times that of one\n", 2 * half / two }' "$figures"
}

# ---- pipeline

# The shares of stages 0 and 1 in a step that was simulated on this machine.
planned_share() { # NAME KEY
    "$program" simulate "$work/$1.json" --ranks 2 --set execution.threads=1 --json |
        sed -n "s/.*\"first_unit\".*\"$2\": \([0-9.e+-]*\).*/\1/p" |
        awk '{ printf "%s%.2f", (NR > 1 ? ", " : ""), $1 }'
}

# The median over a run's steps, but the first two, of each stage's share.
measured_share() { # NAME STAGE
    sed -n 's/.*"stage_wait_share": \[\([0-9.]*\), \([0-9.]*\)\].*/\1 \2/p' \
        "$work/$1/metrics.jsonl" | sed 1,2d | awk -v field="$(($2 + 1))" '{ print $field }' |
        sort -n | awk '{ all[NR] = $1 } END { printf "%.2f", all[int((NR + 1) / 2)] }'
}

bench_pipeline() {
    for g in 2 4 8 16; do
        nano_file "pipe$g" "$text" "${TRANCHE_BENCH_STEPS:-12}"
        sed -e 's/, "validation": 0.1//' -e 's/"n_positions": 64/"n_positions": 128/' \
            -e 's/"n_embd": 128/"n_embd": 256/' \
            -e "s/\"train_batch_size\": 12/\"train_batch_size\": $((4 * g)), $(
                )\"train_micro_batch_size_per_gpu\": 4, \"pipeline\": {\"stages\": 2}/" \
            "$work/pipe$g.json" >"$work/edited" && mv "$work/edited" "$work/pipe$g.json"
    done
    echo "| g | planned bubble | planned idle share | measured, round 1, 2, 3 |"
    echo "|---|---|---|---|"
    for g in 2 4 8 16; do
        rounds=
        for round in 1 2 3; do
            rm -rf "$work/pipe$g"
            on_ranks 2 "$program" train "$work/pipe$g.json" --threads 1 >"$work/log" 2>&1 || {
                tail -n 3 "$work/log" >&2
                return 1
            }
            rounds="$rounds${rounds:+; }$(measured_share "pipe$g" 0), $(
                measured_share "pipe$g" 1
            )"
        done
        echo "| $g | $(planned_share "pipe$g" bubble_share) |" \
            "$(planned_share "pipe$g" idle_share) | $rounds |"
    done
}

# ---- mesh

# The share of a step that two stages wait for each other, simulated on this machine.
planned_bubble() { # NAME
    "$program" simulate "$work/$1.json" --ranks 2 --set execution.threads=1 \
        --set pipeline.stages=2 --json |
        awk -F'[:,]' '/^ *"seconds"/ { all = $2 } /^ *"bubble_seconds"/ { bubble = $2 }
                      END { printf "%.3f", (all > 0 ? bubble / all : 0) }'
}

bench_mesh() {
    for name in data tensor tokens stages; do
        gpt2_file $name "${TRANCHE_BENCH_CONTEXT:-1024}" 16 1 "${TRANCHE_BENCH_STEPS:-3}"
    done
    echo "GPT-2, context ${TRANCHE_BENCH_CONTEXT:-1024}, 16 samples, m = 1, two ranks of one thread"
    head_of_columns
    run_ranks data "two data ranks, stage 0, g = 8" 2 1
    run_ranks tensor "two tensor ranks, g = 16" 2 1 --set tensor_parallel.size=2
    run_ranks tokens "the same, norms and residuals shared" 2 1 \
        --set tensor_parallel.size=2 --set tensor_parallel.sequence=true
    run_ranks stages "two stages, g = 16" 2 1 --set pipeline.stages=2
    bubble=$(planned_bubble stages)
    head_of_ratios
    ratio "tokens/s: two tensor ranks over two data ranks" 0.92 ">=" tensor.rate/data.rate
    ratio "the same, norms and residuals shared" 0.92 ">=" tokens.rate/data.rate
    ratio "two stages over two data ranks (planned bubble: $bubble)" \
        "$(awk -v bubble="$bubble" 'BEGIN { printf "%.3f", 0.95 * (1 - bubble) }')" ">=" \
        stages.rate/data.rate
    ratio "peak: two tensor ranks over two data ranks" 0.60 "<=" tensor.peak/data.peak
    ratio "peak: the same, norms and residuals shared" 0.55 "<=" tokens.peak/data.peak
}

# ---- schedules

bench_schedules() {
    orders="1f1b interleaved breadth_first zero_bubble v"
    echo "GPT-2, context 256, 4 samples, m = 1, two stages of a rank of one thread each"
    head_of_columns
    for order in $orders; do
        gpt2_file "$order" 256 4 1 "${TRANCHE_BENCH_STEPS:-5}"
        run_ranks "$order" "$order" 2 1 --set pipeline.stages=2 \
            --set pipeline.schedule="$order"
    done
    head_of_ratios
    ratio "tokens/s: zero_bubble over 1f1b" 1.00 ">=" zero_bubble.rate/1f1b.rate
    ratio "tokens/s: v over 1f1b" 1.00 ">=" v.rate/1f1b.rate
}

# ---- reproducible

bench_reproducible() {
    threads=$(nproc)
    steps=${TRANCHE_BENCH_STEPS:-4}
    gpt2_file plain 256 8 1 "$steps"
    gpt2_file fixed 256 8 1 "$steps"
    echo "GPT-2, context 256, m = 1, g = 8, one process"
    head_of_columns
    run_ranks plain "as usual" 1 "$threads"
    run_ranks fixed "reproducible" 1 "$threads" --set execution.reproducible=true
    awk '{ rate[$1] = $2; planned[$1] = $4 }
         END { if (rate["fixed"] > 0 && rate["plain"] > 0)
                   printf "reproducible mode: %.1f %% more time, %.0f MB more memory\n",
                       100 * (rate["plain"] / rate["fixed"] - 1),
                       (planned["fixed"] - planned["plain"]) / 1e6 }' "$figures"
}

machine
for part in "${@:-all}"; do
    echo
    case $part in
    all)
        bench_stages && echo && bench_scaling && echo && bench_reproducible && echo &&
            bench_pipeline && echo && bench_mesh && echo && bench_schedules
        ;;
    stages | scaling | reproducible | pipeline | mesh | schedules) "bench_$part" ;;
    *)
        echo "bench: unknown part $part; there are stages scaling reproducible pipeline" \
            "mesh schedules" >&2
        exit 2
        ;;
    esac
done
