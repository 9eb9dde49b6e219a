#!/bin/sh
# first_contact.sh: what the first hour on an NVIDIA GPU is to find out, in stages of less
# than ten minutes, each of use alone. A stage that fails or runs out of time does not stop
# the next one, and whoever ends the script gets what is known so far.
#
#     bench/first_contact.sh [STAGE]...     (default: all, in this order)
#     bench/first_contact.sh summary        what is known from earlier stages
#
#     open         the driver, the GPU, libraries: tranche doctor
#     conformance  the kernels of each op beside the reference, an op a process: an illegal
#                  address ends all that comes after it in one. PyTorch compiles meanwhile
#     tests        the other tests of GPUs: short trainings beside the CPU
#     machine      rates of kernels, memory and copies, as a machine file
#     steps        20 steps of GPT-2 124M
#     kernels      every kernel of a micro-batch of 124M: time, rates, share of the limit
#     attention    attention of 124M and of Llama 7B: own kernels, then those of cuDNN
#     gpt2, gpt2_torch    GPT-2 124M, and PyTorch compiled beside it (bench/gpu.sh)
#     kernels_xl, xl, xl_torch           the same of GPT-2 1.5B
#     kernels_llama, llama, llama_torch  the same of Llama 7B, with fp8 and offload
#     lora, lora_torch       adapters of Llama 7B, and PEFT's
#     cuts, offload          cuts of a batch; the optimizer on the host
#     memcheck     compute-sanitizer on what has failed, else on some small ops
#
#     TRANCHE_CONTACT_LOGS     the folder of all logs (build/contact)
#     TRANCHE_CONTACT_SECONDS  of a stage at the most (540)
#     TRANCHE_CONTACT_OPS, TRANCHE_CONTACT_TESTS    what these stages try (all)
#
# Other settings are environment variables, told in bench/gpu_models.sh.
# shellcheck disable=SC2317 # stages are called by their names
set -u
cd "$(dirname "$0")/.." || exit 1
self=bench/first_contact.sh
stages="open conformance tests machine steps kernels attention gpt2 gpt2_torch kernels_xl xl xl_torch \
kernels_llama llama llama_torch lora lora_torch cuts offload memcheck"
parts="gpt2 gpt2_torch xl xl_torch llama llama_torch lora lora_torch cuts offload"
logs=${TRANCHE_CONTACT_LOGS:-build/contact}
limit=${TRANCHE_CONTACT_SECONDS:-540}
tests=build/tests/gpu-
[ "${TRANCHE_BENCH_DEVICE:-cuda}" != stand-in ] || tests=build/tests/cuda-
sanitizer=${TRANCHE_SANITIZER:-compute-sanitizer}
op_seconds=60
test_seconds=300
mkdir -p "$logs" || exit 1

# how STATUS: in a word
how() {
    case $1 in
    0) echo passed ;;
    77) echo skipped ;;
    124 | 137) echo "OUT OF TIME" ;;
    *) echo "FAILED ($1)" ;;
    esac
}

# one KIND NAME SECONDS COMMAND...: runs the command into the log KIND-NAME.log and prints a
# line, with the end of the log where it failed
one() {
    kind=$1 name=$2 most=$3
    shift 3
    begin=$(date +%s)
    TR_TEST_GPU=1 timeout --foreground -k 5 "$most" "$@" >"$logs/$kind-$name.log" 2>&1
    result=$?
    told=
    case $result in
    0 | 77) ;;
    *) told=$(grep -v '^\[ *\(RUN\|OK\) ' "$logs/$kind-$name.log" | tail -n 12) ;;
    esac
    printf '%s\n' "$kind $name: $(how "$result"), $(($(date +%s) - begin)) s" ${told:+"$told"}
    return "$result"
}

# ---- stages

# What each model needs, sourced where a stage trains one.
models() {
    chosen=${TRANCHE_BENCH_LAYERS:-}
    . bench/common.sh
    . bench/table.sh
    . bench/gpu_models.sh
    # shellcheck disable=SC2154 # of these files
    : "$device $programs $work $peak_rate $peak_bytes $small"
}

