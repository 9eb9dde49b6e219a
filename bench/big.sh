#!/bin/sh
# big.sh: a model larger than the memory: GPT-2 XL (1.56 billion parameters, 25 GB of
# parameters, gradients and state) with 3 GB on the device, 10 GB on the host and the rest
# in a file; context 1024, T = 8. Prints each step, what the disk moved, what was waited
# for, the peaks, and the first loss beside that of transformers on the same weights.
# Needs 60 GB of disk; about ten minutes a step on two cores.
#
#     bench/big.sh [STEPS]                  (3)
#
#     TRANCHE_BENCH_NVME    a folder on the disk to use (the one of temporary files)
#     TRANCHE_BENCH_LAYERS  fewer layers, for a quick try
set -u
cd "$(dirname "$0")/.." || exit 1
. bench/common.sh
steps=${1:-3}
disk=${TRANCHE_BENCH_NVME:-$work}
OMP_WAIT_POLICY=passive # the threads that copy and read share a core
export OMP_WAIT_POLICY
[ -n "${TRANCHE_BENCH_LAYERS:-}" ] || layers=48

model='"gpt2-xl"'
if [ -n "$peer" ]; then
    run_peer gpt2_forward.py --make "$work/xl" --layers "$layers" || exit 1
    model="\"$work/xl\""
elif [ "$layers" -ne 48 ]; then
    model="{\"model_type\": \"gpt2\", \"n_layer\": $layers, \"n_embd\": 1600, \"n_head\": 25}"
fi
cat >"$work/big.json" <<END
{"model": $model, "out": "$work/big", "steps": $steps, "train_batch_size": 8,
 "data": {"format": "bytes", "train": ["$text"], "order": "sequential"},
 "memory": {"device": "3GB", "host": "10GB",
            "nvme": {"path": "$disk", "bytes": "40GB"}},
 "checkpoint": {"keep": 1},
 "optimizer": {"type": "AdamW", "params": {"lr": 1e-5, "weight_decay": 0.1}}}
END
machine
"$program" plan "$work/big.json" | sed '/^train:/,$d'
"$program" train "$work/big.json" --trace "$work/trace.json" --trace-step "$steps" \
    >"$work/big.log" 2>&1 || {
    cat "$work/big.log"
    exit 1
}
sed -n 's/.*"step": \([0-9]*\).*"loss": \([0-9.e+-]*\).*"seconds": \([0-9.e+-]*\).*/step \1: loss \2, \3 s/p' \
    "$work/big/metrics.jsonl"
sed -n '$s/.*"peak_bytes": \({[^}]*}\).*/peak bytes: \1/p' "$work/big/metrics.jsonl"

# Of the last step: what it computed, what the disk did meanwhile, and what the disk does
# alone.
awk '/"ph": "X"/ {
        match($0, /"ts": [0-9.]*/); from = substr($0, RSTART + 6, RLENGTH - 6)
        match($0, /"dur": [0-9.]*/); took = substr($0, RSTART + 7, RLENGTH - 7)
        match($0, /"tid": [0-9]*/); on = substr($0, RSTART + 7, RLENGTH - 7)
        busy[on] += took
        if (from + took > end) end = from + took
    }
    END {
        printf "last step: %.2f s, of which nothing was computed for %.2f s (%.2f %%)\n",
            end / 1e6, (end - busy[0]) / 1e6, 100 * (1 - busy[0] / end)
        printf "the disk read or wrote for %.2f s\n", busy[4] / 1e6
    }' "$work/trace.json"
build/bench/copy_engine "$disk" | sed 's/^/alone: /'
if [ -n "$peer" ]; then
    run_peer gpt2_forward.py --loss "$work/xl" --text "$text" &&
        echo "transformers: loss $(figure loss "$work/peer.json")"
fi
