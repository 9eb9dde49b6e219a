#!/bin/sh
# gpu.sh: training on one NVIDIA GPU in bf16: tokens a second, model flops utilization
# (MFU) and the memory that the GPU has in use at the most, with PyTorch's torch.compile
# and fused attention beside it where TRANCHE_PEER_PYTHON has them. Eight minutes.
#
#     bench/gpu.sh [gpt2] [xl] [llama] [offload] [cuts]      (default: all)
#
#     TRANCHE_BENCH_PEAK     the GPU's dense bf16 operations a second (else by its name)
#     TRANCHE_BENCH_DEVICE   "cpu": a try of the script, with TRANCHE_BENCH_LAYERS=1 and
#                            a small TRANCHE_BENCH_CONTEXT
#
# MFU counts 6 N + 6 L C S operations a token: N parameters, L layers of width C, context
# S, of which a token attends to half on average.
set -u
cd "$(dirname "$0")/.." || exit 1
chosen=${TRANCHE_BENCH_LAYERS:-}
. bench/common.sh
. bench/table.sh
device=${TRANCHE_BENCH_DEVICE:-cuda}
steps=${TRANCHE_BENCH_STEPS:-4}

if [ "$device" != cpu ] && ! command -v nvidia-smi >/dev/null 2>&1; then
    echo "gpu: nvidia-smi is not found: this needs an NVIDIA GPU and its driver" >&2
    exit 1
fi

# of_gpu FIELD: what nvidia-smi says of the first GPU
of_gpu() {
    nvidia-smi --id=0 --query-gpu="$1" --format=csv,noheader,nounits 2>/dev/null
}

# The dense bf16 rate of its data sheet.
peak_rate() {
    case "${TRANCHE_BENCH_PEAK:-}$(of_gpu name)" in
    [0-9]*) echo "${TRANCHE_BENCH_PEAK:-0}" ;;
    *H100* | *H200*) echo 989e12 ;;
    *A100*) echo 312e12 ;;
    *4090*) echo 165.2e12 ;;
    *) echo 0 ;;
    esac
}

gpu_machine() {
    machine
    [ "$device" = cpu ] ||
        echo "GPU: $(of_gpu name), driver $(of_gpu driver_version)," \
            "$(of_gpu clocks.max.sm) MHz, $(of_gpu power.limit) W," \
            "$(of_gpu memory.total) MiB of which $(of_gpu memory.used) in use before"
}

# watched FILE COMMAND...: runs the command; FILE gets the MiB that the GPU has in use at
# the most meanwhile, beside what it had before
watched() {
    watched_file=$1
    shift
    echo 0 >"$watched_file"
    [ "$device" != cpu ] || {
        "$@"
        return
    }
    before=$(of_gpu memory.used)
    nvidia-smi --id=0 --query-gpu=memory.used --format=csv,noheader,nounits \
        --loop-ms=200 >"$work/used" 2>/dev/null &
    watcher=$!
    "$@"
    result=$?
    kill "$watcher" 2>/dev/null
    wait "$watcher" 2>/dev/null
    sort -n "$work/used" | tail -n 1 | awk -v before="$before" '{ print $1 - before }' \
        >"$watched_file"
    return "$result"
}

row() {
    printf '| %-52s | %9s | %6s | %10s | %10s |\n' "$@"
}

head_of_rows() {
    row what tokens/s MFU "device MiB" "plan, MiB"
    row ---------------------------------------------------- --------- ------ ---------- \
        ----------
}

# mfu RATE: by $flops, operations a token
mfu() {
    awk -v rate="$1" -v flops="$flops" -v peak="$(peak_rate)" \
        'BEGIN { if (peak > 0) printf "%.3f", rate * flops / peak; else print "-" }'
}

# gpt2_sizes LAYERS WIDTH HEADS
gpt2_sizes() {
    layers=${chosen:-$1} width=$2 heads=$3
    flops=$(calculate "6 * (12 * $layers * $width ^ 2 + 50257 * $width + $context * $width)\
 + 6 * $layers * $width * $context")
}

