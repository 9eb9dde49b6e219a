#!/bin/sh
# gpu.sh: training on one NVIDIA GPU in bf16: tokens a second, model flops utilization
# (MFU) and the memory that the GPU has in use at the most, with PyTorch's torch.compile
# beside it, by flash and by cuDNN's attention, of which the faster row counts.
#
#     bench/gpu.sh [gpt2] [gpt2_torch] [xl] [xl_torch] [llama] [llama_torch] [lora]
#                  [lora_torch] [offload] [cuts]                     (default: all)
#
#     TRANCHE_BENCH_FIGURES    a file that keeps rates, so that the last table is of all
#                              calls that name it
#
# Other settings are environment variables, told in bench/gpu_models.sh. Without
# TRANCHE_PEER_PYTHON the peer is python3, where that has PyTorch for the GPU.
#
# MFU counts 6 N + 6 L C S operations a token: N parameters, L layers of width C, context
# S, of which a token attends to half on average.
set -u
cd "$(dirname "$0")/.." || exit 1
chosen=${TRANCHE_BENCH_LAYERS:-}
. bench/common.sh
. bench/table.sh
. bench/gpu_models.sh
figures=${TRANCHE_BENCH_FIGURES:-$figures}
touch "$figures"
take=best                   # of several rows of the peer
warm=${chosen:+1} warm=${warm:-5} # its steps that do not count

# watched FILE COMMAND...: runs the command; FILE gets the MiB that the GPU has in use at
# the most meanwhile, beside what it had at first
watched() {
    watched_file=$1
    shift
    echo 0 >"$watched_file"
    has_gpu || {
        "$@"
        return
    }
    nvidia-smi --id=0 --query-gpu=memory.used --format=csv,noheader,nounits \
        --loop-ms=200 >"$work/used" 2>/dev/null &
    watcher=$!
    for _ in 1 2 3 4 5 6 7 8 9 10; do # until it has seen what was there before
        [ -s "$work/used" ] || sleep 0.5
    done
    "$@"
    result=$?
    kill "$watcher" 2>/dev/null
    wait "$watcher" 2>/dev/null
    awk 'NR == 1 { first = $1 } $1 > most { most = $1 } END { print most - first }' \
        "$work/used" >"$watched_file"
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
    awk -v rate="$1" -v flops="$flops" -v peak="$peak_rate" \
        'BEGIN { if (peak > 0) printf "%.3f", rate * flops / peak; else print "-" }'
}

