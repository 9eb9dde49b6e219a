#!/bin/sh
# models.sh: a Llama of SmolLM2-135M's sizes in f32 and bf16, one process of all cores,
# micro-batches of 1, g = 4: tokens a second, their share of what the processor's products
# allow, and memory; transformers' model in PyTorch beside it, eager and compiled, where
# TRANCHE_PEER_PYTHON has them. On two cores a quarter of an hour.
#
#     bench/models.sh
#
#     TRANCHE_BENCH_LAYERS    for a quick try (30)
set -u
cd "$(dirname "$0")/.." || exit 1
. bench/common.sh
. bench/table.sh
threads=$(nproc)
layers=${TRANCHE_BENCH_LAYERS:-30}
steps=${TRANCHE_BENCH_STEPS:-4}
context=${TRANCHE_BENCH_CONTEXT:-1024}

cat >"$work/llama.json" <<END
{"model": {"model_type": "llama", "vocab_size": 49152, "hidden_size": 576,
           "intermediate_size": 1536, "num_hidden_layers": $layers,
           "num_attention_heads": 9, "num_key_value_heads": 3, "rope_theta": 100000,
           "max_position_embeddings": 8192, "tie_word_embeddings": true},
 "data": {"format": "bytes", "train": ["$text"], "max_length": $context},
 "out": "$work/llama", "steps": $steps, "train_batch_size": 4,
 "train_micro_batch_size_per_gpu": 1, "checkpoint": {"keep": 1},
 "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "weight_decay": 0.1}}}
END

# limit TYPE: tokens a second if a step were products alone
limit() {
    limit_row "$1" "$context" 576 "$layers" 49152 1 "$1" 192 1536
}

# one TYPE BF16: a row of Tranche
one() {
    cp "$work/llama.json" "$work/$1.json"
    run_ranks "$1" "Tranche, $1" 1 "$threads" --set "out=$work/$1" \
        --set "bf16.enabled=$2"
}

# torch NAME WHAT OPTION...
torch() {
    name=$1 what=$2
    shift 2
    peer_row "$name" "$what" torch_llama.py --layers "$layers" --context "$context" \
        --micro-batch 1 --accumulation 4 --steps "$steps" "$@"
}

machine
echo
echo "SmolLM2-135M's sizes, context $context, m = 1, g = 4"
head_of_columns
# The limit right before and after each row: the machine's speed changes with the minutes.
limit f32
one f32 false
limit f32
limit bf16
one bf16 true
limit bf16
torch eager_f32 "PyTorch, f32, eager"
torch eager_bf16 "PyTorch, bf16 autocast, eager" --bf16
torch compiled_bf16 "PyTorch, bf16 autocast, compiled" --bf16 --compile
one f32 false
one bf16 true
limit f32
limit bf16
head_of_ratios
ratio "f32: of what its products allow" 0.85 ">=" f32.rate/limit_f32.rate
ratio "bf16: of what its products allow" 0.85 ">=" bf16.rate/limit_bf16.rate
ratio "f32 over PyTorch, eager" 1.5 ">=" f32.rate/eager_f32.rate
ratio "bf16 over PyTorch's autocast, eager" 1.5 ">=" bf16.rate/eager_bf16.rate
ratio "bf16 over PyTorch's autocast, compiled" 1 ">=" bf16.rate/compiled_bf16.rate
ratio "f32: memory over PyTorch's" 1 "<=" f32.peak/eager_f32.peak
ratio "bf16: memory over PyTorch's" 1 "<=" bf16.peak/eager_bf16.peak
