#!/bin/sh
# shares.sh: how near Tranche comes to what the processor's matrix products allow, with
# the best instruction set of this processor and held to AVX2. One process of all cores,
# but for the ranks. Twenty minutes on two cores, which should do nothing else.
#
#     bench/shares.sh [gpt2] [nano] [ranks]      (default: all)
#
#     gpt2     GPT-2 124M, context 1024, m = 1, g = 4, f32 and bf16
#     nano     nanoGPT's setting for the CPU: 128 wide, 768 rows
#     ranks    two ranks of one thread, context 256, m = 1, g = 4, ZeRO stages 0 to 3, at
#              wave 1, and stages 2 and 3 at wave 4, too
#
# The limit is the rate of the model's products in this project's kernels, measured before
# and after (build/bench/limits). There are two: of each product alone, on operands that
# are in the caches, and of all products in the order of a step, on operands of their own.
# No step can reach the first, since it reads its weights from memory. Of nanoGPT's
# setting the limit is the rate of GPT-2's large products: its own small ones are part of
# what is measured.
# All rates are the best of their tries, since other work on the machine can only lower
# them.
#
#     TRANCHE_BENCH_TEXT    what nanoGPT's setting is trained on, tinyshakespeare say
#                           (else the header files in /usr/include)
set -u
cd "$(dirname "$0")/.." || exit 1
. bench/common.sh
. bench/table.sh
# shellcheck disable=SC2034,SC2154 # take, figures: of common.sh and table.sh
take=best
threads=$(nproc)
steps=${TRANCHE_BENCH_STEPS:-4}
context=${TRANCHE_BENCH_CONTEXT:-1024}

held=${DNNL_MAX_CPU_ISA:-}

# hold_to best|AVX2: the instruction set for what follows; $isa is in the names under
# which rates are kept, $words in rows
hold_to() {
    isa=$1 words=$1
    if [ "$1" = AVX2 ]; then
        DNNL_MAX_CPU_ISA=AVX2
        export DNNL_MAX_CPU_ISA
        return
    fi
    unset DNNL_MAX_CPU_ISA
    [ -z "$held" ] || export DNNL_MAX_CPU_ISA="$held"
    words="best set"
}

# ---- GPT-2

limit() { # TYPE
    limit_row "$isa-$1" "$context" 768 "$layers" 50257 1 "$1"
}

gpt2_step() { # TYPE BF16
    gpt2_file "$isa-$1" "$context" 4 1 "$steps"
    run_ranks "$isa-$1" "GPT-2 124M, $1, $words" 1 "$threads" --set "bf16.enabled=$2"
}

gpt2_on() { # SET
    hold_to "$1"
    limit f32
    gpt2_step f32 false
    limit f32
    if has_products bf16; then
        limit bf16
        gpt2_step bf16 true
        limit bf16
    else
        gpt2_step bf16 true
    fi
}

share() { # WHAT ASKED NAME [NAME OF THE LIMIT]
    ratio "$1: of the best of each product" "$2" ">=" "$3.rate/limit_${4:-$3}.rate"
    ratio "$1: of the products in order" "$2" ">=" "$3.rate/order_${4:-$3}.rate"
}

bench_gpt2() {
    head_of_columns
    gpt2_on best
    gpt2_on AVX2
    head_of_ratios
    share "f32, best set" 0.95 best-f32
    share "bf16, best set" 0.95 best-bf16
    share "f32, AVX2" 0.88 AVX2-f32
    ratio "AVX2: bf16 over f32" 0.9 ">=" AVX2-bf16.rate/AVX2-f32.rate
}

# ---- nanoGPT

nano_on() { # SET
    hold_to "$1"
    products_limit "$context" 768 "$layers" 50257 1 f32 >"$work/rate.txt"
    large=$(figure product_gflops "$work/limits.txt")
    products_limit 64 128 4 256 12 f32 >"$work/rate.txt"
    product=$(figure step_gflop_per_token "$work/limits.txt")
    echo "limit_$isa-nano $(calculate "$large / $product" %.1f) 0 0" >>"$figures"
    columns "nanoGPT's products at that rate, $words" \
        "$(calculate "$large / $product")" "" "" ""
    nano_file "$isa-nano" "${TRANCHE_BENCH_TEXT:-$text}" 300
    run_ranks "$isa-nano" "nanoGPT's setting, $words" 1 "$threads"
}

bench_nano() {
    head_of_columns
    nano_on best
    nano_on AVX2
    head_of_ratios
    for isa in best AVX2; do
        ratio "nanoGPT's setting, $isa: of the large products' rate" 0.75 ">=" \
            "$isa-nano.rate/limit_$isa-nano.rate"
    done
}

# ---- two ranks

two_ranks() { # STAGE WAVE
    gpt2_file "s$1-$2" 256 8 1 "$steps"
    run_ranks "s$1-$2" "two ranks, stage $1, wave $2" 2 1 \
        --set zero_optimization.stage="$1" --set execution.wave="$2"
}

bench_ranks() {
    hold_to best
    head_of_columns
    limit_row ranks 256 768 "$layers" 50257 1 f32
    for s in 0 1 2 3; do
        two_ranks "$s" 1
    done
    for s in 2 3; do
        two_ranks "$s" 4
    done
    limit_row ranks 256 768 "$layers" 50257 1 f32
    head_of_ratios
    for s in 0 1 2 3; do
        share "two ranks, stage $s, wave 1" 0.93 "s$s-1" ranks
    done
    for s in 2 3; do
        share "two ranks, stage $s, wave 4" 0.93 "s$s-4" ranks
    done
}

[ $# -gt 0 ] || set -- gpt2 nano ranks
for part in "$@"; do
    case $part in
    gpt2 | nano | ranks) ;;
    *) echo "bench: unknown part $part; there are gpt2, nano and ranks" >&2 && exit 2 ;;
    esac
done
machine
for part in "$@"; do
    "bench_$part"
    echo
done
