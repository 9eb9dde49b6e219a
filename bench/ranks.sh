#!/bin/sh
# ranks.sh: several ranks on this machine, Tranche and DeepSpeed in the same run, and the
# ratios that matter. One thread a rank. About half an hour on two cores, which should
# have nothing else to do.
#
#     bench/ranks.sh [stages] [scaling] [reproducible]     (default: all of them)
#
#     stages         two ranks, GPT-2 124M, context 256, m = 1, g = 4: ZeRO stages, waves,
#                    recomputation, slices of the vocabulary; DeepSpeed where
#                    TRANCHE_PEER_PYTHON has it
#     scaling        context 1024, g = 8, stage 0: two ranks of one thread beside one rank
#                    of two threads, and beside one rank of one thread (half the samples)
#     reproducible   one process of all threads, with and without reproducible mode
set -u
cd "$(dirname "$0")/.." || exit 1
. bench/common.sh
OMP_WAIT_POLICY=passive # the communication thread shares a core
export OMP_WAIT_POLICY
figures=$work/figures # NAME RATE PEAK PLANNED, of every run so far

columns() {
    printf '| %-50s | %9s | %9s | %10s | %11s |\n' "$@"
}

head_of_columns() {
    columns what tokens/s "peak MB" "planned MB" "beyond, MiB"
    columns -------------------------------------------------- --------- --------- \
        ---------- -----------
}

head_of_ratios() {
    printf '\n| %-66s | %7s | %-7s | %-3s |\n' ratio "is" asked ""
    printf '| %.66s | %.7s | %.7s | --- |\n' "$(printf '%70s' '' | tr ' ' -)" ------- -------
}

# ratio WHAT ASKED TEST EXPRESSION: the expression's value; A.rate and the like stand for
# figures. Says "-" where a figure is missing.
ratio() {
    awk -v expression="$4" -v what="$1" -v asked="$2" -v sign="$3" '
    { value[$1 ".rate"] = $2; value[$1 ".peak"] = $3; value[$1 ".planned"] = $4 }
    END {
        split(expression, side, "/")
        a = value[side[1]]; b = value[side[2]]
        if (a == "" || b == "" || b <= 0)
            text = answer = "-"
        else {
            text = sprintf("%.3f", a / b)
            answer = (sign == ">=" ? a / b >= asked : a / b <= asked) ? "yes" : "no"
        }
        printf "| %-66s | %7s | %2s %-4s | %-3s |\n", what, text, sign, asked, answer
    }' "$figures"
}

# run_ranks NAME WHAT RANKS THREADS OPTION...: trains $work/NAME.json and prints its row;
# RANKS 1: without a launcher
run_ranks() {
    name=$1 what=$2 ranks=$3
    set_threads="--set execution.threads=$4"
    shift 4
    # shellcheck disable=SC2086
    planned=$("$program" plan "$work/$name.json" --json --ranks "$ranks" $set_threads "$@" |
        sed -n 's/.*"\(device\|host\)": {.*"total": \([0-9]*\)}.*/\2/p' |
        awk '{ sum += $1 } END { printf "%.0f", sum }')
    launch=
    [ "$ranks" -eq 1 ] || launch="on_ranks $ranks"
    # shellcheck disable=SC2086
    got=$(measured "$name" $launch "$program" train "$work/$name.json" $set_threads "$@") || {
        columns "$what" failed "" "" ""
        return
    }
    # shellcheck disable=SC2086
    set -- $got
    echo "$name $1 $2 $planned" >>"$figures"
    columns "$what" "$1" "$(calculate "$2 / 1e6")" "$(calculate "$planned / 1e6")" \
        "$(calculate "($2 - $planned) / 1048576" %.1f)"
}

# ---- stages

stage() { # NAME WHAT OPTION...
    name=$1 what=$2
    shift 2
    gpt2_file "$name" 256 8 1 "${TRANCHE_BENCH_STEPS:-4}"
    run_ranks "$name" "$what" 2 1 "$@"
}

deepspeed() { # STAGE
    what="DeepSpeed, stage $1"
    if [ -z "$peer" ] || ! "$peer" -c 'import importlib.util as u, sys
sys.exit(not (u.find_spec("deepspeed") and u.find_spec("transformers")))'; then
        columns "$what" "not installed" "" "" ""
        return
    fi
    if ! run_peer deepspeed_gpt2.py --stage "$1" --steps "${TRANCHE_BENCH_STEPS:-4}" \
        --layers "$layers"; then
        columns "$what" failed "" "" ""
        return
    fi
    rate=$(figure tokens_per_second "$work/peer.json")
    peak=$(figure peak_bytes "$work/peer.json")
    echo "deepspeed$1 $rate $peak 0" >>"$figures"
    columns "$what" "$rate" "$(calculate "$peak / 1e6")" "" ""
}

