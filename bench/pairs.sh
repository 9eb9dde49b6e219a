#!/bin/sh
# pairs.sh MODEL: the numbers on pairs of texts of docs/batch.md. A model of embeddings,
# its last two layers of six trained on 4,096 pairs of sentences from Python's docstrings on
# this machine, in steps of 1,024 pairs and of 16, and how well it then finds the pairs of
# 1,000 others. FOLDERS: where the docstrings are.
#
#     TRANCHE_PAIRS_FOLDERS   (/usr/lib/python3 and the like)
set -eu
cd "$(dirname "$0")/.."
. bench/common.sh
model=$1
# shellcheck disable=SC2086 # several folders
python3 bench/pairs.py "$work/train.jsonl" "$work/validation.jsonl" 9192 1000 \
    ${TRANCHE_PAIRS_FOLDERS:-/usr/lib/python3*}
head -n 4096 "$work/train.jsonl" >"$work/pairs.jsonl"

# pairs T RATE: trains $work/T and evaluates it
pairs() {
    cat >"$work/$1.json" <<END
{"model": "$model", "task": "contrastive", "out": "$work/$1",
 "freeze": ["embeddings.*", "encoder.layer.0.*", "encoder.layer.1.*", "encoder.layer.2.*",
            "encoder.layer.3.*"],
 "data": {"format": "jsonl", "train": ["$work/pairs.jsonl"], "max_length": 32},
 "contrastive": {"duplicates": "mask"},
 "train_batch_size": $1, "train_micro_batch_size_per_gpu": 16, "epochs": 2,
 "checkpoint": {"keep": 1}, "seed": 1,
 "optimizer": {"type": "AdamW", "params": {"lr": $2, "weight_decay": 0.01}},
 "scheduler": {"type": "WarmupCosineLR", "unit": "samples",
               "params": {"warmup_num_steps": 1024, "warmup_type": "linear"}}}
END
    "$program" train "$work/$1.json" >"$work/log" 2>&1 || {
        cat "$work/log" >&2
        return 1
    }
    show "T = $1" "$work/$1"
}

# show NAME FOLDER: what evaluate says
show() {
    printf '%s\n' "$1"
    "$program" evaluate "$2" --data "$work/validation.jsonl" --format jsonl \
        --set data.max_length=40 2>"$work/log" | grep -E 'recall|mrr'
}

machine
show "as it is" "$model"
pairs 1024 4e-4
pairs 16 5e-5
