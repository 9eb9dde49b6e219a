#!/bin/sh
# offload.sh: what it costs in time, and saves in memory, to keep things elsewhere or to
# make them again: GPT-2 124M, one rank of all cores, micro-batches of 1, g = 8. Runs go
# there and back (A B B A), since a machine's speed drifts, and the fastest step of each
# counts. On two cores ten minutes a part, and twenty with DeepSpeed.
#
#     bench/offload.sh [optimizer] [stream] [recompute] [deepspeed]    (default: all)
#
#     optimizer   states and gradients on the host, context 1024 and 128
#     stream      parameters too, unit by unit, at wave = 8, recomputed; on the host, and
#                 on NVMe
#     recompute   whole units, and no more than the chosen tensors
#     deepspeed   context 256: our rows, and DeepSpeed's where TRANCHE_PEER_PYTHON has it
#
#     TRANCHE_BENCH_NVME    a folder on the disk to measure (the one of temporary files)
set -u
cd "$(dirname "$0")/.." || exit 1
. bench/common.sh
OMP_WAIT_POLICY=passive # the threads that copy share a core
export OMP_WAIT_POLICY
. bench/table.sh
take=best
threads=$(nproc)
steps=${TRANCHE_BENCH_STEPS:-3}
long=${TRANCHE_BENCH_CONTEXT:-1024}
disk=${TRANCHE_BENCH_NVME:-$work}

zero=zero_optimization
optimizer_host="--set $zero.offload_optimizer.device=cpu"
all_host="$optimizer_host --set $zero.stage=3 --set $zero.offload_param.device=cpu"
optimizer_nvme="--set $zero.offload_optimizer.device=nvme
    --set $zero.offload_optimizer.nvme_path=$disk"
all_nvme="$optimizer_nvme --set $zero.stage=3 --set $zero.offload_param.device=nvme
    --set $zero.offload_param.nvme_path=$disk"
whole="--set activation_checkpointing.number_checkpoints=1000"
wave="--set execution.wave=8"

# one NAME WHAT CONTEXT OPTION...
one() {
    name=$1 what=$2
    gpt2_file "$name" "$3" 8 1 "$steps"
    shift 3
    run_ranks "$name" "$what" 1 "$threads" "$@"
}

# pair CONTEXT A WHAT OPTIONS B WHAT OPTIONS: A B B A
pair() {
    for side in 1 2 2 1; do
        # shellcheck disable=SC2086
        if [ $side = 1 ]; then
            one "$2" "$3" "$1" $4
        else
            one "$5" "$6" "$1" $7
        fi
    done
}

bench_optimizer() {
    for context in "$long" 128; do
        echo "context $context"
        head_of_columns
        pair "$context" "resident$context" "resident, wave 8" "$wave" \
            "optimizer$context" "optimizer on the host, wave 8" \
            "$wave $optimizer_host"
        echo
    done
    head_of_ratios
    ratio "context $long: optimizer on the host over resident" 0.97 ">=" \
        "optimizer$long.rate/resident$long.rate"
    ratio "context 128: optimizer on the host over resident" 0.95 ">=" \
        optimizer128.rate/resident128.rate
}

bench_stream() {
    echo "context $long, wave 8, whole units recomputed"
    head_of_columns
    pair "$long" kept "resident" "$wave $whole" \
        streamed "parameters and optimizer on the host" "$wave $whole $all_host"
    # shellcheck disable=SC2086
    one disk "parameters and optimizer on NVMe" "$long" $wave $whole $all_nvme
    head_of_ratios
    ratio "streamed from the host over resident" 0.90 ">=" streamed.rate/kept.rate
    ratio "streamed from NVMe over resident" 0.90 ">=" disk.rate/kept.rate
}

bench_recompute() {
    echo "context $long, wave 1"
    head_of_columns
    none="--set execution.recompute=none"
    chosen="--set execution.recompute=attention"
    # shellcheck disable=SC2086
    for side in nothing whole chosen chosen whole nothing; do
        case $side in
        nothing) one $side "nothing recomputed" "$long" $none ;;
        whole) one $side "whole units" "$long" $whole ;;
        chosen) one $side "chosen tensors" "$long" $chosen ;;
        esac
    done
    head_of_ratios
    ratio "time: nothing recomputed over whole units (asked: 1 / 1.26)" 0.794 ">=" \
        whole.rate/nothing.rate
    ratio "time: nothing recomputed over chosen tensors (1 / 1.05)" 0.952 ">=" \
        chosen.rate/nothing.rate
    ratio "memory: chosen tensors over nothing recomputed" 1 "<=" chosen.peak/nothing.peak
    ratio "memory: whole units over nothing recomputed" 1 "<=" whole.peak/nothing.peak
}

beside() { # NAME WHAT OPTION...
    name=$1 what=$2
    shift 2
    deepspeed "$name" "DeepSpeed, $what" --ranks 1 --threads "$threads" --context 256 \
        --accumulation 8 --steps "$steps" "$@"
}

bench_deepspeed() {
    echo "context 256; DeepSpeed with the same stage and places"
    head_of_columns
    # shellcheck disable=SC2086
    {
        one resident "resident" 256 $wave
        beside peer0 "stage 0" --stage 0
        one optimizer "optimizer on the host" 256 $wave $optimizer_host
        beside peer1 "stage 1, optimizer on the host" --stage 1 --optimizer-on cpu
        one all "all on the host" 256 $wave $all_host
        beside peer3 "stage 3, all on the host" --stage 3 --optimizer-on cpu \
            --parameters-on cpu
        one nvme "all on NVMe" 256 $wave $all_nvme
        beside peern "stage 3, all on NVMe" --stage 3 --optimizer-on nvme \
            --parameters-on nvme --nvme "$disk"
    }
    head_of_ratios
    ratio "tokens/s: resident over DeepSpeed" 2 ">=" resident.rate/peer0.rate
    ratio "tokens/s: optimizer on the host over DeepSpeed" 2 ">=" optimizer.rate/peer1.rate
    ratio "tokens/s: all on the host over DeepSpeed" 2 ">=" all.rate/peer3.rate
    ratio "tokens/s: all on NVMe over DeepSpeed" 2 ">=" nvme.rate/peern.rate
    ratio "DeepSpeed: optimizer on the host over resident" 1 ">=" peer1.rate/peer0.rate
    ratio "DeepSpeed: all on the host over resident" 1 ">=" peer3.rate/peer0.rate
    ratio "DeepSpeed: all on NVMe over resident" 1 ">=" peern.rate/peer0.rate
}

machine
for part in "${@:-all}"; do
    echo
    case $part in
    all)
        bench_optimizer && echo && bench_stream && echo && bench_recompute && echo &&
            bench_deepspeed
        ;;
    optimizer | stream | recompute | deepspeed) "bench_$part" ;;
    *)
        echo "bench: unknown part $part; there are optimizer stream recompute deepspeed" >&2
        exit 2
        ;;
    esac
done
