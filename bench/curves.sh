#!/bin/sh
# curves.sh MODEL [pretrain] [classify] [embed]: ledgers and losses of encoders, the tables
# of docs/encoders.md. MODEL: a folder of all-MiniLM-L6-v2. Texts are sentences of the
# docstrings of Python's packages on this machine:
#   pretrain  a small BERT from nothing, on masked tokens
#   classify  MODEL: is the second sentence that behind the first?
#   embed     MODEL: pairs of sentences that follow each other, in two passes
# They show no speed, so the machine need not be quiet. On two cores a quarter of an hour.
#
#     TRANCHE_PAIRS_FOLDERS   where the docstrings are (/usr/lib/python3 and the like)
set -eu
cd "$(dirname "$0")/.."
. bench/common.sh
model=$(cd "$1" && pwd)
shift
validation=300
# shellcheck disable=SC2086 # several folders
python3 bench/pairs.py "$work/train.jsonl" "$work/validation.jsonl" 1100 $validation \
    ${TRANCHE_PAIRS_FOLDERS:-/usr/lib/python3*} >"$work/log"

# texts NAME: the sentences, a line each
texts() {
    sed 's/^{"anchor": "\(.*\)", "positive": "\(.*\)"}$/\1\n\2/' "$work/$1.jsonl"
}

# labelled NAME: of every second pair the positive of the pair before it
labelled() {
    awk -F '", "positive": ' '{
        first = $1; second = $2
        other = NR % 2 == 0
        sub(/^{"anchor": /, "", first)
        sub(/}$/, "", second)
        printf "{\"text\": %s\", \"text_pair\": %s, \"label\": \"%s\"}\n", first,
            other ? last : second, other ? "other" : "next"
        last = second
    }' "$work/$1.jsonl"
}

# run NAME: trains $work/NAME.json; prints the ledger of its plan, and its losses
run() {
    "$program" plan "$work/$1.json" 2>"$work/log" >"$work/plan"
    sed -n 's/^model .*/&/p; s/^batch .*/&/p; /^ledger/,/host .*total/p' "$work/plan"
    "$program" train "$work/$1.json" >"$work/log" 2>&1 || {
        cat "$work/log" >&2
        return 1
    }
    sed -n 's/.*"step": \([0-9]*\).*"validation_loss": \([0-9.]*\).*/step \1 validation loss \2/p' \
        "$work/$1/metrics.jsonl"
    awk 'match($0, /"loss": [0-9.]*/) { loss[++n] = substr($0, RSTART + 8, RLENGTH - 8) }
         END { for (i = 1; i <= n; i += (n > 8 ? int(n / 8) : 1)) printf "step %d loss %s\n", i, loss[i] }' \
        "$work/$1/metrics.jsonl"
}

adamw() {
    echo "\"optimizer\": {\"type\": \"AdamW\", \"params\": {\"lr\": $1, \"weight_decay\": 0.01}},
 \"scheduler\": {\"type\": \"WarmupCosineLR\", \"unit\": \"samples\",
               \"params\": {\"warmup_num_steps\": $2, \"warmup_type\": \"linear\"}}"
}

curve_pretrain() {
    texts train >"$work/train.txt"
    texts validation >"$work/validation.txt"
    cat >"$work/pretrain.json" <<END
{"model": {"model_type": "bert", "vocab_size": 30522, "hidden_size": 128,
           "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 512,
           "max_position_embeddings": 128},
 "task": "masked_lm", "out": "$work/pretrain", "seed": 1,
 "data": {"format": "text", "train": ["$work/train.txt"],
          "validation": ["$work/validation.txt"], "tokenizer": "$model/tokenizer.json",
          "document_separator": "\n", "max_length": 64},
 "train_batch_size": 32, "train_micro_batch_size_per_gpu": 16, "epochs": 4,
 "evaluation": {"every": 20}, "checkpoint": {"keep": 1},
 $(adamw 2e-3 320)}
END
    run pretrain
}

curve_classify() {
    labelled train >"$work/labelled.jsonl"
    labelled validation >"$work/labelled_validation.jsonl"
    cat >"$work/classify.json" <<END
{"model": "$model", "task": "classification", "out": "$work/classify", "seed": 1,
 "data": {"format": "jsonl", "train": ["$work/labelled.jsonl"],
          "validation": ["$work/labelled_validation.jsonl"], "max_length": 48},
 "train_batch_size": 32, "train_micro_batch_size_per_gpu": 8, "epochs": 1,
 "evaluation": {"every": 10}, "checkpoint": {"keep": 1},
 $(adamw 2e-4 160)}
END
    run classify
    "$program" evaluate "$work/classify" --data "$work/labelled_validation.jsonl" \
        2>"$work/log"
}

curve_embed() {
    cat >"$work/embed.json" <<END
{"model": "$model", "task": "contrastive", "out": "$work/embed", "seed": 1,
 "data": {"format": "jsonl", "train": ["$work/train.jsonl"], "max_length": 32},
 "contrastive": {"duplicates": "mask", "passes": 2},
 "train_batch_size": 256, "train_micro_batch_size_per_gpu": 16, "epochs": 1,
 "checkpoint": {"keep": 1},
 $(adamw 2e-4 256)}
END
    "$program" evaluate "$model" --data "$work/validation.jsonl" --format jsonl 2>"$work/log"
    run embed
    "$program" evaluate "$work/embed" --data "$work/validation.jsonl" --format jsonl \
        2>"$work/log"
}

machine
for part in ${*:-pretrain classify embed}; do
    printf '\n%s\n' "$part"
    "curve_$part"
done
