#!/bin/sh
# batch.sh [FOLDER [PART...]]: every figure of docs/batch.md, as FOLDER/batch-*.svg
# (docs/figures), and the numbers as text. Parts: rules (with noise scale, samples to a
# loss, a batch that grows), warmup, norms, cuts, sharpness, spikes, speed; all without
# names. A small GPT-2 on the bytes of this project's own sources, and a small classifier
# on made-up samples. speed measures time and wants a quiet machine.
#
#     TRANCHE_BENCH_SAMPLES   that a run of GPT-2 learns from (12288)
set -eu
cd "$(dirname "$0")/.."
. bench/common.sh
folder=${1:-docs/figures}
[ $# -eq 0 ] || shift
parts=${*:-rules warmup norms cuts sharpness spikes speed}
samples=${TRANCHE_BENCH_SAMPLES:-12288}
reference=16
mkdir -p "$folder"
find include src -name '*.[ch]' | LC_ALL=C sort | xargs cat >"$text"

# train NAME [SET]...: trains $work/run.json into $work/NAME
train() {
    name=$1
    shift
    for set in "$@"; do
        shift
        set -- "$@" --set "$set"
    done
    "$program" train "$work/run.json" --resume never --out "$work/$name" "$@" \
        >"$work/log" 2>&1 || {
        cat "$work/log" >&2
        return 1
    }
}

# gpt2 T RULE: a run of all samples; numbers were found at the reference batch. What is
# measured for the noise scale is told of each step, and smoothed here.
gpt2() {
    cat >"$work/run.json" <<END
{"model": {"model_type": "gpt2", "n_layer": 2, "n_embd": 64, "n_head": 4,
           "n_positions": 64, "resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0},
 "data": {"format": "bytes", "train": ["$text"], "validation": 0.01},
 "evaluation": {"samples": 256}, "checkpoint": {"keep": 1},
 "train_batch_size": $1, "steps": $((samples / $1)),
 "train_micro_batch_size_per_gpu": $(($1 < 16 ? $1 / 2 : 8)),
 "noise_scale": {"measure": true, "smoothing": 0},
 "batch_scaling": {"rule": "$2", "reference_batch": $reference},
 "scheduler": {"type": "WarmupCosineLR", "unit": "samples",
               "params": {"warmup_num_steps": $((samples / 10)), "warmup_type": "linear"}},
 "optimizer": {"type": "AdamW", "params": {"lr": 2e-3, "betas": [0.95, 0.99],
               "weight_decay": 0.1}}}
END
}

# metric KEY NAME: lines "SAMPLES VALUE" of a run's steps, where it is a number
metric() {
    sed -n "s/.*\"samples\": \([0-9]*\),.*\"$1\": \([-0-9][0-9.e+-]*\),.*/\1 \2/p" \
        "$work/$2/metrics.jsonl"
}

# noise SAMPLES NAME: lines "SAMPLES SCALE" of a run: tr S and |G|^2 smoothed apart over
# so many samples, and divided
noise() {
    sed -n 's/.*"samples": \([0-9]*\),.*"noise_trace": \([^,]*\), "noise_gradient": \([^,}]*\).*/\1 \2 \3/p' \
        "$work/$2/metrics.jsonl" |
        awk -v window="$1" '
            $2 == "null" { next }
            { keep = 1 - ($1 - before) / window; keep = keep > 0 ? keep : 0; before = $1 }
            { trace = keep * trace + $2; square = keep * square + $3 }
            trace > 0 && square > 0 { print $1, trace / square }'
}

# smooth SAMPLES: the running mean over so many samples, one line for each quarter of it
smooth() {
    awk -v window="$1" '
        { share = ($1 - before) / window; share = share < 1 ? share : 1; before = $1 }
        { mean = NR == 1 ? $2 : mean + share * ($2 - mean) }
        $1 >= next_one { print $1, mean; next_one = $1 + window / 4 }'
}

# plot NAME TITLE X Y [OPTION=1]...: lines "SERIES X Y" from stdin as a figure; options
# of plot.awk
plot() {
    file=$folder/batch-$1.svg title=$2 xname=$3 yname=$4
    shift 4
    for option in "$@"; do
        shift
        set -- "$@" -v "$option"
    done
    awk -v title="$title" -v xname="$xname" -v yname="$yname" "$@" -f bench/plot.awk \
        >"$file"
}

series() { # NAME: puts it before every line
    sed "s/^/$1 /"
}

validation() { # NAME: the last validation loss of a run
    sed -n 's/.*"validation_loss": \([0-9.e+-]*\),.*/\1/p' "$work/$1/metrics.jsonl" |
        tail -n 1
}

# ---- parts

# The same number of samples at each T with each rule.
rules() {
    printf '\n%s samples of 64 bytes each, numbers found at T = 16\n\n' "$samples"
    printf '| T | steps | none | sqrt | linear | adam | noise scale at the end |\n'
    printf '|---|---|---|---|---|---|---|\n'
    for batch in 4 16 64 128; do
        row="| $batch | $((samples / batch)) |"
        for rule in none sqrt linear adam; do
            name=$rule-$batch
            if [ "$batch" -eq "$reference" ] && [ "$rule" != none ]; then
                cp -r "$work/none-$batch" "$work/$name" # the same run
            else
                gpt2 "$batch" "$rule"
                train "$name"
            fi
            echo "$rule $batch $(validation "$name")" >>"$work/rules"
            row="$row $(calculate "$(validation "$name")" %.3f) |"
        done
        noise=$(noise 1600 "adam-$batch" | tail -n 1)
        echo "$row $(calculate "${noise#* }") |"
    done
    plot rules "Validation loss after $samples samples" "effective batch T" loss logx=1 \
        <"$work/rules"
    for batch in 4 16 64; do
        noise 1600 "adam-$batch" | smooth $((samples / 24)) |
            awk -v least=$((samples / 6)) '$1 > least' | series "T=$batch"
    done | plot noise "Gradient noise scale" "samples learned from" \
        "noise scale, samples" logy=1
    samples_to_a_loss
    growing
}

# Samples until the mean training loss is first below 2.6, with each T's best rule, and
# the noise scale of the 400 samples before; what 1 + T / B says, from the smallest T and
# B = (N1 T2 - N2 T1) / (N2 - N1) of the smallest and the largest T.
samples_to_a_loss() {
    for batch in 4 16 64 128; do
        best=$(sort -k 3 -g "$work/rules" | awk -v t="$batch" '$2 == t { print $1; exit }')
        reached=$(metric loss "$best-$batch" | smooth 512 |
            awk '$2 < 2.6 { print $1; exit }')
        [ -n "$reached" ] || continue
        echo "$batch $reached $(noise 400 "$best-$batch" |
            awk -v at="$reached" '$1 <= at { last = $2 } END { print last }')"
    done >"$work/reached"
    awk '{ t[NR] = $1; n[NR] = $2; scale[NR] = $3 }
         END { b = (n[1] * t[NR] - n[NR] * t[1]) / (n[NR] - n[1])
               for (i = 1; i <= NR; i++)
                   print t[i], n[i], n[1] * (1 + t[i] / b) / (1 + t[1] / b), scale[i], b }' \
        "$work/reached" >"$work/said"
    printf '\n| T | samples to a loss of 2.6 | steps | by 1 + T / B | noise scale then |\n'
    printf '|---|---|---|---|---|\n'
    awk '{ printf "| %d | %d | %d | %.0f | %.0f |\n", $1, $2, $2 / $1, $3, $4; b = $5 }
         END { printf "B by these runs: %.0f\n", b }' "$work/said"
    awk '{ print "measured", $1, $2; print "1+T/B", $1, $3 }' "$work/said" |
        plot samples "Samples to a training loss of 2.6" "effective batch T" samples \
            logx=1
}

# A batch that grows beside batches that stay.
growing() {
    gpt2 16 adam
    quarter=$((samples / 64))
    train grows "batch_schedule=[[$((2 * quarter)), 64]]" \
        "steps=$((2 * quarter + quarter / 2))"
    printf '\n%s: %s steps, validation loss %s\n' "T = 16, and 64 after half of the samples" \
        "$((2 * quarter + quarter / 2))" "$(calculate "$(validation grows)" %.3f)"
    for name in adam-16 adam-64 grows; do
        sed -n 's/.*"step": \([0-9]*\),.*"loss": \([0-9.e+-]*\),.*/\1 \2/p' \
            "$work/$name/metrics.jsonl" | smooth 24 | series "$name"
    done | sed 's/adam-/T=/' | plot growth "Training loss by steps" steps loss
}

# A large rate at a large batch, with and without warm-up.
warmup() {
    printf '\n| T = 128, lr 0.032 | validation loss |\n|---|---|\n'
    for share in 0 5 20; do
        gpt2 128 none
        train "warm-$share" optimizer.params.lr=0.032 \
            "scheduler.params.warmup_num_steps=$((samples * share / 100))"
        echo "| warm-up $share% | $(calculate "$(validation "warm-$share")" %.3f) |"
        metric loss "warm-$share" | series "warm-up=$share%" >>"$work/warm"
    done
    plot warmup "Training loss, T = 128, lr 0.032" "samples learned from" loss \
        <"$work/warm"
}

# At the same weights: the gradient's norm against T, beside |G|^2 + tr S / T, whose two
# numbers are those of the smallest and the largest T; and B by these, beside the noise
# scale that each run has measured.
norms() {
    gpt2 16 none
    train weights "steps=$((samples / 32))"
    for batch in 4 8 16 32 64 128; do
        gpt2 "$batch" none
        train "norm-$batch" "model=$work/weights/checkpoints/latest" \
            "steps=$((samples / batch))" noise_scale.smoothing=0.9999999 \
            'scheduler={"type": "constant"}' \
            'optimizer={"type": "SGD", "params": {"lr": 0}}'
        metric grad_norm "norm-$batch" |
            awk -v t="$batch" '{ sum += $2 * $2 } END { printf "%d %.9g ", t, sum / NR }'
        metric noise_scale "norm-$batch" | tail -n 1 | cut -d ' ' -f 2
    done >"$work/norms"
    awk '{ t[NR] = $1; square[NR] = $2; scale[NR] = $3 }
         END { trace = (square[1] - square[NR]) / (1 / t[1] - 1 / t[NR])
               mean = square[1] - trace / t[1]
               for (i = 1; i <= NR; i++)
                   print t[i], sqrt(square[i]), sqrt(mean + trace / t[i]), trace / mean,
                       scale[i] }' \
        "$work/norms" >"$work/lines"
    printf '\n| T | gradient norm | by the ends | noise scale |\n|---|---|---|---|\n'
    awk '{ printf "| %d | %.3f | %.3f | %.0f |\n", $1, $2, $3, $5 } NR == 1 { noise = $4 }
         END { printf "B by the ends: %.0f\n", noise }' "$work/lines"
    awk '{ print "measured", $1, $2; print "predicted", $1, $3 }' "$work/lines" |
        plot norms "Gradient norm before clipping, same weights" "effective batch T" norm \
            logx=1
}

# How far the weights of one batch of 64 cut in several ways come apart from the whole.
cuts() {
    gpt2 64 none
    for precision in f32 bf16; do
        for micro in 64 1 4 16; do
            [ "$precision-$micro" != bf16-4 ] || continue
            train "cut-$precision-$micro" "train_micro_batch_size_per_gpu=$micro" \
                steps=100 bf16.enabled="$([ $precision = bf16 ] && echo true || echo false)" \
                checkpoint.every=10 checkpoint.keep=99 noise_scale.measure=false
        done
    done
    printf '\n| cut | step 10 | step 50 | step 100 |\n|---|---|---|---|\n'
    for cut in f32-1 f32-4 f32-16 bf16-1 bf16-16; do
        row="| $cut |"
        for step in 10 20 30 40 50 60 70 80 90 100; do
            apart=$(distance "$cut" "${cut%-*}-64" "$step")
            echo "$cut $step $apart" >>"$work/apart"
            case $step in 10 | 50 | 100) row="$row $apart |" ;; esac
        done
        echo "$row"
    done
    plot cuts "Distance to the uncut batch's weights" step \
        "distance / norm of the weights" logy=1 <"$work/apart"
}

# distance CUT WHOLE STEP: |a - b| / |b| of all weights
distance() {
    name=checkpoints/step-$(printf %08d "$3")
    "$program" diff "$work/cut-$1/$name" "$work/cut-$2/$name" --json |
        awk '/"file":/ { model = /"model"/ }
             model && /"l2":/ { gsub(/,/, ""); apart += $2 * $2 }
             model && /"l2_a":/ { gsub(/,/, ""); whole += $2 * $2 }
             END { printf "%.2e", sqrt(apart / whole) }'
}

# made_up ROWS SEED POISON: csv of three classes that bands of a sum tell apart; one label
# in ten is wrong. With POISON, rows 2240 to 2271 have others and are loud, and row 3205
# overflows.
made_up() {
    awk -v rows="$1" -v seed="$2" -v poison="$3" '
        function uniform() { seed = seed * 16807 % 2147483647; return seed / 2147483647 }
        BEGIN {
            print "a,b,c,d,e,f,g,h,label"
            for (r = 0; r < rows; r++) {
                line = ""; sum = 0
                for (f = 0; f < 8; f++) {
                    x = uniform() * 4 - 2; sum += f % 2 ? x : x * x - 4 / 3
                    if (poison && r >= 2240 && r < 2272) x *= 8
                    if (poison && r == 3205) x = f % 2 ? "3e38" : "-3e38"
                    line = line (poison && r == 3205 ? x : sprintf("%.5f", x)) ","
                }
                label = sum < -1.5 ? 0 : sum < 1.5 ? 1 : 2
                if (uniform() < .1) label = int(uniform() * 3)
                if (poison && r >= 2240 && r < 2272) label = (label + 1) % 3
                print line label
            }
        }'
}

# mlp TRAIN T: a classifier by plain SGD
mlp() {
    cat >"$work/run.json" <<END
{"model": {"model_type": "mlp", "layer_sizes": [8, 32, 32, 3]},
 "data": {"format": "csv", "train": ["$1"], "validation": ["$work/held.csv"]},
 "train_batch_size": $2, "train_micro_batch_size_per_gpu": $(($2 < 64 ? $2 : 64)),
 "checkpoint": {"keep": 1}, "gradient_clipping": 0,
 "optimizer": {"type": "SGD", "params": {"lr": 0.2}}}
END
}

# Where SGD ends: 60 epochs at each T, at one rate and at rates that follow T.
sharpness() {
    made_up 1024 5 0 >"$work/few.csv"
    made_up 4096 6 0 >"$work/held.csv"
    printf '\n| T | rate | training loss | validation loss | largest curvature | 2 / rate |\n'
    printf '|---|---|---|---|---|---|\n'
    for rule in none linear; do
        for batch in 8 16 32 64 128 256; do
            mlp "$work/few.csv" "$batch"
            train sharp epochs=60 "batch_scaling={\"rule\": \"$rule\", \"reference_batch\": 64}"
            rate=$(sed -n 's/.*"lr": \([0-9.e+-]*\),.*/\1/p' "$work/sharp/metrics.jsonl" |
                tail -n 1)
            build/bench/sharpness "$work/run.json" --samples 1024 \
                --model "$work/sharp/checkpoints/latest" >"$work/curvature"
            curvature=$(figure curvature "$work/curvature")
            echo "$rule $batch $curvature" >>"$work/sharp.plot"
            echo "| $batch | $(calculate "$rate" %.3g) |" \
                "$(calculate "$(figure loss "$work/curvature")" %.3f) |" \
                "$(calculate "$(validation sharp)" %.3f) | $(calculate "$curvature" %.2f) |" \
                "$(calculate "2 / $rate" %.3g) |"
        done
    done
    sed 's/^none/same-rate/; s/^linear/linear-rule/' "$work/sharp.plot" |
        plot sharpness "Largest curvature after 60 epochs of SGD" "effective batch T" \
            curvature logx=1
}

# A poisoned run under each guard.
spikes() {
    made_up 6400 9 1 >"$work/poisoned.csv"
    made_up 6400 9 0 >"$work/clean.csv"
    made_up 1024 6 0 >"$work/held.csv"
    printf '\n| guard | validation loss at the end | of the clean run |\n|---|---|---|\n'
    for action in clean none warn skip rollback; do
        data=$work/poisoned.csv guard=$action
        if [ "$action" = clean ]; then data=$work/clean.csv guard=none; fi
        mlp "$data" 32
        train "spike-$action" data.order=sequential steps=180 evaluation.every=2 \
            checkpoint.every=16 \
            "spike_guard={\"action\": \"$guard\", \"warmup_steps\": 5, \"rate_factor\": 0.8}" \
            'optimizer={"type": "AdamW", "params": {"lr": 0.01}}'
        [ "$action" != clean ] || whole=$(validation spike-clean)
        echo "| $action | $(calculate "$(validation "spike-$action")" %.4f) |" \
            "$(calculate "$(validation "spike-$action") / $whole" %.3f) |"
        sed -n 's/.*"step": \([0-9]*\),.*"validation_loss": \([0-9.e+-]*\),.*/\1 \2/p' \
            "$work/spike-$action/metrics.jsonl" | awk '$1 >= 40 && $1 <= 140' |
            series "$action" >>"$work/spikes"
    done
    plot spikes "A poisoned batch at step 71, one that overflows at 101" step \
        "validation loss" <"$work/spikes"
}

# Tokens a second of the fastest step, which other work on the machine disturbs least:
# what small micro-batches cost, and what the update costs small batches.
speed() {
    printf '\n| m = T | tokens/s | T = 64 in micro-batches of m | tokens/s |\n|---|---|---|---|\n'
    for micro in 1 2 4 8 16 32 64; do
        for batch in "$micro" 64; do
            gpt2 64 none
            train speed "train_batch_size=$batch" "train_micro_batch_size_per_gpu=$micro" \
                "steps=$((4096 / batch > 200 ? 200 : 4096 / batch))" \
                noise_scale.measure=false data.validation=null
            sed -n 's/.*"tokens_per_second": \([0-9.e+]*\),.*/\1/p' \
                "$work/speed/metrics.jsonl" | sort -g | tail -n 1
        done | paste -s -d ' ' | sed "s/^/$micro /"
    done | tee "$work/speed.txt" |
        awk '{ printf "| %d | %.0f | %d | %.0f |\n", $1, $2, $1, $3 }'
    awk '{ print "T=m", $1, $2 / 1000; print "T=64", $1, $3 / 1000 }' "$work/speed.txt" |
        plot speed "Speed of a small GPT-2" "micro-batch m" "thousand tokens/s" logx=1
}

machine
for part in $parts; do
    case $part in
    rules | warmup | norms | cuts | sharpness | spikes | speed) "$part" ;;
    *) echo "batch.sh: no part $part" >&2 && exit 1 ;;
    esac
done
