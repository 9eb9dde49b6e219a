#!/bin/sh
# published.sh: the table of docs/simulate.md: seconds of a step that others have published,
# beside what `tranche simulate` says of the same run on the machines of examples/machines.
# It measures nothing and gives the same table anywhere. Ends with status 1 when more than two
# rows are off by more than 15 %, or the mean by more than 8 %.
#
#     bench/published.sh [-v]      -v: beside each row what its step consists of
#     bench/published.sh held      further rows of llm-foundry's tables, to which no file was
#                                  fitted: tokens a second of one rank
set -u
cd "$(dirname "$0")/.." || exit 1
program=$PWD/build/tranche
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
a100=examples/machines/dgx-a100.json
h100=examples/machines/dgx-h100.json
verbose=${1:-}
none='execution.recompute="none"'
all='execution.recompute="unit"'
parts=pipeline.virtual_stages # v
foundry="[llm-foundry](https://github.com/mosaicml/llm-foundry/blob/main/scripts/train/benchmarking/README.md)"
titan="[torchtitan](https://github.com/pytorch/torchtitan/blob/main/benchmarks/llama3_h100_202412_torchtitan.md)"
bridge="[Megatron Bridge](https://docs.nvidia.com/nemo/megatron-bridge/latest/performance-summary-archive.html)"
korthikanti="[Korthikanti 2022](https://arxiv.org/abs/2205.05198)"
narayanan="[Narayanan 2021](https://arxiv.org/abs/2104.04473)"
megascale="[MegaScale](https://arxiv.org/abs/2402.15627)"
herd="[Llama 3](https://arxiv.org/abs/2407.21783)"

# gpt LAYERS WIDTH HEADS VOCABULARY [POSITIONS]: GPT-2's form, without dropout
gpt() {
    positions=${5:-2048}
    cat >"$work/run.json" <<END
{"model": {"model_type": "gpt2", "n_layer": $1, "n_embd": $2, "n_head": $3,
           "n_positions": $positions, "vocab_size": $4,
           "resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0},
 "data": {"format": "tokens", "max_length": $positions}, "bf16": {"enabled": true},
 "zero_optimization": {"stage": 3}}
END
}

# llama LAYERS WIDTH HEADS MLP STAGE [TENSOR [STAGES]]: Llama 3 at 8,192 positions
llama() {
    cat >"$work/run.json" <<END
{"model": {"model_type": "llama", "num_hidden_layers": $1, "hidden_size": $2,
           "intermediate_size": $4, "num_attention_heads": $3, "num_key_value_heads": 8,
           "vocab_size": 128256, "max_position_embeddings": 8192, "rope_theta": 500000,
           "rms_norm_eps": 1e-5, "tie_word_embeddings": false},
 "data": {"format": "tokens", "max_length": 8192}, "bf16": {"enabled": true},
 "zero_optimization": {"stage": $5},
 "tensor_parallel": {"size": ${6:-1}}, "pipeline": {"stages": ${7:-1}}}
END
}

# megatron LAYERS WIDTH HEADS [STAGES [VOCABULARY]]: GPT as Megatron-LM trains it, layers
# shared by 8 ranks
megatron() {
    cat >"$work/run.json" <<END
{"model": {"model_type": "gpt2", "n_layer": $1, "n_embd": $2, "n_head": $3,
           "n_positions": 2048, "vocab_size": ${5:-51200},
           "resid_pdrop": 0.1, "embd_pdrop": 0.1, "attn_pdrop": 0.1},
 "data": {"format": "tokens", "max_length": 2048}, "fp16": {"enabled": true},
 "tensor_parallel": {"size": 8}, "pipeline": {"stages": ${4:-1}}}
END
}

# field NAME: of the step simulated last
field() {
    sed -n "s/^ *\"$1\": \([0-9.e+-]*\),*/\1/p" "$work/step.json" | head -n 1
}

# row NAME SECONDS MACHINE RANKS T M UNKNOWN SOURCE [KEY=VALUE...]
row() {
    name=$1 published=$2 machine=$3 ranks=$4 batch=$5 micro=$6 unknown=$7 source=$8
    shift 8
    for key in "$@"; do
        set -- "$@" --set "$key"
        shift
    done
    "$program" simulate "$work/run.json" --machine "$machine" --ranks "$ranks" \
        --set "train_batch_size=$batch" --set "train_micro_batch_size_per_gpu=$micro" \
        "$@" --json >"$work/step.json" 2>"$work/log" || {
        cat "$work/log" >&2
        exit 1
    }
    awk -v name="$name" -v published="$published" -v simulated="$(field seconds)" \
        -v unknown="$unknown" -v source="$source" 'BEGIN {
        printf "| %s | %s | %.4g | %.2f | %s | %s |\n", name, published, simulated,
            simulated / published, unknown, source
    }' | tee -a "$work/table"
    if [ "$verbose" = -v ]; then
        "$program" simulate "$work/run.json" --machine "$machine" --ranks "$ranks" \
            --set "train_batch_size=$batch" --set "train_micro_batch_size_per_gpu=$micro" \
            "$@" >&2
    fi
}

