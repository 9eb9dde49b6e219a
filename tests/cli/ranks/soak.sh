#!/bin/sh
# soak.sh LAUNCH MPIRUN PROGRAM KILLS STEPS [SEED]: a reproducible run that loses a rank
# KILLS times, drawn at random, each time at a random step, and goes on each time on
# another number of ranks, at another stage and wave. It must end with the parameters of
# a run on one process that was never stopped, to the last bit.
set -eu
launch=$1 mpirun=$2 program=$3 kills=$4 steps=$5 seed=${6:-1}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT INT TERM

# A copy of its own name, so that its processes can be told from others'.
copy=$dir/tranche
cp "$program" "$copy"
cat >"$dir/run.json" <<END
{"model": {"model_type": "gpt2", "vocab_size": 256, "n_positions": 64, "n_layer": 4,
           "n_head": 4, "n_embd": 96},
 "data": {"format": "bytes", "train": ["$0"]}, "steps": $steps, "seed": 3,
 "train_batch_size": 13, "train_micro_batch_size_per_gpu": 2,
 "checkpoint": {"every": 4, "keep": 2},
 "execution": {"reproducible": true, "threads": 1},
 "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "weight_decay": 0.1}}}
END

fails() {
    echo "soak, seed $seed: $1"
    tail -n 5 "$dir"/log* 2>/dev/null || true
    exit 1
}

# draw N LEAST MOST: the N-th random number of the row that the seed begins
draw() {
    awk -v seed="$seed" -v n="$1" -v least="$2" -v most="$3" 'BEGIN {
        srand(seed)
        for (i = 0; i < n; i++) value = rand()
        print least + int(value * (most - least + 1))
    }'
}

# The newest step in the metrics; 0: none.
step() {
    sed -n 's/^{"step": \([0-9]*\),.*"loss".*/\1/p' "$dir/out/metrics.jsonl" \
        2>/dev/null | tail -n 1 | grep . || echo 0
}

# Their processes' numbers, in their order.
ranks_of() {
    # shellcheck disable=SC2012 # a link's target, which only ls tells of all at once
    ls -l /proc/[0-9]*/exe 2>/dev/null |
        sed -n "s|.* /proc/\([0-9]*\)/exe -> $copy\$|\1|p" | sort -n
}

begin() { # RANKS STAGE WAVE
    sh "$launch" "$mpirun" "$1" "$copy" train "$dir/run.json" --out "$dir/out" \
        --set "zero_optimization.stage=$2" --set "execution.wave=$3" \
        >"$dir/log" 2>&1 &
    running=$!
}

"$program" train "$dir/run.json" --out "$dir/whole" >"$dir/log.whole" 2>&1 ||
    fails "the run to compare with"

ranks=4
for kill in $(seq "$kills"); do
    stage=$(draw $((5 * kill)) 0 3)
    wave=$(draw $((5 * kill + 1)) 1 2)
    # Somewhere in its share of what is left, so that all of them come before the end.
    done_steps=$(step)
    share=$(((steps - done_steps) / (kills - kill + 1)))
    until=$((done_steps + $(draw $((5 * kill + 2)) 1 $((share > 1 ? share : 1)))))
    begin "$ranks" "$stage" "$wave"
    there=
    while { [ -z "$there" ] || [ "$(step)" -lt "$until" ]; } &&
        kill -0 "$running" 2>/dev/null; do
        sleep 0.02
        there=$(ranks_of)
    done
    [ -n "$there" ] || fails "kill $kill: nobody is there at step $(step)"
    count=$(echo "$there" | wc -l)
    kill -9 "$(echo "$there" | sed -n "$(draw $((5 * kill + 3)) 1 "$count")p")" ||
        fails "kill $kill: the run had ended at step $(step)"
    if wait "$running" && ! sh "$(dirname "$launch")/hides_kills.sh" "$mpirun"; then
        fails "kill $kill: the launcher ended with 0"
    fi
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        [ -n "$(ranks_of)" ] || break
        sleep 0.2
    done
    [ -z "$(ranks_of)" ] || fails "kill $kill: ranks are left behind"
    echo "kill $kill: of $count ranks, stage $stage, wave $wave, step $(step)"
    ranks=$(draw $((5 * kill + 4)) 1 4)
done

begin "$ranks" 3 2
wait "$running" || fails "the last run"
[ "$(step)" -eq "$steps" ] || fails "the last run ended at step $(step)"
"$program" diff "$dir/whole/checkpoints/latest" "$dir/out/checkpoints/latest" ||
    fails "not the parameters of the whole run"
