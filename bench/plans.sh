#!/bin/sh
# plans.sh: the tables of the docs that come from plans and simulated steps alone: bytes,
# traffic, and seconds of machines that files describe. Nothing is trained or measured, so
# it needs no quiet machine, and gives the same figures anywhere with the same instruction
# set (kernels choose their workspace by it). A minute.
#
#     bench/plans.sh [PART...]      (default: all of them)
#
#     choices     docs/memory.md: the classic choices, side by side
#     recompute      docs/memory.md: what recomputation keeps and costs
#     xl          docs/memory.md: GPT-2 XL away from the device
#     batch       docs/memory.md: 32 samples at a time, four times
#     budgets     docs/memory.md: 24 GB, 4 x 8, as the planner has it
#     gpt3        docs/memory.md: 3.2 million tokens a step
#     cuts        docs/plan.md: micro-batch, wave and recomputation
#     slices      docs/distributed.md: slices of the vocabulary
#     tokens      docs/distributed.md: what tensor ranks keep, and send
#     heads       docs/distributed.md: more tensor ranks than heads of keys
#     waves       docs/distributed.md: tensor ranks that compute while they exchange
#     sums        docs/precision.md: sums of gradients in 16 bits
#     ranks       docs/simulate.md: from 1 to 10,240 ranks
#     schedules   docs/parallelism.md: schedules of a pipeline
#     meshes      docs/planner.md: which meshes the planner chooses
set -u
cd "$(dirname "$0")/.." || exit 1
. bench/common.sh
cpu=examples/machines/two-cores.json
cluster=examples/machines/dgx-h100.json
units=activation_checkpointing.number_checkpoints
inputs=activation_checkpointing.cpu_checkpointing=true
stage=zero_optimization.stage
state=zero_optimization.offload_optimizer.device
params=zero_optimization.offload_param.device
disk='memory.nvme={"path": "/tmp"}'
failed=0

# model JSON: what the next plans are of
model() {
    printf '{"model": %s, "data": {"format": "tokens"}}\n' "$1" >"$work/run.json"
}

# simulate MACHINE RANKS T M [KEY=VALUE...]: into $work/step.json
simulate() {
    machine=$1 ranks=$2
    batch="--set train_batch_size=$3 --set train_micro_batch_size_per_gpu=$4"
    shift 4
    for key in "$@"; do
        set -- "$@" --set "$key"
        shift
    done
    # shellcheck disable=SC2086
    "$program" simulate "$work/run.json" --machine "$machine" --ranks "$ranks" $batch "$@" \
        --json >"$work/step.json" 2>"$work/log" && return
    cat "$work/log" >&2
    failed=1
    return 1
}

value() { # NAME: of the step simulated last
    figure "$1" "$work/step.json"
}

planned() { # SPACE: its bytes
    sed -n "s/.*\"$1\": {\"planned\": \([0-9]*\).*/\1/p" "$work/step.json"
}

# Groups the digits before the point, as the docs do.
grouped() {
    echo "$1" | sed -e ':a' -e 's/^\([0-9]\{1,\}\)\([0-9]\{3\}\)\([.,].*\)\{0,1\}$/\1,\2\3/' -e 'ta'
}

mib() { # BYTES
    grouped "$(calculate "$1 / 1048576")"
}

columns() { # TITLE...
    printf '|'
    printf ' %s |' "$@"
    printf '\n|'
    printf '%.0s---|' "$@"
    printf '\n'
}

row() { # CELL...
    printf '|'
    printf ' %s |' "$@"
    printf '\n'
}

# The cluster with the exchanges that MPI carries, as $work/direct.json and
# $work/hierarchical.json.
by_messages() {
    for exchange in direct hierarchical; do
        sed "s/\"nccl\"/\"$exchange\"/" examples/machines/dgx-h100.json \
            >"$work/$exchange.json"
    done
}

# ---- docs/memory.md