stage_open() {
    command -v nvidia-smi >/dev/null 2>&1 && nvidia-smi
    build/tranche doctor
}

# compile SCRIPT OPTION...: one step of a peer, with each attention
compile() {
    script=$1
    shift
    for attention in cudnn flash; do
        run_peer "$script" "$@" --device "$peer_device" --bf16 --steps 1 --accumulation 1 \
            --layers "$layers" --context "$context" --attention "$attention" \
            --compile default
    done
}

compile_gpt2() { # M
    compile torch_gpt2.py --width "$width" --heads "$heads" --micro-batch "$1" \
        --vocabulary $(((vocabulary + 63) / 64 * 64))
}

# PyTorch's compiler, into a cache that later stages find, while ops are tried.
compile_peers() {
    (
        models
        [ -n "$peer" ] || exit 0
        gpt2_sizes 12 768 12
        compile_gpt2 16
        gpt2_sizes 48 1600 25
        compile_gpt2 8
        llama_sizes
        compile torch_llama.py --size 7b --micro-batch 1
    ) >"$logs/compile.log" 2>&1
}

stage_conformance() {
    "${tests}conformance" --list >"$logs/ops" || return 1
    [ -z "${TRANCHE_CONTACT_OPS:-}" ] || echo "$TRANCHE_CONTACT_OPS" | tr ' ' '\n' >"$logs/ops"
    compile_peers &
    xargs -P 4 -I '{}' sh "$self" --op '{}' <"$logs/ops"
    result=$?
    wait
    return "$result"
}

all_tests() {
    for test in "$tests"*; do
        case $test in
        *conformance | *-driver | *-products | *-ranks*) ;;
        *) echo "${test#"$tests"}" ;;
        esac
    done
}

stage_tests() {
    # shellcheck disable=SC2086 # words
    printf '%s\n' ${TRANCHE_CONTACT_TESTS:-$(all_tests)} |
        xargs -P 4 -I '{}' sh "$self" --test '{}'
}

stage_machine() {
    models
    gpt2_sizes 12 768 12
    gpt2 small 32 16
    "${programs}machine" "$work/small.json" >"$logs/machine.json" && cat "$logs/machine.json"
}

stage_steps() {
    models
    gpu_machine
    gpt2_sizes 12 768 12
    gpt2 small 32 16 20
    "${programs}steps" "$work/small.json"
}

# table NAME: of $work/NAME.json
table() {
    # shellcheck disable=SC2086
    "${programs}kernels" "$work/$1.json" --flops "$peak_rate" --bytes "$peak_bytes" \
        ${small:+--times 1 --beyond 1}
}

stage_kernels() {
    models
    gpt2_sizes 12 768 12
    gpt2 small 32 16
    table small
}

# attention_of NAME: rows of $work/NAME.json by own kernels, and by what is installed
attention_of() {
    for from in own auto; do
        # shellcheck disable=SC2086
        "${programs}kernels" "$work/$1.json" --set "execution.attention=$from" \
            --flops "$peak_rate" --bytes "$peak_bytes" ${small:+--times 1 --beyond 1} \
            >"$work/attention" || return 1
        echo "attention of $1, \"execution.attention\": \"$from\""
        grep -E '^\| unit |^\| [^|]*\| (forward|backward) *\| attention' "$work/attention"
    done
}

stage_attention() {
    models
    gpt2_sizes 12 768 12
    gpt2 small 32 16
    attention_of small || return 1
    llama_sizes
    llama llama
    attention_of llama
}

stage_kernels_xl() {
    models
    gpt2_sizes 48 1600 25
    gpt2 xl 16 8
    table xl
}

stage_kernels_llama() {
    models
    llama_sizes
    llama llama
    table llama
}

# Stages that are parts of it.
bench() {
    TRANCHE_BENCH_FIGURES=$logs/figures bench/gpu.sh "$1"
}

