#!/bin/sh
# network.sh: two ranks with a slow network between them: two network namespaces, joined
# by a link of 1 Gbit/s and 0.2 ms there and back (tools/netns.sh; it needs root). The
# time of a step at stages 2 and 3 with waves of 1 and of g, with and without overlap,
# beside what `tranche simulate` says of the plan's bytes, and beside the same step in
# shared memory, which computing bounds. A few minutes; the ranks share this machine's
# cores, one thread each.
#
#     bench/network.sh [g]
#
# g: micro-batches of a rank; without one, the least power of two at which the plan says
# that computing covers the network at wave = g, stage 3: that a step takes at most
# `covered` times as long as its computing. What the network does, and what computing
# loses to it (TCP takes the cores that compute), is measured by build/bench/machine. The
# other half of the tenth that is looked for is left to what the plan is off.
set -u
cd "$(dirname "$0")/.." || exit 1
. bench/common.sh
OMP_WAIT_POLICY=passive
export OMP_WAIT_POLICY
net=tools/netns.sh
covered=1.05
zero=zero_optimization
steps=${TRANCHE_BENCH_STEPS:-5}

if [ -z "${NETNS_A:-}" ]; then
    sh $net run 1gbit 0.1ms "$0" "$@"
    exit
fi

# Small micro-batches of a deep model: many bytes for little computing.
file() { # NAME G
    cat >"$work/$1.json" <<END
{"model": {"model_type": "gpt2", "vocab_size": 256, "n_positions": 128, "n_layer": 8,
           "n_head": 4, "n_embd": 256, "resid_pdrop": 0, "embd_pdrop": 0,
           "attn_pdrop": 0},
 "data": {"format": "bytes", "train": ["$text"]}, "out": "$work/$1",
 "steps": $steps, "train_batch_size": $((2 * $2)), "train_micro_batch_size_per_gpu": 1,
 "checkpoint": {"keep": 1}, "execution": {"threads": 1},
 "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "weight_decay": 0.1}}}
END
}

# step_seconds NAME G LAUNCH... -- OPTION...: median of the steps after the first
step_seconds() {
    of=$1 g=$2 launch=
    shift 2
    while [ "$1" != -- ]; do
        launch="$launch $1"
        shift
    done
    shift
    file "$of" "$g"
    # shellcheck disable=SC2086
    got=$(measured "$of" $launch "$program" train "$work/$of.json" "$@") || return 1
    calculate "2 * $g * 128 / ${got% *}" %.4f
}

# predict G OPTION...: its figures are then in $work/step.json
predict() {
    file plan "$1"
    shift
    "$program" simulate "$work/plan.json" --machine "$work/machine.json" --ranks 2 --json \
        "$@" >"$work/step.json"
}

predicted() { # NAME
    figure "$1" "$work/step.json"
}

# Finds the g of which the plan says that it covers the network.
choose() {
    file plan 8
    sh $net mpirun "$(mpirun)" build/bench/machine "$work/plan.json" \
        $zero.stage=3 execution.wave=8 >"$work/machine.json" || exit 1
    rate=$(sed -n 's/.*"inside": {"bytes": \([0-9.e+-]*\).*/\1/p' "$work/machine.json")
    lost=$(sed -n '/"link": {/{n;s/.*"interference": \([0-9.]*\).*/\1/p;}' \
        "$work/machine.json")
    for least in 2 4 8 16 32 64 128; do
        predict $least --set $zero.stage=3 --set execution.wave=$least
        [ "$(calculate "$(predicted seconds) <= $covered * $(predicted compute_seconds)")" \
            -eq 0 ] || break
    done
}

line() {
    printf '| %5s | %4s | %7s | %7s | %7s | %9s | %8s | %9s | %8s |\n' "$@"
}

# cell STAGE WAVE OVERLAP SECONDS_IN_MEMORY
cell() {
    stage=$1 wave=$2 overlap=$3 memory=$4
    set -- --set $zero.stage="$stage" --set execution.wave="$wave" \
        --set $zero.overlap_comm="$overlap"
    predict "$g" "$@"
    bytes="($(predicted gather) + $(predicted reduce))"
    seconds=$(step_seconds net "$g" sh $net mpirun "$(mpirun)" -- "$@") || seconds=
    line "$stage" "$wave" "$overlap" "$(calculate "$bytes / 1e6" %.1f)" \
        "$(calculate "$bytes / $rate" %.3f)" "$(calculate "$(predicted seconds)" %.3f)" \
        "${seconds:-failed}" "$memory" \
        "${seconds:+$(calculate "$seconds / $memory" %.2f)}"
}

machine
if [ -n "$NETNS_DELAY" ]; then
    echo "link: 1 Gbit/s, $NETNS_DELAY each way"
else
    echo "link: 1 Gbit/s; no delay, since this kernel has no sch_netem"
fi
choose
g=${1:-$least}
echo "measured: $rate bytes/s; computing loses $lost of its speed while the link is busy."
echo "At stage 3 and wave = g the plan says that a step takes at most $covered times its"
echo "computing from g = $least on; g here: $g"
echo
line stage wave overlap "sent MB" "link s" "planned s" "step s" "memory s" "slowdown"
line ----- ---- ------- ------- ------- --------- -------- --------- --------
for stage in 2 3; do
    for wave in 1 "$g"; do
        memory=$(step_seconds memory "$g" on_ranks 2 -- --set $zero.stage="$stage" \
            --set execution.wave="$wave") || exit 1
        cell "$stage" "$wave" true "$memory"
        cell "$stage" "$wave" false "$memory"
    done
done
echo
echo "sent: by one rank in one step, as planned; link: these bytes as measured; planned: by"
echo "tranche simulate; memory: the same stage and wave in shared memory, with overlap."