# gpt2 NAME T M [STEPS]: $work/NAME.json
gpt2() {
    cat >"$work/$1.json" <<END
{"model": {"model_type": "gpt2", "vocab_size": 50257, "n_positions": $context,
           "n_layer": $layers, "n_embd": $width, "n_head": $heads,
           "resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0},
 "data": {"format": "bytes", "train": ["$text"]}, "out": "$work/$1",
 "steps": ${4:-$steps}, "train_batch_size": $2, "train_micro_batch_size_per_gpu": $3,
 "bf16": {"enabled": true}, "device": "$device",
 "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "weight_decay": 0.1}}}
END
}

# tranche NAME WHAT OPTION...: makes the steps of $work/NAME.json and prints its row
tranche() {
    name=$1 what=$2
    shift 2
    if ! watched "$work/most" build/bench/steps "$work/$name.json" "$@" \
        >"$work/steps.json" 2>"$work/steps.log"; then
        row "$what" failed "" "" ""
        tail -n 1 "$work/steps.log"
        return
    fi
    rate=$(figure tokens_per_second "$work/steps.json")
    planned=$(figure planned_bytes "$work/steps.json")
    most=$(cat "$work/most")
    echo "$name $rate $most $planned" >>"$figures"
    row "$what" "$rate" "$(mfu "$rate")" "$most" "$(calculate "$planned / 1048576")"
}

# torch NAME WHAT SCRIPT OPTION...
torch() {
    name=$1 what=$2
    shift 2
    if [ -z "$peer" ]; then
        row "$what" "no peer" "" "" ""
    elif watched "$work/most" run_peer "$@" --device "$device" --steps "$steps" --bf16; then
        rate=$(figure tokens_per_second "$work/peer.json")
        most=$(cat "$work/most")
        echo "$name $rate $most 0" >>"$figures"
        row "$what" "$rate" "$(mfu "$rate")" "$most" ""
    else
        row "$what" failed "" "" ""
    fi
}

part_gpt2() {
    context=${TRANCHE_BENCH_CONTEXT:-1024}
    gpt2_sizes 12 768 12
    gpt2 small 512 16
    tranche small "GPT-2 124M, 16 x $context, g = 32"
    torch small_torch "PyTorch, compiled" torch_gpt2.py --layers "$layers" \
        --context "$context" --micro-batch 16 --accumulation 32 --compile
}

part_xl() {
    context=${TRANCHE_BENCH_CONTEXT:-1024}
    gpt2_sizes 48 1600 25
    gpt2 xl 64 8
    tranche xl "GPT-2 1.5B, 8 x $context, g = 8"
    torch xl_torch "PyTorch, compiled" torch_gpt2.py --layers "$layers" --width 1600 \
        --heads 25 --context "$context" --micro-batch 8 --accumulation 8 --compile
}

# llama_sizes: of Llama 7B
llama_sizes() {
    context=${TRANCHE_BENCH_CONTEXT:-4096}
    layers=${chosen:-32} width=4096
    flops=$(calculate "6 * ($layers * (4 * $width ^ 2 + 3 * $width * 11008) + 32000 * $width)\
 + 6 * $layers * $width * $context")
}

llama() { # NAME
    cat >"$work/$1.json" <<END
{"model": {"model_type": "llama", "vocab_size": 32000, "hidden_size": $width,
           "intermediate_size": 11008, "num_hidden_layers": $layers,
           "num_attention_heads": 32, "max_position_embeddings": $context},
 "data": {"format": "bytes", "train": ["$text"], "max_length": $context},
 "out": "$work/$1", "steps": $steps, "train_batch_size": 8,
 "train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true}, "device": "$device",
 "optimizer": {"type": "AdamW", "params": {"lr": 1e-5, "weight_decay": 0.1}}}
END
}

host_gigabytes() {
    awk '/^MemAvailable/ { printf "%d", $2 / 1e6 }' /proc/meminfo
}

part_llama() {
    llama_sizes
    llama llama
    tranche llama "Llama 7B, 1 x $context, g = 8"
    torch llama_torch "PyTorch, compiled" torch_llama.py --size 7b --layers "$layers" \
        --context "$context" --micro-batch 1 --accumulation 8 --compile
    cp "$work/llama.json" "$work/llama_fp8.json"
    tranche llama_fp8 "the same with products in fp8" --set fp8.enabled=true
    cp "$work/llama.json" "$work/llama_away.json"
    if [ -n "$chosen" ] || [ "$(host_gigabytes)" -ge 100 ]; then
        tranche llama_away "gradients and optimizer on the host, wave = 8" \
            --set zero_optimization.offload_optimizer.device=cpu --set execution.wave=8
    else
        row "gradients and optimizer on the host: needs 100 GB" "-" "" "" ""
    fi
}

part_offload() {
    context=${TRANCHE_BENCH_CONTEXT:-1024}
    gpt2_sizes 48 1600 25
    gpt2 resident 128 8
    tranche resident "GPT-2 1.5B, 8 x $context, g = 16, all on the device"
    cp "$work/resident.json" "$work/away.json"
    tranche away "the optimizer on the host, wave = 16" --set zero_optimization.offload_optimizer.device=cpu \
        --set execution.wave=16
}

part_cuts() {
    context=${TRANCHE_BENCH_CONTEXT:-1024}
    gpt2_sizes 12 768 12
    gpt2 whole 16 16 16
    tranche whole "GPT-2 124M, one micro-batch of 16"
    gpt2 parts 16 2 16
    tranche parts "eight micro-batches of 2"
}

gpu_machine
: >"$figures"
[ $# -gt 0 ] || set -- gpt2 xl llama offload cuts
head_of_rows
for part; do
    case $part in
    gpt2 | xl | llama | offload | cuts) "part_$part" ;;
    *)
        echo "gpu: unknown part $part; there are gpt2 xl llama offload cuts" >&2
        exit 2
        ;;
    esac
done
head_of_ratios
ratio "GPT-2 124M over PyTorch, compiled" 1.1 ">=" small.rate/small_torch.rate
ratio "GPT-2 1.5B over PyTorch, compiled" 1.15 ">=" xl.rate/xl_torch.rate
ratio "Llama 7B over PyTorch, compiled" 1.1 ">=" llama.rate/llama_torch.rate
ratio "Llama 7B, fp8 over bf16" 1.3 ">=" llama_fp8.rate/llama.rate
ratio "Llama 7B, gradients and optimizer on the host" 0.9 ">=" llama_away.rate/llama.rate
ratio "optimizer on the host over all on the device" 0.95 ">=" away.rate/resident.rate
ratio "eight micro-batches of 2 over one of 16" 0.97 ">=" parts.rate/whole.rate