choice() { # NAME RANKS T M [KEY=VALUE...]
    name=$1
    shift
    simulate "$cpu" "$@" || return
    sent=$(calculate "$(value gather) + $(value reduce)" %.0f)
    row "$name" "$3 x $(value accumulation_steps)" "$(value wave)" \
        "$(mib "$(planned device)")" "$(mib "$(planned host)")" \
        "$(mib "$(planned nvme)")" "$(mib "$(value device_host)")" \
        "$(mib "$(sed -n 's/.*"traffic_bytes".*"nvme": \([0-9]*\)}.*/\1/p' "$work/step.json")")" \
        "$(mib "$sent")" "$(calculate "$(value seconds)" %.1f)" "1/$2"
}

bench_choices() {
    model '"gpt2"'
    columns choice "m x g" wave device host NVMe copied "NVMe traffic" sent "s a step" \
        variance
    choice "small batch" 1 4 4
    choice accumulation 1 32 4
    choice accumulation 1 32 1
    choice "native large batch" 1 32 32
    choice "the same, nothing recomputed" 1 32 32 execution.recompute=none
    choice "+ recomputation: also inputs of GELU" 1 32 32 \
        'execution.recompute=["norm", "activation", "pre_activation"]'
    choice "+ recomputation: whole units" 1 32 32 $units=13
    choice "accumulation, whole units" 1 32 4 $units=13
    set -- 1 32 4 execution.wave=8 $units=13
    choice "+ optimizer on the host" "$@" $state=cpu
    choice "+ parameters on the host" "$@" $state=cpu $params=cpu
    choice "+ inputs of units on the host" "$@" $state=cpu $params=cpu $inputs
    choice "+ optimizer on NVMe instead" "$@" $state=nvme $params=cpu $inputs "$disk"
    choice 'all but the inputs on NVMe, with `memory.nvme.gradients`' "$@" $state=nvme \
        $params=nvme 'memory.nvme={"path": "/tmp", "gradients": true}'
    choice "ZeRO, 2 ranks, stage 0" 2 32 4
    for n in 1 2 3; do
        choice "stage $n" 2 32 4 $stage=$n
    done
    choice "stage 3, whole units" 2 32 4 $stage=3 execution.wave=4 $units=13
    choice "stage 3, whole units, all on the host" 2 32 4 $stage=3 execution.wave=4 \
        $units=13 $state=cpu $params=cpu
}

# What all units keep of one micro-batch, in bytes, by the choices in a plan's JSON.
kept() {
    awk 'match($0, /"units": [0-9]+/) { units = substr($0, RSTART + 9, RLENGTH - 9) }
         /"chosen": true/ && match($0, /"kept": [0-9]+/) {
             sum += units * substr($0, RSTART + 8, RLENGTH - 8)
         }
         END { printf "%.0f\n", sum }' "$1"
}

recompute() { # NAME KEY=VALUE
    simulate "$cpu" 1 32 1 "$2" || return
    "$program" plan "$work/run.json" --set train_batch_size=32 \
        --set train_micro_batch_size_per_gpu=1 --set "$2" --json >"$work/plan.json" || return
    seconds=$(value seconds)
    : "${none:=$seconds}"
    row "$1" "$(mib "$(kept "$work/plan.json")")" "$(mib "$(planned device)")" \
        "$(calculate "$(value flops) / 1e12" %.1f)" "$(calculate "$seconds" %.1f)" \
        "$(calculate "$seconds / $none" %.3f)"
}

bench_recompute() {
    model '"gpt2"'
    columns "recomputed" "kept, MiB" "device total, MiB" "TFLOP a step" "s a step" \
        "against nothing"
    none=
    recompute nothing execution.recompute=none
    recompute "norms, activations (default)" 'execution.recompute=["norm", "activation"]'
    recompute "those and attention" 'execution.recompute=["norm", "activation", "attention"]'
    recompute "those and inputs of GELU" \
        'execution.recompute=["norm", "activation", "pre_activation"]'
    recompute "those and products" \
        'execution.recompute=["norm", "activation", "pre_activation", "product"]'
    recompute "whole units" $units=13
}

