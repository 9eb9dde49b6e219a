# shellcheck shell=sh
# short_run.sh: a short run that walk.sh and kills.sh disturb, and what it leaves. Read
# with "." once these are set: launch (tests/launch.sh), mpirun, program, ranks, start
# ("fresh": from nothing; "resumed": from a checkpoint in the middle), steps.
# shellcheck disable=SC2154 # set by those who read this
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM
OMP_WAIT_POLICY=passive OMP_NUM_THREADS=1 XDG_CACHE_HOME=$dir/cache
export OMP_WAIT_POLICY OMP_NUM_THREADS XDG_CACHE_HOME

launch=$(cd "$(dirname "$launch")" && pwd)/${launch##*/}
# A copy of its own name, so that its processes can be told from others'.
copy=$dir/tranche
cp "$program" "$copy"
awk 'BEGIN { for (i = 0; i < 40; i++) printf "%d,%g,%d,%d\n", i % 7, i % 5 / 3, i % 11, i % 3 }' \
    >"$dir/data.csv"
cat >"$dir/run.json" <<END
{"model": {"model_type": "mlp", "layer_sizes": [3, 5, 3]},
 "data": {"format": "csv", "train": ["data.csv"], "validation": 0.2},
 "steps": $steps, "seed": 3, "out": "out", "train_batch_size": 5,
 "train_micro_batch_size_per_gpu": 2, "execution": {"threads": 1, "wave": 1},
 "zero_optimization": {"stage": 2}, "evaluation": {"every": 3, "samples": 4},
 "optimizer": {"type": "AdamW", "params": {"lr": 1e-2}},
 "checkpoint": {"every": 3, "keep": 2}}
END

# train SETTING... -- OPTION...: the run, with these settings in the environment of the
# program; what it says is in $dir/log. Status 124: it hung.
train() {
    settings=
    while [ "$1" != -- ]; do
        settings="$settings $1"
        shift
    done
    shift
    rc=0
    if [ "$ranks" -eq 1 ]; then
        # shellcheck disable=SC2086
        (cd "$dir" && exec timeout -k 5 60 env $settings "$copy" train run.json "$@") \
            >"$dir/log" 2>&1 || rc=$?
    else
        # shellcheck disable=SC2086
        (cd "$dir" && exec timeout -k 5 60 sh "$launch" "$mpirun" "$ranks" \
            env $settings "$copy" train run.json "$@") >"$dir/log" 2>&1 || rc=$?
    fi
    return "$rc"
}

# Processes of the run that are there.
ranks_of() {
    for exe in /proc/[0-9]*/exe; do
        if [ "$(readlink "$exe" 2>/dev/null)" = "$copy" ]; then
            exe=${exe#/proc/}
            echo "${exe%/exe}"
        fi
    done
}

# Waits until none is left; status 1: some stay.
await_none() {
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25; do
        [ -n "$(ranks_of)" ] || return 0
        sleep 0.5
    done
    return 1
}

# The folder as the run finds it.
begin() {
    rm -rf "$dir/out"
    [ "$start" = fresh ] || cp -a "$dir/middle" "$dir/out"
}

# Weights, optimizer, state and metrics, but for what tells time and memory.
left() {
    (cd "$dir/out/checkpoints/latest" && cat model.safetensors optimizer.safetensors \
        config.json state.json) | cksum
    sed -e 's/"time": [^,}]*,* *//; s/, "[a-z_]*seconds".*//' "$dir/out/metrics.jsonl"
}

# What an undisturbed run leaves; makes the calibration and the checkpoint in the middle.
prepare() {
    rm -rf "$dir/out"
    train -- --steps 3 || return 1
    mv "$dir/out" "$dir/middle"
    begin
    train -- || return 1
    left >"$dir/wanted"
    [ "$(grep -c '"loss"' "$dir/wanted")" -eq "$steps" ]
}