# Names of what a kind of log says has failed.
failed() {
    sed -n "s/^$1 \([^:]*\): \(FAILED\|OUT\).*/\1/p" "$logs/$2.log" 2>/dev/null
}

stage_memcheck() {
    if ! command -v "$sanitizer" >/dev/null 2>&1; then
        echo "$sanitizer is not found"
        return 77
    fi
    result=0
    ops=$(failed op conformance)
    for op in ${ops:-relu layer_norm embedding}; do
        one memcheck "$op" "$op_seconds" "$sanitizer" --tool memcheck --error-exitcode 1 \
            "${tests}conformance" "$op" || result=1
    done
    for test in $(failed test tests); do
        one memcheck "$test" "$test_seconds" "$sanitizer" --tool memcheck \
            --error-exitcode 1 "$tests$test" || result=1
    done
    return "$result"
}

# ---- all of them

# What is known: each stage that was begun, and the figures of those that have some.
summary() {
    echo
    echo "== what is known ($logs)"
    cat "$logs/stages" 2>/dev/null
    for stage in $parts; do # rows, and ratios that there are
        [ ! -s "$logs/$stage.log" ] ||
            grep '^| ' "$logs/$stage.log" | grep -v '^| [a-z ]*|  *is |\|^| -\||  *- | [<>]= '
    done
    [ ! -s "$logs/steps.log" ] || tail -n 1 "$logs/steps.log"
    [ ! -s "$logs/attention.log" ] || cat "$logs/attention.log"
    for stage in kernels kernels_xl kernels_llama; do
        [ ! -s "$logs/$stage.log" ] ||
            sed -n '/^| op, of a micro-batch/,$p' "$logs/$stage.log"
    done
    failed op conformance | sed 's/^/failed: op /'
    failed test tests | sed 's/^/failed: test /'
}

# note LINE: of a stage, in place of what was known of it
note() {
    touch "$logs/stages"
    { grep -v "^${1%%:*}:" "$logs/stages"; echo "$1"; } >"$logs/stages.new"
    mv "$logs/stages.new" "$logs/stages"
    echo "$1"
}

stop() {
    trap - INT TERM HUP
    [ -z "$running" ] || kill "$running" 2>/dev/null
    [ -z "$stage" ] || note "$stage: ended from outside, $(($(date +%s) - begun)) s"
    summary
    exit 143
}

# Its output is in its log, and here as it comes.
run_stage() {
    stage=$1 begun=$(date +%s)
    echo "== $stage"
    : >"$logs/$stage.log"
    timeout -k 10 "$limit" sh "$self" --stage "$stage" >"$logs/$stage.log" 2>&1 &
    running=$!
    tail -n +1 -s 0.2 -f --pid="$running" "$logs/$stage.log" &
    shown=$!
    wait "$running"
    result=$?
    running=
    wait "$shown"
    note "$stage: $(how "$result"), $(($(date +%s) - begun)) s"
    [ "$result" -eq 0 ] || [ "$result" -eq 77 ] || status=1
    stage=
}

export TORCHINDUCTOR_CACHE_DIR="${TORCHINDUCTOR_CACHE_DIR:-$PWD/build/torch-cache}"
case ${1:-} in
--op)
    one op "$2" "$op_seconds" "${tests}conformance" "$2"
    exit
    ;;
--test)
    one test "$2" "$test_seconds" "$tests$2"
    exit
    ;;
--stage)
    case " $parts " in
    *" $2 "*) bench "$2" ;;
    *) "stage_$2" ;;
    esac
    exit
    ;;
summary)
    summary
    exit
    ;;
esac
# shellcheck disable=SC2086 # words
[ $# -gt 0 ] || set -- $stages
for asked; do
    case " $stages " in
    *" $asked "*) ;;
    *)
        echo "first_contact: unknown stage $asked; there are $stages" >&2
        exit 2
        ;;
    esac
done
status=0 running='' stage=''
trap stop INT TERM HUP
for asked; do
    run_stage "$asked"
done
summary
exit "$status"