away() { # OPTIMIZER GRADIENTS PARAMETERS KEY=VALUE...
    where="$1 | $2 | $3"
    shift 3
    simulate "$cpu" 1 32 4 execution.wave=8 $units=49 $inputs "$@" || return
    row "$where" "$(mib "$(planned device)")" "$(mib "$(planned host)")" \
        "$(mib "$(planned nvme)")" "$(mib "$(value device_host)")" \
        "$(mib "$(sed -n 's/.*"traffic_bytes".*"nvme": \([0-9]*\)}.*/\1/p' "$work/step.json")")" \
        "$(calculate "$(value seconds)" %.1f)"
}

bench_xl() {
    model '"gpt2-xl"'
    columns optimizer gradients parameters "device, MiB" host NVMe copied "NVMe traffic" \
        "s a step"
    gradients='memory.nvme={"path": "/tmp", "gradients": true}'
    away host host host $state=cpu $params=cpu
    away NVMe NVMe host $state=nvme $params=cpu "$gradients"
    away NVMe NVMe NVMe $state=nvme $params=nvme "$gradients"
}

bench_batch() {
    model '"gpt2"'
    columns "m x g" recomputed "device, MiB" "s a step on two cores"
    for cut in "32 norms,_activations 0" "32 whole_units 13" "4 norms,_activations 0" \
        "1 norms,_activations 0"; do
        # shellcheck disable=SC2086
        set -- $cut
        simulate "$cpu" 1 128 "$1" "$units=$3" || return
        row "$1 x $(value accumulation_steps)" "$(echo "$2" | tr _ ' ')" \
            "$(mib "$(planned device)")" "$(calculate "$(value seconds)" %.1f)"
    done
}

bench_budgets() {
    columns model plan "device, GiB" "host, GiB" "NVMe, GiB" "s a step"
    for case in 'gpt2-medium {"device":"24GB","host":"64GB"}' \
        'gpt2-large {"device":"24GB","host":"64GB"}' \
        'gpt2-xl {"device":"24GB","host":"64GB"}' \
        'gpt2-xl {"device":"12GB","host":"10GB","nvme":{"path":"/tmp"}}'; do
        model "\"${case%% *}\""
        simulate "$cpu" 1 32 4 "memory=${case#* }" || return
        words=$("$program" plan "$work/run.json" --set train_batch_size=32 \
            --set train_micro_batch_size_per_gpu=4 --set "memory=${case#* }" \
            --machine "$cpu" | sed -n 's/^planner: \(.*\);.*/\1/p' | head -n 1)
        row "${case%% *}" "$words" "$(calculate "$(planned device) / 2^30" %.2f)" \
            "$(calculate "$(planned host) / 2^30" %.2f)" \
            "$(calculate "$(planned nvme) / 2^30" %.2f)" \
            "$(calculate "$(value seconds)" %.1f)"
    done
}

bench_gpt3() {
    model '{"model_type": "gpt2", "n_layer": 96, "n_embd": 12288, "n_head": 96, "n_positions": 2048}'
    columns ranks g wave "s a step" "waiting for messages" "sent by a rank, GiB" \
        "device, GiB" "million tokens/s" "model utilisation"
    for case in "400 1" "400 2" "800 1" "800 2" "1600 1"; do
        # shellcheck disable=SC2086
        set -- $case
        simulate "$cluster" "$1" 1600 1 bf16.enabled=true $stage=3 $units=97 \
            "execution.wave=$2" || return
        row "$(grouped "$1")" "$(value accumulation_steps)" "$2" \
            "$(calculate "$(value seconds)" %.2f)" \
            "$(calculate "100 * $(value exposed_seconds) / $(value seconds)" %.1f)%" \
            "$(grouped "$(calculate "($(value gather) + $(value reduce)) / 2^30")")" \
            "$(calculate "$(planned device) / 2^30" %.1f)" \
            "$(calculate "$(value tokens_per_second) / 1e6" %.3f)" \
            "$(calculate "100 * $(value model_utilisation)" %.1f)%"
    done
    echo
    by_messages
    columns exchange ranks wave "s a step" "waiting for messages"
    for case in "direct 400 4" "direct 800 2" "direct 1600 1" "hierarchical 400 4" \
        "hierarchical 800 2" "hierarchical 1600 1"; do
        # shellcheck disable=SC2086
        set -- $case
        simulate "$work/$1.json" "$2" 1600 1 bf16.enabled=true $stage=3 $units=97 \
            "execution.wave=$3" || return
        row "$1" "$(grouped "$2")" "$3" "$(calculate "$(value seconds)" %.1f)" \
            "$(calculate "100 * $(value exposed_seconds) / $(value seconds)" %.1f)%"
    done
}

