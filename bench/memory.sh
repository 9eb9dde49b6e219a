#!/bin/sh
# memory.sh: what the planner makes of budgets: GPT-2 124M, 8 sequences a step, one rank
# of all cores. Needs 12 GB of memory and a quiet machine; on two cores a quarter of an
# hour each.
#
#     bench/memory.sh [budgets] [choice]    (default: both)
#
#     budgets   context 1024, two steps for each budget: the plan chosen, predicted and
#               measured time, planned peak and high-water mark of each space, and the
#               peak of the process beside both. The last has 1.2 GB of address space
#     choice    context 256: other plans measured, and for six budgets how far the chosen
#               plan is from the fastest of those that fit. Ends with status 1 where that
#               is more than 5 %
#
#     TRANCHE_BENCH_NVME    a folder on the disk to use (the one of temporary files)
set -u
cd "$(dirname "$0")/.." || exit 1
. bench/common.sh
OMP_WAIT_POLICY=passive # the threads that copy share a core
export OMP_WAIT_POLICY
disk=${TRANCHE_BENCH_NVME:-$work}
steps=${TRANCHE_BENCH_STEPS:-3}
process=100663296 # bytes, of a budget of the host
failed=0

# train LIMIT OPTION...: trains $work/run.json, in LIMIT bytes of address space
# ("unlimited"); what it says is in $work/log.
train() {
    limit=$1
    shift
    rm -rf "$work/run"
    prlimit "--as=$limit" "$program" train "$work/run.json" --resume never "$@" \
        >"$work/log" 2>&1
}

# The median of the steps after the first, which touches memory for the first time.
seconds() {
    sed -n 's/.*"loss": .*"seconds": \([0-9.e+-]*\),.*/\1/p' "$work/run/metrics.jsonl" |
        sed 1d | sort -g | awk '{ value[NR] = $1 } END { print value[int((NR + 1) / 2)] }'
}

# peak OBJECT NAME: of the last step
peak() {
    sed -n "s/.*\"$1\": {[^}]*\"$2\": \([0-9]*\)[,}].*/\1/p" "$work/run/metrics.jsonl" |
        tail -n 1
}

# total SPACE: of the ledger in $work/plan.json
total() {
    sed -n "s/^.*\"$1\": {\"parameters\".*\"total\": \([0-9]*\)}.*/\1/p" "$work/plan.json"
}

megabytes() {
    calculate "$1 / 1e6" %.1f
}

# ---- budgets

# budget NAME LIMIT MEMORY
budget() {
    if ! train "$2" --set "memory=$3" --set train_micro_batch_size_per_gpu=auto; then
        printf '| %-34s | %s\n' "$1" "$(tail -n 1 "$work/log")"
        failed=1
        return
    fi
    words=$(sed -n 's/^planner: \(.*\)/\1/p' "$work/run/plan.txt" | head -n 1)
    both=$(calculate "$(peak planned_peak_bytes device) + $(peak planned_peak_bytes host)")
    printf '| %-34s | %9s %9s | %9s %9s | %9s %7.1f | %7.3f | %s |\n' "$1" \
        "$(megabytes "$(peak planned_peak_bytes device)")" \
        "$(megabytes "$(peak peak_bytes device)")" \
        "$(megabytes "$(peak planned_peak_bytes host)")" \
        "$(megabytes "$(peak peak_bytes host)")" \
        "$(megabytes "$(peak peak_bytes process)")" \
        "$(calculate "($(peak peak_bytes process) - $both) / 1048576" %.1f)" \
        "$(seconds)" "$words"
}

bench_budgets() {
    gpt2_file run 1024 8 1 "$steps"
    printf '| %-34s | %9s %9s | %9s %9s | %9s %7s | %7s | %s |\n' budget \
        "device MB" "mark" "host MB" "mark" "process" "+MiB" "s" \
        "plan; predicted time of a step"
    echo "|------------------------------------|---------------------|---------------------|-------------------|---------|---|"
    budget "device 2.3 GiB, host 100 MiB" unlimited \
        '{"device": "2.3GiB", "host": "100MiB"}'
    budget "device 500 MB" unlimited '{"device": "500MB"}'
    "$program" plan "$work/run.json" --json --set 'memory={"device": "500MB"}' \
        --set train_micro_batch_size_per_gpu=auto >"$work/plan.json" || return
    least=$(sed -n 's/.*"smallest": .*"bytes": {"device": \([0-9]*\).*/\1/p' "$work/plan.json")
    budget "device $least bytes, the smallest" unlimited "{\"device\": $least}"
    budget "1.2 GB in all, the rest on NVMe" 1200000000 \
        "{\"device\": \"440MB\", \"host\": \"680MB\", \"nvme\": {\"path\": \"$disk\"}}"
}

