#!/bin/sh
# network.sh NETNS MPIRUN PROGRAM MODE: two ranks with a slow network between them (which
# NETNS, tools/netns.sh, makes; status 77 where it is not permitted).
#     same   they train to the parameters of one process, to the last bit, and what the
#            plan says goes over the link, and hardly more
#     nodes  the same of four ranks, two on each side: by nodes, half as much goes over the
#            link as directly
#     cut    the link goes down in the middle: within ten seconds all ranks have ended,
#            with status 6 and a message that names who is silent (both may speak: each
#            knows of the other only that); the last checkpoint is good
set -eu
netns=$1 mpirun=$2 program=$3 mode=$4
if [ -z "${NETNS_A:-}" ]; then
    exec sh "$netns" run 1gbit 0.1ms sh "$0" "$@"
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT INT TERM

# A copy of its own name, so that its processes can be told from others'.
copy=$dir/$(basename "$dir" | tr -d .)
cp "$program" "$copy"
cat >"$dir/run.json" <<END
{"model": {"model_type": "gpt2", "vocab_size": 256, "n_positions": 32, "n_layer": 2,
           "n_head": 2, "n_embd": 64, "resid_pdrop": 0.1},
 "data": {"format": "bytes", "train": ["$0"]}, "seed": 3,
 "train_batch_size": 9, "train_micro_batch_size_per_gpu": 2,
 "zero_optimization": {"stage": 3}, "checkpoint": {"keep": 2},
 "execution": {"reproducible": true, "wave": 2, "threads": 1},
 "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "weight_decay": 0.1}}}
END

fails() {
    echo "network, $mode: $1"
    sed 's/^/    /' "$dir"/log* 2>/dev/null || true
    exit 1
}

on_link() { # OPTION...
    sh "$netns" mpirun "$mpirun" "$copy" train "$dir/run.json" --out "${out:-$dir/out}" "$@" \
        >"$dir/log" 2>&1
}

# What the first rank's end of the link has sent so far.
sent() {
    ip netns exec "$NETNS_A" cat /sys/class/net/data/statistics/tx_bytes
}

steps_done() {
    sed -n '/"loss"/p' "$dir/out/metrics.jsonl" 2>/dev/null | wc -l
}

is_there() {
    for exe in /proc/[0-9]*/exe; do
        if [ "$(readlink "$exe" 2>/dev/null)" = "$copy" ]; then
            return 0
        fi
    done
    return 1
}

check_same() {
    before=$(sent)
    on_link --steps 2 || fails "status $? of the ranks"
    moved=$(($(sent) - before))
    planned=$("$copy" plan "$dir/run.json" --ranks 2 --json --set steps=2 |
        sed -n 's/.*"gather": \([0-9]*\), "reduce": \([0-9]*\).*/\1 \2/p' |
        awk '{ print 2 * ($1 + $2) }')
    [ "$moved" -ge "$planned" ] ||
        fails "$moved bytes over the link, the plan has $planned"
    # Headers, heartbeats and what ranks agree on are 1 % of it.
    [ "$moved" -le $((planned + planned / 20)) ] ||
        fails "$moved bytes over the link are over 5 % more than the plan's $planned"
    "$copy" train "$dir/run.json" --out "$dir/one" --steps 2 >"$dir/log.one" 2>&1 ||
        fails "status $? of one process"
    "$copy" diff "$dir/one/checkpoints/latest" "$dir/out/checkpoints/latest" ||
        fails "not the parameters of one process"
    echo "two steps, $moved bytes over the link, $planned planned"
}

# Bytes that two ranks of a node send to the other in two steps, as the plan has it.
planned_between() { # OPTION...
    "$copy" plan "$dir/run.json" --ranks 4 --json --set steps=2 \
        --set execution.ranks_per_node=2 "$@" |
        sed -n 's/.*"between_nodes": \([0-9]*\).*/\1/p' | awk '{ print 4 * $1 }'
}

# nodes NAME OPTION...: trains, and leaves in $moved what went over the link
nodes() {
    name=$1
    shift
    before=$(sent)
    out=$dir/$name NETNS_EACH=2
    export NETNS_EACH
    on_link --steps 2 --set execution.ranks_per_node=2 "$@" ||
        fails "status $? of the ranks"
    moved=$(($(sent) - before))
    planned=$(planned_between "$@")
    # The last rank's parts are shorter than the first one's, whose plan it is.
    [ "$moved" -ge $((planned - planned / 10)) ] &&
        [ "$moved" -le $((planned + planned / 10)) ] ||
        fails "$moved bytes over the link, the plan of \"$name\" has $planned"
}

check_nodes() {
    nodes by-nodes
    by_nodes=$moved
    nodes direct --set execution.hierarchical=false
    [ $((2 * by_nodes)) -le $((moved + moved / 20)) ] ||
        fails "by nodes $by_nodes bytes go over the link, directly $moved"
    "$copy" diff "$dir/by-nodes/checkpoints/latest" "$dir/direct/checkpoints/latest" ||
        fails "by nodes and directly they train to other parameters"
    echo "two steps, $by_nodes bytes over the link by nodes, $moved directly"
}

check_cut() {
    on_link --steps 1000000 --set checkpoint.every=2 &
    running=$!
    while [ "$(steps_done)" -lt 5 ]; do
        kill -0 "$running" 2>/dev/null || fails "ended before the link was cut"
        sleep 0.05
    done
    sh "$netns" cut
    begin=$(date +%s%N)
    while is_there; do
        passed=$((($(date +%s%N) - begin) / 1000000))
        [ "$passed" -le 10000 ] || fails "ranks are there after $passed ms"
        sleep 0.1
    done
    # A launcher takes some seconds more to end what it has on the other machine.
    rc=0
    wait "$running" || rc=$?
    [ "$rc" -eq 6 ] || fails "status $rc, not 6"
    grep '^tranche: ' "$dir/log" | sed 's/rank [01] has/rank R has/' | sort -u \
        >"$dir/said"
    echo "tranche: rank R has been silent for 8 s: it has died, or its network has failed" |
        cmp -s - "$dir/said" || fails "another message"
    [ "$(grep -c '^tranche: ' "$dir/log")" -le 2 ] || fails "a message was repeated"
    last=$(steps_done)
    "$copy" train "$dir/run.json" --out "$dir/out" --steps "$((last + 1))" \
        >"$dir/log.one" 2>&1 || fails "status $? of going on with one process"
    [ "$(steps_done)" -eq $((last + 1)) ] || fails "not the steps of an unbroken run"
    echo "all had ended after $passed ms, at step $last, and went on"
}

"check_$mode"