# simulated MACHINE RANKS T M KEY=VALUE: tokens a second of one rank
simulated() {
    "$program" simulate "$work/run.json" --machine "$1" --ranks "$2" \
        --set "train_batch_size=$3" --set "train_micro_batch_size_per_gpu=$4" --set "$5" \
        --json >"$work/step.json" 2>"$work/log" || {
        cat "$work/log" >&2
        exit 1
    }
    field tokens_per_second_per_rank
}

# Rows of the tables for A100 80 GB and H100: GPU, layers, width, heads, sequence, GPUs, m, T,
# whether all is recomputed, and tokens a second of a GPU.
held() {
    echo "| run | published, tokens/s a rank | simulated | ratio of times |"
    echo "|---|---|---|---|"
    while read -r gpu layers width heads length ranks micro batch recomputed published; do
        gpt "$layers" "$width" "$heads" 50368 "$length"
        keeps=$none
        [ "$recomputed" = all ] && keeps=$all
        rate=$(simulated "examples/machines/dgx-$gpu.json" "$ranks" "$batch" "$micro" \
            "$keeps") || exit 1
        awk -v name="$ranks $gpu, $layers x $width, s = $length, T = $batch, m = $micro" \
            -v published="$published" -v simulated="$rate" 'BEGIN {
            printf "| %s | %d | %.0f | %.2f |\n", name, published, simulated,
                published / simulated
        }'
    done <<END | tee "$work/held"
a100 80 8192 64 2048 64 8 2048 all 410
a100 48 7168 56 4096 8 1 168 all 814
a100 48 7168 56 8192 8 1 168 all 574
a100 40 5120 40 1024 8 40 960 all 2330
a100 40 5120 40 4096 8 10 240 all 2060
a100 40 5120 40 16384 8 3 72 all 1431
a100 32 4096 32 1024 8 64 1024 all 4357
a100 32 4096 32 8192 8 8 128 all 3206
a100 32 4096 32 32768 8 2 32 all 1672
a100 32 2560 20 512 8 40 1920 none 12127
a100 32 2560 20 2048 8 10 160 none 10811
a100 32 2560 20 8192 8 3 144 none 7695
a100 24 2048 16 512 8 56 1792 none 23148
a100 24 2048 16 2048 8 14 448 none 20513
a100 24 2048 16 8192 8 3 96 none 13814
a100 24 1536 12 2048 8 24 384 none 32434
a100 24 1024 16 2048 8 32 512 none 58782
h100 80 8192 64 2048 64 8 2048 all 1039
h100 48 7168 56 2048 8 3 504 all 2002
h100 48 7168 56 2048 32 14 1344 all 2308
h100 48 7168 56 4096 8 1 168 all 1802
h100 48 7168 56 8192 8 1 168 all 1384
h100 40 5120 40 1024 8 40 960 all 5502
h100 40 5120 40 2048 8 2 16 none 4792
h100 40 5120 40 2048 64 2 128 none 4800
h100 40 5120 40 4096 8 10 240 all 4717
h100 40 5120 40 16384 8 3 72 all 2985
h100 32 4096 32 1024 8 64 1024 all 10203
h100 32 4096 32 8192 8 8 128 all 6935
h100 32 4096 32 32768 8 2 32 all 3318
h100 32 2560 20 512 8 40 1920 none 27965
h100 32 2560 20 2048 16 10 480 none 24142
h100 32 2560 20 2048 64 6 1152 none 22525
h100 32 2560 20 8192 8 3 144 none 16578
h100 24 2048 16 2048 8 14 112 none 45455
h100 24 2048 16 8192 8 3 96 none 29157
h100 24 1536 12 2048 8 24 384 none 63147
END
    awk -F'|' '{
        off = $5 - 1
        off = off < 0 ? -off : off
        near += off <= 0.2
        sum += off
    } END {
        printf "\n%d rows: %d within 20 %%, %.1f %% off in the mean\n", NR, near, 100 * sum / NR
    }' "$work/held"
}

if [ "$verbose" = held ]; then
    held
    exit
fi