# ---- docs/plan.md

bench_cuts() {
    model '"gpt2"'
    columns m g wave recomputed activations boundary workspace total "TFLOP a step"
    for case in "1 1 0" "2 1 0" "4 1 0" "8 1 0" "1 1 6" "1 1 13" "8 1 13" "1 4 0" \
        "1 16 0" "1 64 0" "1 4 13" "1 16 13" "1 64 13"; do
        # shellcheck disable=SC2086
        set -- $case
        "$program" plan "$work/run.json" --set train_batch_size=64 \
            --set "train_micro_batch_size_per_gpu=$1" --set "execution.wave=$2" \
            --set "$units=$3" --json >"$work/plan.json" || return
        ledger=$(sed -n 's/^ *"device": {\("parameters".*\)}.*/\1/p' "$work/plan.json")
        bytes() { echo "$ledger" | sed -n "s/.*\"$1\": \([0-9]*\).*/\1/p"; }
        row "$1" "$((64 / $1))" "$2" "$3" "$(mib "$(bytes activations)")" \
            "$(mib "$(bytes boundary)")" "$(mib "$(bytes workspace)")" \
            "$(mib "$(bytes total)")" \
            "$(calculate "$(figure flops "$work/plan.json") / 1e12" %.1f)"
    done
}

# ---- docs/distributed.md

bench_slices() {
    model '{"model_type": "gpt2", "n_positions": 256}'
    columns stage slices memory gathered reduced TFLOP
    for case in "0 1" "3 1" "3 4" "3 8"; do
        # shellcheck disable=SC2086
        set -- $case
        simulate "$cpu" 2 8 1 "$stage=$1" "execution.vocabulary_slices=$2" $units=13 \
            execution.wave=1 || return
        row "$1" "$2" "$(mib "$(planned device)")" "$(mib "$(value gather)")" \
            "$(mib "$(value reduce)")" "$(calculate "$(value flops) / 1e12" %.2f)"
    done
}

# of_device NAME: MiB of the device's that the plan made last gives to it
of_device() {
    mib "$(sed -n "s/^ *\"device\": {.*\"$1\": \([0-9]*\).*/\1/p" "$work/plan.json")"
}

# kept_by NAME RANKS [KEY=VALUE...]: of one of so many tensor ranks
kept_by() {
    name=$1 ranks=$2
    shift 2
    for key in "$@"; do
        set -- "$@" --set "$key"
        shift
    done
    "$program" plan "$work/run.json" --ranks "$ranks" --set "tensor_parallel.size=$ranks" \
        --set train_batch_size=4 --set train_micro_batch_size_per_gpu=1 \
        --set execution.threads=1 "$@" --json >"$work/plan.json" 2>"$work/log" || {
        cat "$work/log" >&2
        return 1
    }
    sent="$(figure gather "$work/plan.json") + $(figure reduce "$work/plan.json")"
    row "$name" "$(of_device parameters)" "$(of_device gradients)" \
        "$(of_device optimizer)" "$(of_device activations)" "$(of_device boundary)" \
        "$(of_device total)" "$(mib "($sent)")"
}

bench_tokens() {
    model '{"model_type": "gpt2", "n_positions": 1024}'
    columns ranks parameters gradients optimizer activations boundary total sent
    kept_by 1 1 && kept_by 2 2 &&
        kept_by "2, \`sequence\`" 2 tensor_parallel.sequence=true
}