# ---- the choice

# other NAME OPTION...: measures one more plan
other() {
    name=$1
    shift
    if ! "$program" plan "$work/run.json" --json "$@" >"$work/plan.json" ||
        ! train unlimited "$@"; then
        tail -n 3 "$work/log" >&2
        failed=1
        return
    fi
    took=$(seconds)
    printf '%s|%s|%s|%s\n' "$took" "$(total device)" "$(total host)" "$name" >>"$work/others"
    printf '| %-40s | %9s | %9s | %8.3f |\n' "$name" "$(megabytes "$(total device)")" \
        "$(megabytes "$(total host)")" "$took"
}

# chosen DEVICE HOST: in megabytes
chosen() {
    if ! train unlimited --set "memory={\"device\": \"$1MB\", \"host\": \"$2MB\"}" \
        --set train_micro_batch_size_per_gpu=auto; then
        printf '| %6s %6s | %s\n' "$1" "$2" "$(tail -n 1 "$work/log")"
        failed=1
        return
    fi
    took=$(seconds)
    words=$(sed -n 's/^planner: \(.*\);.*/\1/p' "$work/run/plan.txt" | head -n 1)
    awk -F'|' -v device="$1" -v host="$2" -v process=$process -v took="$took" \
        -v words="$words" '
        $2 <= device * 1e6 && $3 + process <= host * 1e6 && (!best || $1 < best) {
            best = $1
            name = $4
        }
        END {
            off = best && took > best ? 100 * (took / best - 1) : 0
            printf "| %6d %6d | %8.3f | %8s | %5.1f %% | %s | %s |\n", device, host, took,
                best ? sprintf("%.3f", best) : "none", off, name, words
            exit off > 5
        }' "$work/others" || failed=1
}

bench_choice() {
    gpt2_file run 256 8 1 "$steps"
    micro=train_micro_batch_size_per_gpu
    units=activation_checkpointing.number_checkpoints=1000
    away=activation_checkpointing.cpu_checkpointing=true
    state=zero_optimization.offload_optimizer.device=cpu
    params=zero_optimization.offload_param.device=cpu
    : >"$work/others"
    printf '| %-40s | %9s | %9s | %8s |\n' "other plans" "device MB" "host MB" "s"
    echo "|------------------------------------------|-----------|-----------|----------|"
    for m in 1 2 4 8; do
        other "m = $m" --set $micro=$m
        other "m = $m, nothing recomputed" --set $micro=$m --set execution.recompute=none
        other "m = $m, units recomputed" --set $micro=$m --set $units
    done
    for m in 2 8; do
        other "m = $m, state on the host" --set $micro=$m --set $state
        other "m = $m, state on the host, units" --set $micro=$m --set $state --set $units
        other "m = $m, all on the host, wave, units" --set $micro=$m --set $state \
            --set $params --set $units --set execution.wave=$((8 / m))
    done
    other "m = 1, all on the host, wave, units away" --set $micro=1 --set $state \
        --set $params --set $units --set execution.wave=8 --set $away
    printf '\n| %-13s | %8s | %8s | %7s | %s | %s |\n' "device, host" "chosen s" "best s" \
        "off" "best of the others" "chosen"
    echo "|---------------|----------|----------|---------|---|---|"
    chosen 6000 200
    chosen 3000 200
    chosen 2200 200
    chosen 2000 4000
    chosen 1200 4000
    chosen 500 4000
}

machine
[ $# -gt 0 ] || set -- budgets choice
for part in "$@"; do
    echo
    case $part in
    budgets) bench_budgets ;;
    choice) bench_choice ;;
    *)
        echo "bench: no part $part" >&2
        exit 2
        ;;
    esac
done
exit $failed