bench_stages() {
    zero=zero_optimization.stage
    wave="--set execution.wave=4"
    again="--set activation_checkpointing.number_checkpoints=1000" # all but the last
    slices="--set execution.vocabulary_slices=4"
    echo "two ranks of one thread, GPT-2, context 256, m = 1, g = 4"
    head_of_columns
    # shellcheck disable=SC2086
    for s in 0 1 2 3; do
        stage "s$s" "stage $s, wave 1" --set $zero=$s
        stage "s$s-g" "stage $s, wave 4" --set $zero=$s $wave
        deepspeed $s
    done
    # shellcheck disable=SC2086
    {
        for s in 0 3; do
            stage "s$s-a" "stage $s, wave 1, recomputed" --set $zero=$s $again
            stage "s$s-ga" "stage $s, wave 4, recomputed" --set $zero=$s $wave $again
            stage "s$s-as" "stage $s, wave 1, recomputed, 4 slices" --set $zero=$s \
                $again $slices
        done
        stage s3-gas "stage 3, wave 4, recomputed, 4 slices" --set $zero=3 $wave $again \
            $slices
        stage s3-n "stage 3, wave 1, no overlap" --set $zero=3 \
            --set zero_optimization.overlap_comm=false
    }
    head_of_ratios
    for s in 0 1 2 3; do
        ratio "stage $s: tokens/s, Tranche over DeepSpeed" 2 ">=" \
            "s$s.rate/deepspeed$s.rate"
    done
    ratio "tokens/s, wave 4: stage 3 over stage 0" 0.95 ">=" s3-g.rate/s0-g.rate
    ratio "the same, recomputed" 0.95 ">=" s3-ga.rate/s0-ga.rate
    ratio "peak, wave 1: stage 3 over stage 0" 0.75 "<=" s3.peak/s0.peak
    ratio "peak: stage 3, recomputed, 4 slices, over stage 0" 0.65 "<=" s3-as.peak/s0.peak
    ratio "the same over stage 0, recomputed, 4 slices" 0.65 "<=" s3-as.peak/s0-as.peak
    awk '/^s[0-9]/ && ($3 - $4) / 1048576 > most { most = ($3 - $4) / 1048576 }
         END { printf "the most that a process had beyond its plan: %.1f MiB (at most 96)\n", most }' \
        "$figures"
}

# ---- scaling

bench_scaling() {
    steps=${TRANCHE_BENCH_STEPS:-3}
    context=${TRANCHE_BENCH_CONTEXT:-1024}
    gpt2_file two "$context" 16 1 "$steps"
    gpt2_file one "$context" 16 1 "$steps"
    gpt2_file half "$context" 8 1 "$steps"
    echo "GPT-2, context $context, m = 1, stage 0"
    head_of_columns
    run_ranks one "one rank of two threads, 16 samples" 1 2
    run_ranks two "two ranks of one thread, 16 samples, g = 8" 2 1
    run_ranks half "one rank of one thread, 8 samples, g = 8" 1 1
    head_of_ratios
    ratio "tokens/s: two ranks of one thread over one rank of two" 0.95 ">=" \
        two.rate/one.rate
    # Twice the tokens in the same time is twice the rate.
    awk '$1 == "two" { two = $2 } $1 == "half" { half = $2 }
         END { if (half > 0 && two > 0) printf "weak scaling: a step of two ranks takes " \
                   "%.3f times that of one\n", 2 * half / two }' "$figures"
}

# ---- reproducible

bench_reproducible() {
    threads=$(nproc)
    steps=${TRANCHE_BENCH_STEPS:-4}
    gpt2_file plain 256 8 1 "$steps"
    gpt2_file fixed 256 8 1 "$steps"
    echo "GPT-2, context 256, m = 1, g = 8, one process"
    head_of_columns
    run_ranks plain "as usual" 1 "$threads"
    run_ranks fixed "reproducible" 1 "$threads" --set execution.reproducible=true
    awk '{ rate[$1] = $2; planned[$1] = $4 }
         END { if (rate["fixed"] > 0 && rate["plain"] > 0)
                   printf "reproducible mode: %.1f %% more time, %.0f MB more memory\n",
                       100 * (rate["plain"] / rate["fixed"] - 1),
                       (planned["fixed"] - planned["plain"]) / 1e6 }' "$figures"
}

: >"$figures"
machine
for part in "${@:-all}"; do
    echo
    case $part in
    all)
        bench_stages && echo && bench_scaling && echo && bench_reproducible
        ;;
    stages | scaling | reproducible) "bench_$part" ;;
    *)
        echo "bench: unknown part $part; there are stages scaling reproducible" >&2
        exit 2
        ;;
    esac
done
