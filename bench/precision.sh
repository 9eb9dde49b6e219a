#!/bin/sh
# precision.sh: GPT-2 124M in bf16, one process of all cores, micro-batches of 1, g = 4:
# tokens a second, their share of what the processor's products of bf16 allow, PyTorch's
# autocast beside it where TRANCHE_PEER_PYTHON has it; the loss of a small GPT-2 in
# 16 bits, and with products in fp8, beside that in f32; how far sums of gradients in
# 16 bits are from f32 sums.
# On two cores about twenty minutes.
#
#     bench/precision.sh [speed] [loss] [sums]      (default: all)
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
    limit_row "$1" "$context" 768 "$layers" 50257 1 "$1"
}

# one TYPE BF16 FP16 FP8: a row of Tranche
one() {
    gpt2_file "$1" "$context" 4 1 "$steps"
    run_ranks "$1" "Tranche, $1" 1 "$threads" --set "bf16.enabled=$2" \
        --set "fp16.enabled=$3" --set "fp8.enabled=$4"
}

# torch NAME WHAT OPTION...
torch() {
    name=$1 what=$2
    shift 2
    peer_row "$name" "$what" torch_gpt2.py --layers "$layers" --context "$context" \
        --micro-batch 1 --accumulation 4 --steps "$steps" "$@"
}

bench_speed() {
    echo "GPT-2 124M, context $context, m = 1, g = 4"
    head_of_columns
    limit f32
    limit bf16
    one f32 false false false
    one bf16 true false false
    one fp16 false true false
    one fp8 true false true
    torch eager "PyTorch, bf16 autocast, eager" --bf16
    torch compiled "PyTorch, bf16 autocast, compiled" --bf16 --compile
    one bf16 true false false
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

# learn TYPE BF16 FP16 FP8: a row of the small GPT-2's losses
learn() {
    cat >"$work/learn.json" <<END
{"model": {"model_type": "gpt2", "vocab_size": 256, "n_positions": 128, "n_layer": 4,
           "n_head": 8, "n_embd": 256, "resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0},
 "data": {"format": "bytes", "train": ["${TRANCHE_BENCH_TEXT:-$text}"],
          "validation": 0.1},
 "evaluation": {"every": 300, "samples": 256}, "checkpoint": {"keep": 1},
 "out": "$work/learn", "steps": 300, "train_batch_size": 8, "seed": 1337,
 "train_micro_batch_size_per_gpu": 4, "bf16": {"enabled": $2}, "fp16": {"enabled": $3},
 "fp8": {"enabled": $4},
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

row_of_sums() {
    printf '| %-3s | %-16s | %-23s |\n' "$@"
}

# off TYPE G [OPTION...]: how far gradients that are summed in TYPE are from f32 sums, in
# the middle one of the tensors and in the one that is farthest off, in per cent
off() {
    type=$1 g=$2
    shift 2
    # Status 1 says only that some cut is further off than it should be.
    "$program" check "$work/sums.json" --set "train_batch_size=$g" \
        --set "data_types.grad_accum_dtype=$type" "$@" --tensors >"$work/check.log" 2>&1 ||
        [ $? -eq 1 ] || {
        cat "$work/check.log" >&2
        return
    }
    awk '/gradients summed in f32/ { there = 1; next }
         there && / off by / { print 100 * $NF; next }
         { there = 0 }' "$work/check.log" | sort -g |
        awk '{ off[NR] = $1 }
             END { if (NR) printf "%.2g%%, %.2g%%\n", off[int(NR / 2) + 1], off[NR] }'
}

bench_sums() {
    cat >"$work/sums.json" <<END
{"model": {"model_type": "gpt2", "vocab_size": 256, "n_positions": 64, "n_layer": 4,
           "n_head": 4, "n_embd": 128, "resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0},
 "data": {"format": "bytes", "train": ["${TRANCHE_BENCH_TEXT:-$text}"]}, "seed": 1337,
 "steps": 1, "train_batch_size": 8, "train_micro_batch_size_per_gpu": 1}
END
    echo "the first gradient of a GPT-2 of 0.8 million parameters, off from f32 sums"
    row_of_sums g bf16 "fp16, with fp16.enabled"
    row_of_sums --- ---------------- -----------------------
    for g in 8 64 256; do
        row_of_sums "$g" "$(off bf16 $g)" "$(off fp16 $g --set fp16.enabled=true)"
    done
}

bench_loss() {
    : >"$losses"
    echo "a GPT-2 of 3.2 million parameters, context 128, 300 steps of 8 sequences"
    row_of_loss type "loss of steps 251-300" validation "against f32" tokens/s
    row_of_loss ------ ---------------------- ---------- ------------------ --------
    learn f32 false false false
    learn bf16 true false false
    learn fp16 false true false
    learn fp8 true false true
}

machine
for part in "${@:-all}"; do
    echo
    case $part in
    all) bench_speed && echo && bench_loss && echo && bench_sums ;;
    speed | loss | sums) "bench_$part" ;;
    *)
        echo "precision: unknown part $part; there are speed loss sums" >&2
        exit 2
        ;;
    esac
done