# tranche NAME WHAT OPTION...: makes the steps of $work/NAME.json and prints its row
tranche() {
    name=$1 what=$2
    shift 2
    if ! watched "$work/most" "${programs}steps" "$work/$name.json" "$@" \
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

# torch NAME WHAT SCRIPT OPTION...: compiled, with each attention
torch() {
    peer_name=$1 peer_what=$2
    shift 2
    if [ -z "$peer" ]; then
        row "$peer_what" "no peer" "" "" ""
        return
    fi
    for attention in cudnn flash; do
        torch_row "$peer_name" "$peer_what, $attention" "$@" --attention "$attention"
    done
}

torch_row() {
    name=$1 what=$2
    shift 2
    if watched "$work/most" run_peer "$@" --compile default --device "$peer_device" --bf16 \
        --steps $((steps + warm)) --warm "$warm"; then
        rate=$(figure tokens_per_second "$work/peer.json")
        most=$(cat "$work/most")
        echo "$name $rate $most 0" >>"$figures"
        row "$what" "$rate" "$(mfu "$rate")" "$most" ""
    else
        row "$what" failed "" "" ""
    fi
}

# torch_gpt2 NAME M G: with the vocabulary padded to a multiple of 64, then as it is
torch_gpt2() {
    of=$1 micro=$2 accumulation=$3
    for tokens in $(((vocabulary + 63) / 64 * 64)) "$vocabulary"; do
        torch "$of" "PyTorch, compiled, $tokens tokens" torch_gpt2.py --layers "$layers" \
            --width "$width" --heads "$heads" --vocabulary "$tokens" \
            --context "$context" --micro-batch "$micro" --accumulation "$accumulation"
    done
}

part_gpt2() {
    gpt2_sizes 12 768 12
    gpt2 small 512 16
    tranche small "GPT-2 124M, 16 x $context, g = 32"
}

part_gpt2_torch() {
    gpt2_sizes 12 768 12
    torch_gpt2 small_torch 16 32
}

part_xl() {
    gpt2_sizes 48 1600 25
    gpt2 xl 64 8
    tranche xl "GPT-2 1.5B, 8 x $context, g = 8"
}

part_xl_torch() {
    gpt2_sizes 48 1600 25
    torch_gpt2 xl_torch 8 8
}

part_llama() {
    llama_sizes
    llama llama
    tranche llama "Llama 7B, 1 x $context, g = 8"
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

part_llama_torch() {
    llama_sizes
    torch llama_torch "PyTorch, compiled" torch_llama.py --size 7b --layers "$layers" \
        --context "$context" --micro-batch 1 --accumulation 8
}

# A folder of weights, of which adapters are beside; PyTorch makes it.
part_lora() {
    llama_sizes
    if [ -z "$peer" ] || ! run_peer torch_llama.py --size 7b --layers "$layers" \
        --device "$peer_device" --save "$work/base"; then
        row "Llama 7B, LoRA of rank 16" "no peer" "" "" ""
        return
    fi
    llama lora
    set -- --set "model=\"$work/base\"" \
        --set 'adapter={"r": 16, "lora_alpha": 32, "target_modules": "all-linear"}'
    tranche lora "Llama 7B, LoRA of rank 16" "$@"
    cp "$work/lora.json" "$work/qlora.json"
    tranche qlora "the same on weights in NF4" "$@" --set quantization.base=nf4
}

part_lora_torch() {
    llama_sizes
    torch lora_torch "PyTorch and PEFT, compiled" torch_llama.py --size 7b --lora 16 \
        --layers "$layers" --context "$context" --micro-batch 1 --accumulation 8
}

part_offload() {
    gpt2_sizes 48 1600 25
    gpt2 resident 128 8
    tranche resident "GPT-2 1.5B, 8 x $context, g = 16, all on the device"
    cp "$work/resident.json" "$work/away.json"
    tranche away "the optimizer on the host, wave = 16" --set zero_optimization.offload_optimizer.device=cpu \
        --set execution.wave=16
}

part_cuts() {
    gpt2_sizes 12 768 12
    gpt2 whole 16 16 16
    tranche whole "GPT-2 124M, one micro-batch of 16"
    gpt2 parts 16 2 16
    tranche parts "eight micro-batches of 2"
    gpt2_sizes 48 1600 25
    gpt2 xl_whole 64 8
    tranche xl_whole "GPT-2 1.5B, 8 x $context, g = 8"
    gpt2 xl_parts 64 4
    tranche xl_parts "4 x $context, g = 16"
}

parts="gpt2 gpt2_torch xl xl_torch llama llama_torch lora lora_torch offload cuts"
gpu_machine
# shellcheck disable=SC2086 # words
[ $# -gt 0 ] || set -- $parts
head_of_rows
for part; do
    case " $parts " in
    *" $part "*) "part_$part" ;;
    *)
        echo "gpu: unknown part $part; there are $parts" >&2
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
ratio "Llama 7B with LoRA over PyTorch and PEFT, compiled" 1.1 ">=" lora.rate/lora_torch.rate
ratio "the same on weights in NF4" 1 ">=" qlora.rate/lora_torch.rate
ratio "optimizer on the host over all on the device" 0.95 ">=" away.rate/resident.rate
ratio "GPT-2 124M, eight micro-batches of 2 over one of 16" 0.75 ">=" parts.rate/whole.rate
ratio "GPT-2 1.5B, micro-batches of 4 over those of 8" 0.97 ">=" xl_parts.rate/xl_whole.rate