# The shape of TinyLlama 1.1B.
bench_heads() {
    model '{"model_type": "llama", "hidden_size": 2048, "intermediate_size": 5632,
        "num_hidden_layers": 22, "num_attention_heads": 32, "num_key_value_heads": 4,
        "max_position_embeddings": 2048, "vocab_size": 32000}'
    columns ranks parameters gradients optimizer activations boundary total sent
    for ranks in 4 8 16; do
        kept_by "$ranks" "$ranks" tensor_parallel.sequence=true || return
    done
}

# ---- docs/precision.md

# summed TYPE RANKS FIGURES [KEY=VALUE...]: FIGURES ("device gradients") of the plan whose
# sums are of TYPE
summed() {
    type=$1 ranks=$2 figures=$3 cell=
    shift 3
    set -- "$@" "data_types.grad_accum_dtype=$type"
    simulate "$cpu" "$ranks" 32 4 "$@" || return
    for figure in $figures; do
        case $figure in
        device | host) bytes=$(planned "$figure") ;;
        reduced) bytes=$(value reduce) ;;
        copied) bytes=$(value device_host) ;;
        gradients) bytes=$(gradients "$@") ;;
        esac
        cell="$cell${cell:+; }$(mib1 "$bytes")"
    done
    echo "$cell"
}

gradients() { # KEY=VALUE...: on the device of one process
    for key in "$@"; do
        set -- "$@" --set "$key"
        shift
    done
    "$program" plan "$work/run.json" --set train_batch_size=32 \
        --set train_micro_batch_size_per_gpu=4 "$@" --json |
        sed -n 's/^ *"device": {.*"gradients": \([0-9]*\).*/\1/p'
}

mib1() { # BYTES: with one digit after the point
    grouped "$(calculate "$1 / 1048576" %.1f)"
}

sums() { # NAME RANKS FIGURES [KEY=VALUE...]
    name=$1
    shift
    row "$name" "$(summed fp32 "$@")" "$(summed bf16 "$@")"
}

bench_sums() {
    model '"gpt2"'
    columns MiB "f32 sums" "bf16 sums"
    sums "one process: device; of it gradients" 1 "device gradients"
    sums "in 8 slices of the vocabulary" 1 "device gradients" execution.vocabulary_slices=8
    for n in 1 2; do
        sums "of two ranks, stage $n: device; reduced a step" 2 "device reduced" $stage=$n
    done
    sums "optimizer on the host: device; host; copied a step" 1 "device host copied" \
        $state=cpu
}

# ---- docs/simulate.md

percent() { # SECONDS: of the step
    calculate "100 * $1 / $(value seconds)" "$2"
}

kind() { # NAME: the seconds of such steps
    seconds=$(sed -n "s/.*\"$1\": {\"steps\": [0-9]*, \"seconds\": \([0-9.e+-]*\)}.*/\1/p" \
        "$work/step.json")
    echo "${seconds:-0}"
}

large() { # RANKS T [KEY=VALUE...]
    ranks=$1 batch=$2
    shift 2
    simulate "$cluster" "$ranks" "$batch" 1 $stage=3 $units=81 "$@"
}

# One row: what RANKS ranks make of 2,048 sequences, of which TENSOR share layers and what
# lies between them, and STAGES have four parts each of the other layers.
axes_row() { # RANKS TENSOR STAGES ZERO
    more=
    [ "$2" -gt 1 ] && more="tensor_parallel.sequence=true"
    [ "$3" -gt 1 ] && more="$more pipeline.virtual_stages=4"
    # shellcheck disable=SC2086
    simulate "$cluster" "$1" 2048 1 $stage="$4" $units=81 tensor_parallel.size="$2" \
        pipeline.stages="$3" $more || return
    row "$(grouped "$1")" "$(($1 / $2 / $3)) x $2 x $3" "$(value accumulation_steps)" \
        "$(calculate "$(value seconds)" %.2f)" \
        "$(percent "$(value compute_seconds)" %.1f)" \
        "$(percent "$(value exposed_seconds)" %.1f)" \
        "$(percent "$(value bubble_seconds)" %.1f)" \
        "$(calculate "100 * $(value model_utilisation)" %.1f)" \
        "$(calculate "$(value tokens_per_second) / 1e6" %.4f)" \
        "$(calculate "$(planned device) / 1e9" %.1f)"
}

