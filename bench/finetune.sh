#!/bin/sh
# finetune.sh FOLDER: LoRA beside SmolLM2-135M (a Hugging Face folder of it), one
# micro-batch of 1,024 tokens a step, with the base in the type that the processor
# multiplies in (bf16, else f32) and in NF4: tokens a second and memory, beside the rate
# of the products that such a step needs, and beside PEFT (TRANCHE_PEER_PYTHON). Runs
# and limits take turns, twice, because another load of the machine changes them all;
# only ratios are for comparison.
#
#     TRANCHE_BENCH_STEPS   of each run (4)
set -eu
cd "$(dirname "$0")/.."
. bench/common.sh
. bench/table.sh
model=$(cd "${1:?usage: bench/finetune.sh FOLDER}" && pwd)
steps=${TRANCHE_BENCH_STEPS:-4}
rank=16
threads=$(nproc)
type=f32 bits=false
if has_products bf16; then
    type=bf16 bits=true
fi

# adapter_file NAME QUANTIZATION
adapter_file() {
    cat >"$work/$1.json" <<END
{"model": "$model", "out": "$work/$1", "bf16": {"enabled": $bits}, "seed": 1,
 "adapter": {"type": "lora", "r": $rank, "lora_alpha": 32, "target_modules": "all-linear"},
 "quantization": $2,
 "data": {"format": "text", "train": ["$text"], "max_length": 1024},
 "steps": $steps, "train_batch_size": 1, "checkpoint": {"keep": 1},
 "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}}
END
}

# peft_row: PEFT on the same sizes
peft_row() {
    [ -n "$peer" ] || return 0
    set -- "$model" --steps "$steps" --rank "$rank"
    [ "$type" = f32 ] || set -- "$@" --bf16
    if ! run_peer_once peft_lora.py "$@"; then
        columns "PEFT and transformers" failed "" "" ""
        return 0
    fi
    rate=$(figure tokens_per_second "$work/peer.json")
    bytes=$(figure peak_bytes "$work/peer.json")
    echo "peft $rate $bytes 0" >>"$figures"
    columns "PEFT and transformers, $type" "$rate" "$(calculate "$bytes / 1e6")" "" ""
}

machine
head -c 400000 "$text" >"$work/some.txt"
text=$work/some.txt
adapter_file plain '{}'
adapter_file nf4 '{"base": "nf4", "double": true}'
head_of_columns
for turn in 1 2; do
    limit_row "$type" 1024 576 30 49152 1 "$type" 192 1536 "$rank"
    run_ranks plain "LoRA, base in $type" 1 "$threads"
    run_ranks nf4 "LoRA, base in NF4" 1 "$threads"
    [ "$turn" -eq 2 ] || peft_row
done
head_of_ratios
ratio "LoRA: of the products, the best of each" 0.80 ">=" "plain.rate/limit_$type.rate"
ratio "LoRA: of the products in order" 0.80 ">=" "plain.rate/order_$type.rate"
ratio "base in NF4 over base in $type" 0.85 ">=" nf4.rate/plain.rate
ratio "LoRA over PEFT, tokens a second" 1.5 ">=" plain.rate/peft.rate
ratio "LoRA over PEFT, memory" 0.6 "<=" plain.peak/peft.peak
