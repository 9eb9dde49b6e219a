#!/bin/sh
# encoders.sh MODEL [masked] [pairs] [large] [plans]: the figures of encoders in docs/benchmarks.md.
# MODEL: a folder of all-MiniLM-L6-v2, or of another BERT with its tokenizer. Texts fill their
# length, so there is no padding. One process of all cores, tokens a second and memory, three
# times each and by turns:
#   masked  masked tokens, windows of 128; transformers in PyTorch beside it
#   pairs   pairs of texts in one pass and in two; one batch of PyTorch's, and the cached loss
#           of sentence-transformers, which goes twice, beside it
#   large   steps of many pairs against steps of few, both in two passes
#   plans   measures nothing: memory and operations of one pass and of two, few pairs and many
# Of two quiet cores with AVX-512 it asks some five minutes, as reckoned by operations.
#
#     TRANCHE_BENCH_LENGTH    tokens of a text of a pair (64; of large 16)
#     TRANCHE_BENCH_TIMES     how often each row of masked and pairs is measured (3)
#     TRANCHE_BENCH_FEW       pairs of a step of few (1,024)
#     TRANCHE_BENCH_MANY      and of many (16,384)
set -u
cd "$(dirname "$0")/.." || exit 1
. bench/common.sh
. bench/table.sh
model=$(cd "$1" && pwd) || exit 1
shift
threads=$(nproc)
steps=${TRANCHE_BENCH_STEPS:-3}
times=${TRANCHE_BENCH_TIMES:-3}
length=${TRANCHE_BENCH_LENGTH:-64}
large_length=${TRANCHE_BENCH_LENGTH:-16} # a step of many pairs takes its time
few=${TRANCHE_BENCH_FEW:-1024}
many=${TRANCHE_BENCH_MANY:-16384}
batch=64

# run_file NAME TASK DATA T M STEPS: $work/NAME.json
run_file() {
    more=
    [ "$2" != contrastive ] || more=', "contrastive": {"symmetric": false}'
    cat >"$work/$1.json" <<END
{"model": "$model", "task": "$2"$more, "data": $3, "out": "$work/$1", "steps": $6,
 "train_batch_size": $4, "train_micro_batch_size_per_gpu": $5, "checkpoint": {"keep": 1},
 "optimizer": {"type": "AdamW", "params": {"lr": 1e-5, "weight_decay": 0.01}}}
END
}

# write_pairs COUNT: as many pairs of texts, longer than any length
write_pairs() {
    tr -cs 'a-z' '[\n*]' <"$text" | awk -v count="$1" '
        length($0) > 1 { words[n++] = $0 }
        END {
            for (i = 0; i < count; i++) {
                for (text = 0; text < 2; text++) {
                    line = ""
                    for (k = 0; k < 130; k++) line = line " " words[at++ % n]
                    of[text] = substr(line, 2)
                }
                printf "{\"anchor\": \"%s\", \"positive\": \"%s\"}\n", of[0], of[1]
            }
        }' >"$work/pairs.jsonl"
}

pair_data() {
    echo "{\"format\": \"jsonl\", \"train\": [\"$work/pairs.jsonl\"], \"max_length\": $length}"
}

bench_masked() {
    scale=1
    echo "masked tokens, windows of 128, m = 16, g = 4"
    head_of_columns
    run_file masked masked_lm \
        "{\"format\": \"text\", \"train\": [\"$text\"], \"max_length\": 128}" $batch 16 "$steps"
    for _ in $(seq "$times"); do
        run_ranks masked "Tranche" 1 "$threads"
        peer_row peer_masked "PyTorch, transformers" torch_encoders.py "$model" masked \
            --length 128 --batch $batch --steps "$steps"
    done
    head_of_ratios
    ratio "masked tokens over PyTorch" 1.5 ">=" masked.rate/peer_masked.rate
    ratio "memory over PyTorch's" 1 "<=" masked.peak/peer_masked.peak
}

bench_pairs() {
    scale=$length # metrics count texts
    echo "$batch pairs of two texts of $length tokens, m = 16"
    head_of_columns
    write_pairs $((4 * batch))
    run_file once contrastive "$(pair_data)" $batch 16 "$steps"
    run_file twice contrastive "$(pair_data)" $batch 16 "$steps"
    for _ in $(seq "$times"); do
        run_ranks once "Tranche, one pass" 1 "$threads"
        run_ranks twice "Tranche, two passes" 1 "$threads" --set contrastive.passes=2
        peer_row peer_once "PyTorch, transformers, one batch" torch_encoders.py "$model" \
            pairs --length "$length" --batch $batch --steps "$steps"
        peer_row peer_twice "sentence-transformers, cached loss" torch_encoders.py "$model" \
            cached --length "$length" --batch $batch --steps "$steps"
    done
    head_of_ratios
    ratio "one pass over PyTorch" 1.5 ">=" once.rate/peer_once.rate
    ratio "memory over PyTorch's" 1 "<=" once.peak/peer_once.peak
    ratio "two passes over sentence-transformers' cached loss" 1.5 ">=" \
        twice.rate/peer_twice.rate
    ratio "memory over its" 1 "<=" twice.peak/peer_twice.peak
    ratio "time of two passes over that of one" 1.4 "<=" once.rate/twice.rate
}

# One step of many, between two runs of few: the machine's other work changes all of them.
bench_large() {
    length=$large_length
    scale=$length
    echo "steps of $few and of $many pairs of two texts of $length tokens, m = 16, two passes"
    head_of_columns
    write_pairs "$many"
    run_file few contrastive "$(pair_data)" "$few" 16 3
    run_file many contrastive "$(pair_data)" "$many" 16 1
    run_ranks few "$few pairs" 1 "$threads" --set contrastive.passes=2
    run_ranks many "$many pairs" 1 "$threads" --set contrastive.passes=2
    run_ranks few "$few pairs" 1 "$threads" --set contrastive.passes=2
    head_of_ratios
    ratio "time a pair of $many over that of $few" 1.05 "<=" few.rate/many.rate
}

# planned PASSES T: MiB, and GFLOP a pair
planned() {
    "$program" plan "$work/plans.json" --set "contrastive.passes=$1" \
        --set "train_batch_size=$2" 2>"$work/log" |
        awk -v passes="$1" -v pairs="$2" '
            /GFLOP a step/ { for (i = 1; i < NF; i++) if ($(i + 1) == "GFLOP") flops = $i }
            /device  total/ { bytes = $3 }
            END { printf "| %d | %d | %.0f | %.2f |\n", passes, pairs, bytes / 1048576,
                      flops / pairs }'
}

bench_plans() {
    printf '| passes | pairs | device, MiB | GFLOP a pair |\n| --- | --- | --- | --- |\n'
    write_pairs 64
    run_file plans contrastive "$(pair_data)" 64 16 1
    for pairs in 64 "$few" "$many"; do
        planned 1 "$pairs"
        planned 2 "$pairs"
    done
}

machine
for part in ${*:-masked pairs large plans}; do
    echo
    "bench_$part"
done
