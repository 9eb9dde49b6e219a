# shellcheck shell=sh
# table.sh: rows of trained runs and the ratios between them, for scripts that have read
# common.sh.
# shellcheck disable=SC2154 # $work, $program: common.sh
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
# figures, means (with take=best the highest rate) where a name was run more than once.
# Says "-" where a figure is missing.
ratio() {
    awk -v take="${take:-mean}" -v expression="$4" -v what="$1" -v asked="$2" -v sign="$3" '
    { n[$1]++; rate[$1] += $2; peak[$1] += $3; planned[$1] += $4 }
    $2 > best[$1] { best[$1] = $2 }
    END {
        for (name in n) {
            value[name ".rate"] = take == "best" ? best[name] : rate[name] / n[name]
            value[name ".peak"] = peak[name] / n[name]
            value[name ".planned"] = planned[name] / n[name]
        }
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

# limit_row TYPE ARGUMENT...: the rows of products_limit, as figures of limit_TYPE (the
# best of each product) and order_TYPE (all of them in the order of a step)
limit_row() {
    type=$1
    shift
    rate=$(products_limit "$@")
    [ -n "$rate" ] || return
    in_order=$(figure pass_tokens_per_second "$work/limits.txt")
    echo "limit_$type $rate 0 0" >>"$figures"
    echo "order_$type $in_order 0 0" >>"$figures"
    columns "products of $type, the best of each" "$rate" "" "" ""
    columns "the same in the order of a step" "$in_order" "" "" ""
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

# peer_row NAME WHAT SCRIPT OPTION...: the row of a script of bench/peers
peer_row() {
    name=$1 what=$2
    shift 2
    if [ -z "$peer" ]; then
        columns "$what" "not installed" "" "" ""
        return
    fi
    if ! run_peer "$@"; then
        columns "$what" failed "" "" ""
        return
    fi
    rate=$(figure tokens_per_second "$work/peer.json")
    peak=$(figure peak_bytes "$work/peer.json")
    echo "$name $rate $peak 0" >>"$figures"
    columns "$what${peer_mode:+, $peer_mode}" "$rate" "$(calculate "$peak / 1e6")" "" ""
}

# deepspeed NAME WHAT OPTION...: the row of bench/peers/deepspeed_gpt2.py
deepspeed() {
    if [ -z "$peer" ] || ! "$peer" -c 'import importlib.util as u, sys
sys.exit(not (u.find_spec("deepspeed") and u.find_spec("transformers")))'; then
        columns "$2" "not installed" "" "" ""
        return
    fi
    name=$1 what=$2
    shift 2
    peer_row "$name" "$what" deepspeed_gpt2.py --layers "$layers" "$@"
}

: >"$figures"
