#!/bin/sh
# run.sh: the first table of docs/benchmarks.md, all of it in one run, since machines differ
# and their speed drifts: Tranche; PyTorch beside it where TRANCHE_PEER_PYTHON names a Python that has it;
# and the limit of the processor's matrix products on the same shapes, before and after.
# Let the machine do nothing else: a row is measured again where the limit has changed
# meanwhile, and has a mark where that does not help (bench/quiet.sh). An hour on two
# cores.
#
#     bench/run.sh [PART...]
#
#     gpt2        GPT-2 124M, context 1024, f32
#     bf16        the same in bf16; PyTorch's autocast, eager and compiled (the better of
#                 torch.compile's modes default and max-autotune)
#     start       from the command to the first step
#     cuts        context 256: one batch, and the same in micro-batches
#     nano        nanoGPT's CPU setting
#     classifier  the small classifier, a whole process
#     digits      ResNet-20 by bench/digits.sh, with a Python that has scikit-learn
#     shares      how near the limit of the processor's products, by bench/shares.sh
#     big         GPT-2 XL by bench/big.sh: another half an hour, 60 GB of disk; only
#                 where it is named
#
# Without parts all but the last. Other tables there are those of bench/shares.sh,
# "bench/ranks.sh stages" and "bench/offload.sh deepspeed".
#
#     TRANCHE_BENCH_TEXT    what nanoGPT's setting is trained on, tinyshakespeare say
#                           (else the header files in /usr/include)
set -u
cd "$(dirname "$0")/.." || exit 1
. bench/common.sh
. bench/quiet.sh
steps=${TRANCHE_BENCH_STEPS:-4}
context=${TRANCHE_BENCH_CONTEXT:-1024}

row() { # WHAT OURS THEIRS
    printf '| %-62s | %-46s | %-34s |\n' "$1" "$2" "$3"
}

# rate WORDS: "TOKENS BYTES" as the table has them
rate() {
    echo "$1" | awk '{ printf "%.1f tokens/s, %.2f GB", $1, $2 / 1e9 }'
}

# ours NAME CONTEXT T M [KEY=VALUE...]: tokens a second and the peak of the process
ours() {
    name=$1
    gpt2_file "$1" "$2" "$3" "$4" "$steps"
    shift 4
    for key in "$@"; do
        set -- "$@" --set "$key"
        shift
    done
    measured "$name" "$program" train "$work/$name.json" "$@"
}

# theirs SCRIPT OPTION...: the same of the peer
theirs() {
    if [ -z "$peer" ]; then
        echo "not installed"
    elif run_peer "$@"; then
        echo "${peer_mode:+$peer_mode: }"
        loss=$(figure validation_loss "$work/peer.json")
        rate "$(figure tokens_per_second "$work/peer.json") $(figure peak_bytes \
            "$work/peer.json")"
        echo "${loss:+, validation loss $loss}"
    else
        echo failed
    fi | tr -d '\n'
}

torch() { # CONTEXT M G OPTION...
    of_context=$1 micro=$2 accumulation=$3
    shift 3
    theirs torch_gpt2.py --layers "$layers" --context "$of_context" \
        --micro-batch "$micro" --accumulation "$accumulation" --steps 3 "$@"
}

# limit TYPE: tokens a second if a step were products alone
limit() {
    products_limit "$context" 768 "$layers" 50257 1 "$1"
}

# A short form of it, for rows that do not name it.
pace() {
    products_limit 256 768 2 1024 1 f32
}

speed_row() { # WHAT KEY=VALUE PEER-OPTION...
    what=$1
    mine=$(ours base "$context" 4 1 "$2")
    shift 2
    row "$what, 4 micro-batches of 1" "$(rate "$mine")" "$(torch "$context" 1 4 "$@")"
}

# speed TYPE WHAT KEY=VALUE PEER-OPTION...: with the limit before and after
speed() {
    type=$1
    shift
    if ! has_products "$type"; then
        quietly pace speed_row "$@"
        row "this processor has no products of $type: in f32, and rounded" "" ""
        return
    fi
    quietly "limit $type" speed_row "$@"
    row "the limit of the products on these shapes, before and after" \
        "$before and $after tokens/s ($(calculate \
            "200 * ${mine% *} / ($before + $after)")% of the mean reached)" ""
}

compiled_row() {
    row "the same in bf16, PyTorch compiled" "" "$(torch "$context" 1 4 --bf16 --compile)"
}

bench_gpt2() {
    speed f32 "GPT-2 124M, context $context" bf16.enabled=false
}

bench_bf16() {
    speed bf16 "the same in bf16" bf16.enabled=true --bf16
    quietly pace compiled_row
}

