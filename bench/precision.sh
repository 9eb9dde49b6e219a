#!/bin/sh
# precision.sh: GPT-2 124M in bf16, one process of all cores, micro-batches of 1, g = 4:
# tokens a second, their share of what the processor's products of bf16 allow, PyTorch's
# autocast beside it where TRANCHE_PEER_PYTHON has it; and the loss of a small GPT-2 in
# 16 bits beside that in f32. On two cores about a quarter of an hour.
#
#     bench/precision.sh [speed] [loss]      (default: both)
#
#     TRANCHE_BENCH_TEXT    what the small GPT-2 is trained on, tinyshakespeare say
#                           (else the header files in /usr/include)
set -u
cd "$(dirname "$0")/.." || exit 1
. bench/common.sh
. bench/table.sh
threads=$(nproc)
steps=${TRANCHE_BENCH_STEPS:-4}
context=${TRANCHE_BENCH_CONTEXT:-1024}
losses=$work/losses # TYPE MEAN VALIDATION

# limit TYPE: tokens a second if a step were products alone
limit() {
    rate=$(build/bench/limits "$context" 768 "$layers" 50257 1 "$1" |
        sed -n 's/.*"limit_tokens_per_second": \([0-9.]*\).*/\1/p')
    [ -n "$rate" ] || return
    echo "limit_$1 $rate 0 0" >>"$figures"
    columns "products of $1 alone" "$rate" "" "" ""
}

# one TYPE BF16 FP16: a row of Tranche
one() {
    gpt2_file "$1" "$context" 4 1 "$steps"
    run_ranks "$1" "Tranche, $1" 1 "$threads" --set "bf16.enabled=$2" \
        --set "fp16.enabled=$3"
}

# torch NAME WHAT OPTION...
torch() {
    name=$1 what=$2
    shift 2
    if [ -z "$peer" ]; then
        columns "$what" "not installed" "" "" ""
        return
    fi
    peer_row "$name" "$what" torch_gpt2.py --layers "$layers" --context "$context" \
        --micro-batch 1 --accumulation 4 --steps "$steps" "$@"
}

bench_speed() {
    echo "GPT-2 124M, context $context, m = 1, g = 4"
    head_of_columns
    limit f32
    limit bf16
    one f32 false false
    one bf16 true false
    one fp16 false true
    torch eager "PyTorch, bf16 autocast, eager" --bf16
    torch compiled "PyTorch, bf16 autocast, compiled" --bf16 --compile
    one bf16 true false
    limit bf16
    head_of_ratios
    ratio "bf16: of what its products allow" 0.75 ">=" bf16.rate/limit_bf16.rate
    ratio "bf16 over PyTorch's autocast, eager" 1.7 ">=" bf16.rate/eager.rate
    ratio "bf16 over PyTorch's autocast, compiled" 1.35 ">=" bf16.rate/compiled.rate
    ratio "bf16 over f32" 1 ">=" bf16.rate/f32.rate
}

row_of_loss() {
    printf '| %-6s | %-22s | %-10s | %-18s | %-8s |\n' "$@"
}

# The mean loss of the last 50 steps, and the last validation loss.
read_losses() {
    awk 'match($0, /"validation_loss": [0-9.]*/) {
             validation = substr($0, RSTART + 19, RLENGTH - 19)
             next
         }
         match($0, /"loss": [0-9.]*/) { loss[++n] = substr($0, RSTART + 8, RLENGTH - 8) }
         END {
             for (i = n - 49; i <= n; i++) sum += loss[i]
             printf "%.4f %s", sum / 50, validation
         }' "$work/learn/metrics.jsonl"
}

# against_f32 TYPE: how far its two losses are off
against_f32() {
    awk -v type="$1" '
        $1 == "f32" { mean = $2; validation = $3 }
        $1 == type {
            printf "%+.2f %%, %+.2f %%", 100 * ($2 / mean - 1), 100 * ($3 / validation - 1)
        }' "$losses"
}

# learn TYPE BF16 FP16: a row of the small GPT-2's losses
learn() {
    cat >"$work/learn.json" <<END
{"model": {"model_type": "gpt2", "vocab_size": 256, "n_positions": 128, "n_layer": 4,
           "n_head": 8, "n_embd": 256, "resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0},
 "data": {"format": "bytes", "train": ["${TRANCHE_BENCH_TEXT:-$text}"],
          "validation": 0.1},
 "evaluation": {"every": 300, "samples": 256}, "checkpoint": {"keep": 1},
 "out": "$work/learn", "steps": 300, "train_batch_size": 8, "seed": 1337,
 "train_micro_batch_size_per_gpu": 4, "bf16": {"enabled": $2}, "fp16": {"enabled": $3},
 "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "weight_decay": 0.1}},
 "scheduler": {"type": "WarmupCosineLR", "params": {"warmup_num_steps": 30,
     "warmup_type": "linear", "total_num_steps": 300, "cos_min_ratio": 0.1}}}
END
    rate=$(measured learn "$program" train "$work/learn.json") || {
        row_of_loss "$1" failed "" "" ""
        return
    }
    # shellcheck disable=SC2046,SC2086
    set -- "$1" ${rate% *} $(read_losses)
    echo "$1 $3 $4" >>"$losses"
    row_of_loss "$1" "$3" "$4" "$(against_f32 "$1")" "$2"
}

bench_loss() {
    : >"$losses"
    echo "a GPT-2 of 3.2 million parameters, context 128, 300 steps of 8 sequences"
    row_of_loss type "loss of steps 251-300" validation "against f32" tokens/s
    row_of_loss ------ ---------------------- ---------- ------------------ --------
    learn f32 false false
    learn bf16 true false
    learn fp16 false true
}

machine
for part in "${@:-all}"; do
    echo
    case $part in
    all) bench_speed && echo && bench_loss ;;
    speed | loss) "bench_$part" ;;
    *)
        echo "precision: unknown part $part; there are speed loss" >&2
        exit 2
        ;;
    esac
done
