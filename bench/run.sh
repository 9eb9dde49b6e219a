#!/bin/sh
# run.sh: measures Tranche on this machine and prints one table; beside it the limit of
# the processor's matrix products on the same shapes, and PyTorch where a Python that has
# it is named by TRANCHE_PEER_PYTHON. Everything in one run, since machines differ and
# their speed drifts: read the ratios. About ten minutes on two cores.
#
#     bench/run.sh [gpt2] [cuts] [nano] [classifier] [start]     (default: all of them)
set -u
cd "$(dirname "$0")/.." || exit 1
. bench/common.sh

# gpt2 NAME CONTEXT T M STEPS: tokens a second, and the peak of the process in MB
gpt2() {
    gpt2_file "$@"
    measured "$1" "$program" train "$work/$1.json" |
        awk '{ printf "%s %.0f\n", $1, $2 / 1e6 }'
}

row() {
    printf '| %-58s | %12s | %9s |\n' "$1" "$2" "$3"
}

# torch NAME SCRIPT OPTION...: the peer's figure from the JSON it prints.
torch() {
    name=$1 script=$2
    shift 2
    if [ -z "$peer" ]; then
        row "$name" "not installed" ""
        return
    fi
    if ! run_peer "$script" "$@"; then
        row "$name" "failed" ""
        return
    fi
    rate=$(figure tokens_per_second "$work/peer.json")
    peak=$(figure peak_bytes "$work/peer.json")
    loss=$(figure validation_loss "$work/peer.json")
    row "$name${loss:+, validation loss $loss}" "${rate:-?}" \
        "$(calculate "${peak:-0} / 1e6")"
}

bench_gpt2() {
    limit=$(build/bench/limits | tee "$work/limits.txt" |
        sed -n 's/.*"limit_tokens_per_second": \([0-9.]*\).*/\1/p')
    row "product limit, GPT-2 124M, context 1024" "$limit" ""
    # shellcheck disable=SC2046
    set -- $(gpt2 base 1024 4 1 4)
    row "Tranche, m = 1, g = 4 ($(calculate "100 * $1 / $limit") % of the limit)" "$1" "$2"
    torch "PyTorch eager, m = 1, g = 4" torch_gpt2.py --context 1024 --micro-batch 1 \
        --accumulation 4 --steps 3
}

bench_cuts() {
    for cut in "8 8" "8 1" "64 1"; do
        # shellcheck disable=SC2046,SC2086
        set -- $cut $(gpt2 cut 256 $cut 3)
        row "Tranche, context 256, T = $1 as micro-batches of $2" "$3" "$4"
    done
    for cut in "8 1" "1 8"; do
        # shellcheck disable=SC2086
        set -- $cut
        torch "PyTorch eager, context 256, $2 micro-batches of $1" torch_gpt2.py \
            --context 256 --micro-batch "$1" --accumulation "$2" --steps 3
    done
}

bench_nano() {
    file=${TRANCHE_BENCH_TEXT:-$text}
    cat >"$work/nano.json" <<END
{"model": {"model_type": "gpt2", "vocab_size": 256, "n_positions": 64, "n_layer": 4,
           "n_head": 4, "n_embd": 128, "resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0},
 "data": {"format": "bytes", "train": ["$file"], "validation": 0.1},
 "steps": 2000, "out": "$work/nano", "train_batch_size": 12, "seed": 1337,
 "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "betas": [0.9, 0.99],
     "weight_decay": 0.1}, "groups": [{"match": ["*.bias", "*ln_*"], "weight_decay": 0}]},
 "scheduler": {"type": "WarmupCosineLR", "params": {"warmup_num_steps": 100,
     "warmup_type": "linear", "total_num_steps": 2000, "cos_min_ratio": 0.1}}}
END
    # shellcheck disable=SC2046
    set -- $(measured nano "$program" train "$work/nano.json")
    loss=$(sed -n 's/.*validation loss \([0-9.]*\).*/\1/p' "$work/nano.log" | tail -n 1)
    row "Tranche, nanoGPT's CPU setting, validation loss $loss" "$1" \
        "$(calculate "$2 / 1e6")"
    torch "PyTorch eager, the same" torch_nano.py --data "$file"
}

# seconds COMMAND...: the best wall time of five whole processes.
seconds() {
    for _ in 1 2 3 4 5; do
        begin=$(date +%s%N)
        "$@" >/dev/null 2>&1 || return 1
        end=$(date +%s%N)
        echo $(((end - begin) / 1000))
    done | sort -n | head -n 1 | awk '{ printf "%.3f s", $1 / 1e6 }'
}

bench_classifier() {
    row "Tranche, small classifier, 5 epochs, whole process" \
        "$(seconds "$program" train examples/classifier.json --out "$work/small" --resume never)" ""
    if [ -n "$peer" ]; then
        row "PyTorch, the same" "$(seconds "$peer" bench/peers/torch_mlp.py)" ""
    fi
}

bench_start() {
    gpt2 start 1024 1 1 1 >/dev/null
    row "Tranche, GPT-2 124M from command to the first step" \
        "$(sed -n 's/^ready in \([0-9.]*\) s.*/\1 s/p' "$work/start.log")" ""
}

machine && echo
row "what" "tokens/s" "peak MB"
row "----------------------------------------------------------" "------------" "---------"
for part in "${@:-all}"; do
    case $part in
    all) bench_gpt2 && bench_cuts && bench_nano && bench_classifier && bench_start ;;
    gpt2 | cuts | nano | classifier | start) "bench_$part" ;;
    *) echo "bench: unknown part $part; there are gpt2 cuts nano classifier start" >&2
        exit 2 ;;
    esac
done
[ ! -s "$work/limits.txt" ] || { echo && sed '$d' "$work/limits.txt"; }