start_row() {
    ours start "$context" 1 1 >/dev/null
    row "GPT-2 124M, from the command to the first step" \
        "$(sed -n 's/^ready in \([0-9.]*\) s.*/\1 s/p' "$work/start.log")" ""
}

bench_start() {
    quietly pace start_row
}

# There and back, so that both cuts of the batch have the same machine.
cut_rows() {
    whole=$(ours cut 256 8 8)
    parts=$(ours cut 256 8 1)
    parts_again=$(ours cut 256 8 1)
    whole_again=$(ours cut 256 8 8)
    row "GPT-2 124M, context 256, one batch of 8" \
        "$(rate "$whole"); $(rate "$whole_again")" "$(torch 256 8 1)"
    row "the same as 8 micro-batches of 1" \
        "$(rate "$parts"); $(rate "$parts_again")" "$(torch 256 1 8)"
}

long_row() {
    row "4 micro-batches of 1; 64 of 1" \
        "$(rate "$(ours cut 256 4 1)"); $(rate "$(ours cut 256 64 1)")" ""
}

bench_cuts() {
    quietly pace cut_rows
    quietly pace long_row
}

nano_row() {
    file=${TRANCHE_BENCH_TEXT:-$text}
    nano_file nano "$file" 2000
    mine=$(measured nano "$program" train "$work/nano.json")
    loss=$(sed -n 's/.*validation loss \([0-9.]*\).*/\1/p' "$work/nano.log" | tail -n 1)
    row "nanoGPT's CPU setting, 2,000 steps" "$(rate "$mine"), validation loss $loss" \
        "$(theirs torch_nano.py --data "$file")"
}

bench_nano() {
    quietly pace nano_row
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

classifier_row() {
    theirs="not installed"
    [ -z "$peer" ] || theirs=$(seconds "$peer" bench/peers/torch_mlp.py) || theirs=failed
    row "the small classifier, five epochs, whole process" \
        "$(seconds "$program" train examples/classifier.json --out "$work/small" --resume never)" \
        "$theirs"
}

bench_classifier() {
    quietly pace classifier_row
}

# The rows of another script, which says itself what it lacks.
digits_rows() {
    if ! bench/digits.sh accuracy rate >"$work/digits.txt" 2>"$work/digits.log"; then
        row "ResNet-20 on 8 x 8 digits" "$(tail -n 1 "$work/digits.log")" ""
        return
    fi
    sed -n '/^| \(Tranche\|PyTorch\)/p' "$work/digits.txt" | while IFS='|' read -r _ what cell _; do
        what=$(echo "$what" | sed 's/^ *//; s/ *$//')
        cell=$(echo "$cell" | sed 's/^ *//; s/ *$//')
        case $what in
        Tranche,*) row "ResNet-20 on 8 x 8 digits: ${what#Tranche, }" "$cell" "" ;;
        *) row "ResNet-20 on 8 x 8 digits: ${what#PyTorch, }" "" "$cell" ;;
        esac
    done
}

bench_digits() {
    quietly pace digits_rows
}

# It has limits of its own, before and after.
bench_shares() {
    explain_marks
    rm -f "$work/unquiet"
    echo
    bench/shares.sh
}

big_rows() {
    bench/big.sh 3 >"$work/big.txt" 2>&1 || { cat "$work/big.txt" >&2 && return 1; }
    row "GPT-2 XL, 3 GB on the device and 10 GB on the host" \
        "$(sed -n 's/^step 3: //p; s/^last step: //p' "$work/big.txt" | tr '\n' ' ')" ""
    sed -n 's/^peak bytes: /    peak bytes: /p' "$work/big.txt"
}

# Half an hour: not again.
bench_big() {
    tries=1
    quietly pace big_rows
    unset tries
}

all="gpt2 bf16 start cuts nano classifier digits shares"
# shellcheck disable=SC2086
[ $# -gt 0 ] || set -- $all
for part in "$@"; do
    case " $all big " in
    *" $part "*) ;;
    *) echo "bench: unknown part $part; there are $all big" >&2 && exit 2 ;;
    esac
done
machine
[ -z "$peer" ] || "$peer" -c 'import torch; print("PyTorch", torch.__version__)'
printf 'load before: %s\n\n' "$(cut -d ' ' -f 1-3 /proc/loadavg)"
row "f32 where not said" Tranche PyTorch
echo "|---|---|---|"
for part in "$@"; do
    "bench_$part"
done
explain_marks
printf '\nload after: %s\n' "$(cut -d ' ' -f 1-3 /proc/loadavg)"