bench_ranks() {
    model '{"model_type": "gpt2", "n_layer": 80, "n_embd": 8192, "n_head": 64, "n_positions": 2048}'
    columns ranks batch "s a step" "computing %" "waits %" "gather %" "reduce %" \
        "model utilisation %" "million tokens/s" "device GB"
    for n in 1 8 16 32 64 128 1024 10240; do
        large $n $((2 * n)) || return
        row "$(grouped $n)" "$(grouped $((2 * n)))" "$(calculate "$(value seconds)" %.2f)" \
            "$(percent "$(value compute_seconds)" %.1f)" \
            "$(percent "$(value exposed_seconds)" %.1f)" \
            "$(percent "$(kind gather)" %.0f)" "$(percent "$(kind reduce)" %.0f)" \
            "$(calculate "100 * $(value model_utilisation)" %.1f)" \
            "$(calculate "$(value tokens_per_second) / 1e6" %.4f)" \
            "$(grouped "$(calculate "$(planned device) / 1e9" %.1f)")"
    done
    echo
    columns ranks "data x tensor x pipeline" g "s a step" "computing %" "messages %" \
        "bubble %" "model utilisation %" "million tokens/s" "device GB"
    for n in 64 256 1024 2048; do
        axes_row $n 1 1 3 && axes_row $n 8 1 1 && axes_row $n 8 8 1 || return
    done
    for n in 4096 8192; do
        axes_row $n 8 1 1 && axes_row $n 8 8 1 || return
    done
    axes_row 10240 8 5 1 && axes_row 16384 8 1 1 && axes_row 16384 8 8 1 || return
    echo
    columns ranks g "s a step" "with wave = g: s a step" "gather %" "device GB"
    for n in 64 256 1024 2048; do
        large $n 2048 || return
        g=$(value accumulation_steps)
        first=$(calculate "$(value seconds)" %.2f)
        large $n 2048 "execution.wave=$g" || return
        row "$(grouped $n)" "$g" "$first" "$(calculate "$(value seconds)" %.2f)" \
            "$(percent "$(kind gather)" %.0f)" "$(calculate "$(planned device) / 1e9" %.1f)"
    done
    echo
    by_messages
    columns exchange ranks "s a step"
    for exchange in direct hierarchical; do
        cluster=$work/$exchange.json
        for n in 16 64 1024; do
            large $n $((2 * n)) || return
            row "$exchange" "$(grouped $n)" "$(calculate "$(value seconds)" %.1f)"
        done
    done
    cluster=examples/machines/dgx-h100.json
}

# ---- docs/distributed.md, on GPUs

of_waves() { # WAVE UNITS: seconds of a step, and the memory of a rank
    simulate examples/machines/dgx-a100.json 8 16 2 execution.wave="$1" $units="$2" \
        >/dev/null || return
    printf '%s s, %s GB' "$(calculate "$(value seconds)" %.2f)" \
        "$(calculate "$(planned device) / 1e9" %.1f)"
}

bench_waves() {
    cat >"$work/run.json" <<END
{"model": {"model_type": "gpt2", "n_layer": 48, "n_embd": 6144, "n_head": 64,
           "n_positions": 2048, "vocab_size": 51200},
 "data": {"format": "tokens"}, "fp16": {"enabled": true},
 "tensor_parallel": {"size": 8, "sequence": true}}
END
    columns wave "norms and activations recomputed" "all blocks recomputed"
    for wave in 1 2 4; do
        row "$wave" "$(of_waves "$wave" 0)" "$(of_waves "$wave" 48)"
    done
}

# ---- docs/parallelism.md

