# shellcheck shell=sh
# gpu_models.sh: the GPU that bench/gpu.sh and bench/first_contact.sh measure, and the
# models that they train there. The planner chooses what is recomputed, so that memory
# which is there is used. Read with "." behind common.sh.
#
#     TRANCHE_BENCH_PEAK     the GPU's dense bf16 operations a second (else by its name)
#     TRANCHE_BENCH_BYTES    bytes of its memory a second (else by its name)
#     TRANCHE_BENCH_DEVICE   "cpu": a try of the scripts, with TRANCHE_BENCH_LAYERS=1 and a
#                            small TRANCHE_BENCH_CONTEXT. "stand-in": on the tests' stand-in
#                            for a GPU, with small models, whatever the rows say
# shellcheck disable=SC2034,SC2154 # read by those who share it; of common.sh
device=${TRANCHE_BENCH_DEVICE:-cuda}
steps=${TRANCHE_BENCH_STEPS:-4}
peer_device=$device
programs=build/bench/
vocabulary=50257
small=
case $device in
stand-in)
    device=cuda peer_device=cpu programs=build/tests/stand-in- small=yes vocabulary=257
    chosen=${chosen:-1} TRANCHE_BENCH_CONTEXT=${TRANCHE_BENCH_CONTEXT:-16}
    ;;
cpu) ;;
*)
    if ! command -v nvidia-smi >/dev/null 2>&1; then
        echo "${0##*/}: nvidia-smi is not found: this needs an NVIDIA GPU and its driver" >&2
        exit 1
    fi
    ;;
esac

# Is there a GPU to ask?
has_gpu() {
    [ "$device" = cuda ] && [ -z "$small" ]
}

# What the driver says of the first GPU, asked once: name, driver, clock, watts, memory,
# memory in use.
facts=
has_gpu && facts=$(nvidia-smi --id=0 --format=csv,noheader,nounits \
    --query-gpu=name,driver_version,clocks.max.sm,power.limit,memory.total,memory.used)

if has_gpu && [ -z "$peer" ] &&
    python3 -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
    peer=python3
fi

# fact NUMBER
fact() {
    echo "$facts" | cut -d, -f"$1" | sed 's/^ *//'
}

# of_model VALUE H100S H200S A100S 4090S: the value, else what the data sheet says
of_model() {
    case "$1$(fact 1)" in
    [0-9]*) echo "$1" ;;
    *H200*) echo "$3" ;;
    *H100*) echo "$2" ;;
    *A100*) echo "$4" ;;
    *4090*) echo "$5" ;;
    *) echo 0 ;;
    esac
}
peak_rate=$(of_model "${TRANCHE_BENCH_PEAK:-}" 989e12 989e12 312e12 165.2e12)
peak_bytes=$(of_model "${TRANCHE_BENCH_BYTES:-}" 3.35e12 4.8e12 2.04e12 1.01e12)

gpu_machine() {
    machine
    ! has_gpu || echo "GPU: $(fact 1), driver $(fact 2), $(fact 3) MHz, $(fact 4) W," \
        "$(fact 5) MiB of which $(fact 6) in use before"
    [ -z "$small" ] || echo "GPU: none; the tests' stand-in, so figures mean nothing"
}

# gpt2_sizes LAYERS WIDTH HEADS
gpt2_sizes() {
    context=${TRANCHE_BENCH_CONTEXT:-1024}
    layers=${chosen:-$1} width=$2 heads=$3
    [ -z "$small" ] || width=32 heads=2
    flops=$(calculate "6 * (12 * $layers * $width ^ 2 + $vocabulary * $width + $context * \
$width) + 6 * $layers * $width * $context")
}

# gpt2 NAME T M [STEPS]: $work/NAME.json
gpt2() {
    [ -z "$small" ] || set -- "$1" 32 2 2
    cat >"$work/$1.json" <<END
{"model": {"model_type": "gpt2", "vocab_size": $vocabulary, "n_positions": $context,
           "n_layer": $layers, "n_embd": $width, "n_head": $heads,
           "resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0},
 "data": {"format": "bytes", "train": ["$text"]}, "out": "$work/$1",
 "steps": ${4:-$steps}, "train_batch_size": $2, "train_micro_batch_size_per_gpu": $3,
 "bf16": {"enabled": true}, "device": "$device", "execution": {"recompute": "auto"},
 "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "weight_decay": 0.1}}}
END
}

# llama_sizes: of Llama 7B
llama_sizes() {
    context=${TRANCHE_BENCH_CONTEXT:-4096}
    layers=${chosen:-32} width=4096 inner=11008 heads=32 rows=32000
    [ -z "$small" ] || width=32 inner=96 heads=2 rows=257
    flops=$(calculate "6 * ($layers * (4 * $width ^ 2 + 3 * $width * $inner) + $rows * \
$width) + 6 * $layers * $width * $context")
}

llama() { # NAME
    cat >"$work/$1.json" <<END
{"model": {"model_type": "llama", "vocab_size": $rows, "hidden_size": $width,
           "intermediate_size": $inner, "num_hidden_layers": $layers,
           "num_attention_heads": $heads, "max_position_embeddings": $context},
 "data": {"format": "bytes", "train": ["$text"], "max_length": $context},
 "out": "$work/$1", "steps": $steps, "train_batch_size": 8,
 "train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true}, "device": "$device",
 "execution": {"recompute": "auto"},
 "optimizer": {"type": "AdamW", "params": {"lr": 1e-5, "weight_decay": 0.1}}}
END
}

host_gigabytes() {
    awk '/^MemAvailable/ { printf "%d", $2 / 1e6 }' /proc/meminfo
}
