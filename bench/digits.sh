#!/bin/sh
# digits.sh: ResNet-20 on scikit-learn's digits: accuracy on a held-out fifth, images a
# second beside PyTorch, and how far cutting the batch leads training away. Needs a
# Python that TRANCHE_PEER_PYTHON names, with torch, numpy, safetensors, scikit-learn.
#
#     bench/digits.sh [accuracy] [rate] [cuts]     (default: all of them)
set -u
cd "$(dirname "$0")/.." || exit 1
. bench/common.sh

# Shared by all runs: shapes and data, T samples as micro-batches of M.
digits_file() { # NAME T M LENGTH MORE
    cat >"$work/$1.json" <<END
{"model": {"model_type": "resnet", "depth": 20, "num_channels": 1, "image_size": 8},
 "data": {"format": "npy", "train": ["$work/x.npy"], "labels": "$work/y.npy",
          "validation": ["$work/vx.npy"], "validation_labels": "$work/vy.npy",
          "image_mean": 4.9, "image_std": 6.0},
 "train_batch_size": $2, "train_micro_batch_size_per_gpu": $3, $4,
 "out": "$work/$1", "seed": 1, "gradient_clipping": 0, "checkpoint": {"keep": 1},
 "optimizer": {"type": "SGD", "params": {"lr": 0.05, "momentum": 0.9,
                                         "weight_decay": 5e-4}}${5:-}}
END
}

schedule() { # WARM-UP STEPS
    printf ', "scheduler": {"type": "WarmupCosineLR", "params": {"total_num_steps": "auto", '
    printf '"warmup_num_steps": %s, "warmup_type": "linear"}}' "$1"
}

row() {
    printf '| %-64s | %12s |\n' "$1" "$2"
}

accuracy() { # NAME: in percent, at the end of its run
    sed -n 's/.*"validation_accuracy": \([0-9.]*\).*/\1/p' "$work/$1/metrics.jsonl" |
        tail -n 1 | awk '{ printf "%.2f %%\n", 100 * $1 }'
}

bench_accuracy() {
    digits_file small 32 32 '"epochs": 20' "$(schedule 45)"
    measured small "$program" train "$work/small.json" >/dev/null
    row "Tranche, T = 32, 20 epochs: accuracy" "$(accuracy small)"
    digits_file large 512 32 '"epochs": 20' "$(schedule 15), \"batch_scaling\":
        {\"rule\": \"linear\", \"reference_batch\": 32}"
    measured large "$program" train "$work/large.json" >/dev/null
    row "Tranche, T = 512 by linear scaling and warm-up: accuracy" "$(accuracy large)"
    run_peer torch_digits.py --data "$work" --epochs 20 &&
        row "PyTorch, T = 32, 20 epochs: accuracy" \
            "$(calculate "100 * $(figure validation_accuracy "$work/peer.json")" %.2f) %"
}

# Both in turn, so that both have the machine as it is at that time.
bench_rate() {
    for cut in "32 1" "4 8"; do
        # shellcheck disable=SC2086
        set -- $cut
        digits_file rate 32 "$1" '"epochs": 5' "$(schedule 45)"
        ours=$(measured rate "$program" train "$work/rate.json" | cut -d ' ' -f 1)
        row "Tranche, $2 micro-batches of $1, images a second" "$ours"
        run_peer torch_digits.py --data "$work" --micro-batch "$1" --accumulation "$2" \
            --epochs 5 || return
        theirs=$(figure samples_per_second "$work/peer.json")
        row "PyTorch, $2 micro-batches of $1, images a second" "$theirs"
        row "    ratio" "$(calculate "$ours / $theirs" %.2f)"
    done
}

# Five steps from the same weights on the same samples.
cut_steps() { # NAME M MORE
    digits_file "$1" 32 "$2" '"steps": 5' "${3:-}"
    "$program" train "$work/$1.json" --set data.order=sequential \
        --resume never >"$work/$1.log" 2>&1 || cat "$work/$1.log" >&2
}

weights() { # NAME
    echo "$work/$1/checkpoints/latest/model.safetensors"
}

bench_cuts() {
    digits_file start 32 32 '"steps": 1'
    "$program" train "$work/start.json" --set optimizer.params.lr=0 >"$work/start.log" 2>&1
    for cut in 32 4; do
        cut_steps "ours-$cut" "$cut"
    done
    for cut in "32 1" "4 8"; do
        # shellcheck disable=SC2086
        set -- $cut
        run_peer torch_digits.py --data "$work" --micro-batch "$1" --accumulation "$2" \
            --start "$(weights start)" --save "$work/theirs-$1" || return
    done
    row "Tranche, 8 x 4 against 32 x 1 after 5 steps: largest distance" \
        "$("$peer" bench/peers/distance.py "$(weights start)" "$(weights ours-32)" \
            "$(weights ours-4)")"
    row "PyTorch, the same by accumulation" \
        "$("$peer" bench/peers/distance.py "$(weights start)" "$work/theirs-32" \
            "$work/theirs-4")"
}

if [ -z "$peer" ] || ! "$peer" bench/peers/torch_digits.py --write "$work"; then
    echo "digits.sh: TRANCHE_PEER_PYTHON names no Python with scikit-learn and torch" >&2
    exit 1
fi
[ $# -gt 0 ] || set -- accuracy rate cuts
machine
echo
row "ResNet-20, 8 x 8 digits" "measured"
echo "|---|---|"
for part in "$@"; do
    case $part in
    accuracy | rate | cuts) "bench_$part" ;;
    *) echo "digits.sh: no part $part" >&2 && exit 2 ;;
    esac
done