bench_schedules() {
    cat >"$work/run.json" <<END
{"model": {"model_type": "gpt2", "n_layer": 96, "n_embd": 12288, "n_head": 96,
           "n_positions": 2048, "vocab_size": 51200,
           "resid_pdrop": 0.1, "embd_pdrop": 0.1, "attn_pdrop": 0.1},
 "data": {"format": "tokens", "max_length": 2048}, "fp16": {"enabled": true},
 "execution": {"recompute": "unit"},
 "tensor_parallel": {"size": 8}, "pipeline": {"stages": 8}}
END
    columns schedule "parts of a stage" "s a step" "bubble, s" "memory, GiB"
    for case in "1f1b 1" "interleaved 2" "interleaved 3" "interleaved 4" \
        "breadth_first 1" "breadth_first 4" "zero_bubble 1" "v 2"; do
        # shellcheck disable=SC2086
        set -- $case
        simulate examples/machines/dgx-a100.json 64 64 1 pipeline.schedule="$1" \
            pipeline.virtual_stages="$2" || return
        row "$1" "$2" "$(calculate "$(value seconds)" %.2f)" \
            "$(calculate "$(value bubble_seconds)" %.2f)" \
            "$(calculate "$(planned device) / 2^30" %.1f)"
    done
}

# ---- docs/planner.md

# mesh NAME MODEL TYPE STAGE T RANKS
mesh() {
    cat >"$work/run.json" <<END
{"model": $2, "data": {"format": "tokens"}, "train_batch_size": $5,
 $3 "zero_optimization": {"stage": $4}, "execution": {"recompute_units": 0},
 "tensor_parallel": {"size": "auto"}, "pipeline": {"stages": "auto", "schedule": "auto"}}
END
    "$program" plan "$work/run.json" --machine "$cluster" --ranks "$6" --json \
        >"$work/step.json" 2>"$work/log" || {
        cat "$work/log" >&2
        failed=1
        return 1
    }
    stages=$(value pipeline) each=$(value virtual_stages) with=
    order=$(sed -n 's/.*"pipeline_order": "\([a-z0-9_]*\)".*/\1/p' "$work/step.json" | head -n 1)
    [ "$stages" -eq 1 ] || with=", $order"
    [ "$each" -eq 1 ] || with="$with, $each virtual stages"
    row "$1, $(grouped "$5")" "$(grouped "$6")" \
        "$(sed -n 's/.*"mesh": {"data": \([0-9]*\), "tensor": \([0-9]*\), "pipeline": \([0-9]*\)}.*/\1 x \2 x \3/p' "$work/step.json" | head -n 1)$with" \
        "$(value micro_batch) x $(value accumulation_steps)" \
        "$(calculate "$(sed -n 's/.*"timeline": {"seconds": \([0-9.e-]*\).*/\1/p' \
            "$work/step.json" | head -n 1)" %.3g)"
}

bench_meshes() {
    half='"bf16": {"enabled": true},'
    llama='{"model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008,
        "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 32000,
        "max_position_embeddings": 4096}'
    gpt3='{"model_type": "gpt2", "n_layer": 96, "n_embd": 12288, "n_head": 96,
        "n_positions": 2048, "vocab_size": 50257}'
    columns "model, sequences a step" ranks "data x tensor x pipeline" "m x g" "s a step"
    for batch in 64 4 2; do
        mesh "GPT-2 124M" '"gpt2"' "" 0 "$batch" 8 || return
    done
    mesh "Llama 2 7B" "$llama" "$half" 1 1024 64 || return
    mesh "Llama 2 7B" "$llama" "$half" 1 64 256 || return
    mesh "GPT-3 175B" "$gpt3" "$half" 1 1536 1024
}

parts="choices recompute xl batch budgets gpt3 cuts slices tokens heads waves sums ranks schedules meshes"
# shellcheck disable=SC2086
[ $# -gt 0 ] || set -- $parts
for part in "$@"; do
    case " $parts " in
    *" $part "*) ;;
    *) echo "plans.sh: no part $part; there are $parts" >&2 && exit 2 ;;
    esac
    printf '%s\n\n' "== $part"
    "bench_$part" || failed=1
    echo
done
exit $failed
