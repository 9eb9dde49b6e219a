#!/bin/sh
# busy.sh: the tokens a second of a small GPT-2, and the samples of two classifiers,
# while another process keeps one of the cores busy, and while none does, for numbers of
# threads and ways in which they wait for each other (docs/run-file.md, "A machine that
# others use, too"). It measures time and wants a machine that is quiet but for its own
# busy process. take=best takes the best step in place of the median (common.sh).
set -eu
cd "$(dirname "$0")/.."
. bench/common.sh
unset GOMP_SPINCOUNT OMP_WAIT_POLICY
core=$(taskset -cp $$ | sed 's/.*[ ,-]//') # the last one that may be used

cat >"$work/small.json" <<END
{"model": {"model_type": "gpt2", "vocab_size": 256, "n_positions": 64, "n_layer": 4,
           "n_embd": 64, "n_head": 4, "resid_pdrop": 0, "embd_pdrop": 0,
           "attn_pdrop": 0},
 "data": {"format": "bytes", "train": ["$text"]}, "out": "$work/small",
 "steps": 200, "train_batch_size": 12, "checkpoint": {"keep": 1},
 "optimizer": {"type": "AdamW", "params": {"lr": 1e-3}}}
END

# classifier NAME SIZES FEATURES T: of 10 classes, as $work/NAME.json
classifier() {
    cat >"$work/$1.json" <<END
{"model": {"model_type": "mlp", "layer_sizes": $2},
 "data": {"format": "random", "samples": 2000, "features": $3, "classes": 10},
 "out": "$work/$1", "steps": 4000, "train_batch_size": $4, "checkpoint": {"keep": 1},
 "optimizer": {"type": "Adam", "params": {"lr": 1e-3}}}
END
}
classifier tiny '[64, 64, 10]' 64 32
classifier digits '[784, 128, 10]' 784 32

# rate SET [NAME=VALUE]: of $model, with a key of the run file, and in an environment
rate() {
    set=$1
    shift
    measured "$model" env "$@" "$program" train "$work/$model.json" --set "$set"
}

# row NAME SET [NAME=VALUE]: alone, and beside a busy process
row() {
    name=$1
    shift
    alone=$(rate "$@")
    taskset -c "$core" timeout 120 sh -c 'while :; do :; done' &
    other=$!
    busy=$(rate "$@")
    kill "$other"
    wait "$other" 2>/dev/null || true
    printf '| %s | %.0f | %.0f |\n' "$name" "${alone%% *}" "${busy%% *}"
}

head_of() {
    printf '\n%s\n\n| threads, and how they wait | alone | one core busy |\n' "$1"
    echo '|---|---|---|'
}

cores=$(nproc)
machine
model=small
head_of 'GPT-2 of 4 layers of width 64, micro-batches of 12 x 64, tokens/s:'
row 'as the program sets it' seed=0
row 'one (`execution.threads` 1)' execution.threads=1
row 'all; `OMP_WAIT_POLICY=passive`' seed=0 OMP_WAIT_POLICY=passive
row 'all; `GOMP_SPINCOUNT=10000`' seed=0 GOMP_SPINCOUNT=10000
for model in tiny digits; do
    head_of "Classifier $(sed -n 's/.*"layer_sizes": \(.*\)},/\1/p' \
        "$work/$model.json"), micro-batches of 32, samples/s:"
    row 'as the program sets it' seed=0
    row 'one (`execution.threads` 1)' execution.threads=1
    row "all (\`execution.threads\` $cores)" "execution.threads=$cores"
done