echo "| run | published, s a step | simulated | ratio | what of it is not known | source |"
echo "|---|---|---|---|---|---|"
gpt 32 4096 32 50368
row "GPT 6.7B, 8 A100, T = 96, m = 6" 5.30 $a100 8 96 6 \
    "versions of PyTorch and kernels, of early 2023" "$foundry" "$none"
row "the same, 8 H100, T = 48" 1.155 $h100 8 48 6 "versions, of 2023" "$foundry" "$none"
gpt 40 5120 40 50368
row "GPT 12.9B, 8 A100, T = 48, m = 2" 5.43 $a100 8 48 2 "as above" "$foundry" "$none"
gpt 48 7168 56 50368
row "GPT 30B, all recomputed, 8 A100, T = 504, m = 3" 140.8 $a100 8 504 3 "as above" \
    "$foundry" "$all"
row "the same, 16 H100, T = 480, m = 10" 27.15 $h100 16 480 10 "as above" "$foundry" "$all"
llama 32 4096 32 14336 3
sed -e 's/3.35e12, "power": 700/2.4e12, "power": 500/' $h100 >"$work/titan.json"
row "Llama 3.1 8B, 8 H100 of 500 W and 2.4 TB/s, T = 16, m = 2" 2.457 "$work/titan.json" \
    8 16 2 "which products are kept: every second one" "$titan" \
    'execution.recompute=["norm", "activation", "pre_activation"]'
row "Llama 3 8B in fp8, 8 H100, T = 128, m = 1" 9.07 $h100 8 128 1 \
    "what is recomputed; clocks" "$bridge" fp8.enabled=true

sequence=tensor_parallel.sequence=true
megatron 48 6144 64
row "GPT 22B, 8 A100, t = 8, T = 4, m = 4" 1.10 $a100 8 4 4 "" "$korthikanti" "$none" \
    $sequence
row "the same, all recomputed, no sequence parallelism" 1.42 $a100 8 4 4 "" \
    "$korthikanti" "$all"
megatron 96 12288 96 8
row "GPT 175B, 64 A100, t = 8, p = 8, v = 3, T = 64, m = 1" 13.75 $a100 64 64 1 "" \
    "$korthikanti" "$none" $sequence $parts=3
row "the same, all recomputed, no sequence parallelism" 18.13 $a100 64 64 1 "" \
    "$korthikanti" "$all" $parts=3
megatron 105 20480 128 35
row "GPT 530B, 2,240 A100, t = 8, p = 35, v = 3, T = 2240, m = 1" 39.15 $a100 2240 2240 1 \
    "" "$korthikanti" "$none" $sequence $parts=3
guess="its micro-batch: 1 is a guess"
megatron 40 6144 48
row "GPT 18.4B, 256 A100, t = 8, T = 1024" 9.4 $a100 256 1024 4 \
    "its micro-batch: 4 is a guess" "$narayanan" "$all"
megatron 80 12288 96 8
row "GPT 145.6B, 1,536 A100, t = 8, p = 8, T = 2304" 24.8 $a100 1536 2304 1 "$guess" \
    "$narayanan" "$all"
megatron 105 20480 128 35
row "GPT 530B, 2,520 A100, t = 8, p = 35, T = 2520" 54.1 $a100 2520 2520 1 "$guess" \
    "$narayanan" "$all"
megatron 128 25600 160 64
row "GPT 1T, 3,072 A100, t = 8, p = 64, T = 3072" 102.6 $a100 3072 3072 1 "$guess" \
    "$narayanan" "$all"
megatron 96 12288 128 8 64000
row "GPT 175B, 256 A100, t = 8, p = 8, v = 6, T = 768" 40.0 $a100 256 768 1 \
    "what is recomputed: nothing is a guess" "$megascale" "$none" \
    zero_optimization.stage=1 $sequence $parts=6
llama 126 16384 128 53248 1 8 16
row "Llama 3 405B, 8,192 H100, t = 8, p = 16, T = 2048" 12.25 $h100 8192 2048 1 \
    "its step: 12.0 to 12.5 s; whether norms and dropout were shared; its parts of a stage" \
    "$herd" "$none" $sequence $parts=8

awk -F'|' '{
    off = $5 - 1
    off = off < 0 ? -off : off
    wrong += off > 0.15
    sum += off
    if (off >= worst) { worst = off; name = $2 }
} END {
    gsub(/^ +| +$/, "", name)
    printf "\n%d rows: %.1f %% off in the mean, at most %.1f %% (%s); ", NR,
        100 * sum / NR, 100 * worst, name
    printf "%d off by more than 15 %%\n", wrong
    exit wrong > 2 || sum / NR > 0.08
}' "$work/table"
