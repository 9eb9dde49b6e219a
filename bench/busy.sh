#!/bin/sh
# busy.sh: the tokens a second of a small GPT-2 while another process keeps one of the
# cores busy, and while none does, for ways in which threads wait for each other
# (docs/run-file.md, "A machine that others use, too"). It measures time and wants a
# machine that is quiet but for its own busy process.
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

# rate SET [NAME=VALUE]: with a key of the run file, and in an environment
rate() {
    set=$1
    shift
    measured small env "$@" "$program" train "$work/small.json" --set "$set"
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

machine
echo '| threads, and how they wait | alone | one core busy |'
echo '|---|---|---|'
row 'all; as the program sets it' seed=0
row 'one (`execution.threads` 1)' execution.threads=1
row 'all; `OMP_WAIT_POLICY=passive`' seed=0 OMP_WAIT_POLICY=passive
row 'all; `GOMP_SPINCOUNT=10000`' seed=0 GOMP_SPINCOUNT=10000
