# shellcheck shell=sh
# common.sh: what the scripts of this folder share. Read with "." at the root of the
# sources; it makes a folder $work, which is removed in the end.
#
#     TRANCHE_PEER_PYTHON    a Python that has the peers: PyTorch; transformers and
#                            DeepSpeed for bench/ranks.sh
#     TRANCHE_BENCH_LAYERS   of GPT-2, for a quick try (12)
#     TRANCHE_MPIRUN         the launcher (the one of the MPI that the build found)
# shellcheck disable=SC2034 # read by those who share it
program=$PWD/build/tranche
unset OMP_WAIT_POLICY # a script that wants its threads to sleep says so
peer=${TRANCHE_PEER_PYTHON:-}
layers=${TRANCHE_BENCH_LAYERS:-12}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

text=$work/text.bin
find /usr/include -type f -name '*.h' | LC_ALL=C sort | xargs cat 2>/dev/null |
    head -c 8000000 >"$text"
while [ "$(wc -c <"$text")" -lt 1000000 ]; do # no headers here
    cat bench/*.sh >>"$text"
done

machine() {
    printf 'machine: %s, %s cores, %s\n' \
        "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)" "$(nproc)" \
        "$(date -u +%Y-%m-%d)"
}

# gpt2_file NAME CONTEXT T M STEPS: GPT-2 124M without dropout, as $work/NAME.json
gpt2_file() {
    cat >"$work/$1.json" <<END
{"model": {"model_type": "gpt2", "vocab_size": 50257, "n_positions": $2,
           "n_layer": $layers, "resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0},
 "data": {"format": "bytes", "train": ["$text"]}, "out": "$work/$1",
 "steps": $5, "train_batch_size": $3, "train_micro_batch_size_per_gpu": $4,
 "checkpoint": {"keep": 1},
 "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "weight_decay": 0.1}}}
END
}

# nano_file NAME FILE STEPS: nanoGPT's setting for the CPU on a text, as $work/NAME.json
nano_file() {
    cat >"$work/$1.json" <<END
{"model": {"model_type": "gpt2", "vocab_size": 256, "n_positions": 64, "n_layer": 4,
           "n_head": 4, "n_embd": 128, "resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0},
 "data": {"format": "bytes", "train": ["$2"], "validation": 0.1},
 "steps": $3, "out": "$work/$1", "train_batch_size": 12, "seed": 1337,
 "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "betas": [0.9, 0.99],
     "weight_decay": 0.1}, "groups": [{"match": ["*.bias", "*ln_*"], "weight_decay": 0}]},
 "scheduler": {"type": "WarmupCosineLR", "params": {"warmup_num_steps": 100,
     "warmup_type": "linear", "total_num_steps": 2000, "cos_min_ratio": 0.1}}}
END
}

# measured NAME COMMAND...: runs the command, which trains $work/NAME.json; prints the
# median (with take=best the highest, where the differences looked for are smaller than
# those that a machine's other work makes) of tokens a second after the first step (which
# touches memory for the first time), and the highest peak of a process in bytes. scale: the
# tokens of what metrics count as one (1).
measured() {
    measured=$1
    shift
    rm -rf "${work:?}/$measured"
    "$@" >"$work/$measured.log" 2>&1 || {
        cat "$work/$measured.log" >&2
        return 1
    }
    rm -rf "${work:?}/$measured/checkpoints"
    median "$work/$measured/metrics.jsonl"
}

# Of several ranks: what the one with the highest peak had.
median() {
    sed -n 's/.*"tokens_per_second": \([0-9.e+]*\).*"process": \([0-9]*\).*/\1 \2 &/p' "$1" |
        awk '{ peak = $2 }
             match($0, /"peak_bytes": \[[^]]*\]/) {
                 split(substr($0, RSTART, RLENGTH - 1), of, ", ")
                 peak = of[3] + 0
             }
             NR == 1 { first = $1 }
             NR > 1 { print $1 }
             peak > most { most = peak }
             END { if (NR == 1) print first; printf "%.0f\n", -most }' | sort -g |
        awk -v take="${take:-median}" -v scale="${scale:-1}" '
             { value[NR] = $1 }
             END {
                 chosen = take == "best" ? NR : int(NR / 2) + 1
                 printf "%.1f %.0f\n", value[chosen] * scale, -value[1]
             }'
}

# calculate EXPRESSION [FORMAT]
calculate() {
    awk "BEGIN { printf \"${2:-%.0f}\", ($1) }"
}

# figure NAME FILE: the first number NAME in a file of JSON
figure() {
    sed -n "s/.*\"$1\": \([0-9][0-9.e+-]*\).*/\1/p" "$2" | head -n 1
}

# products_limit ARGUMENT...: tokens a second if a step were products alone, of the sizes
# and the type that build/bench/limits is given
products_limit() {
    build/bench/limits "$@" >"$work/limits.txt"
    figure limit_tokens_per_second "$work/limits.txt"
}

# has_products TYPE: the processor has an instruction for products of the type
has_products() {
    build/bench/limits 8 8 1 8 1 "$1" >"$work/limits.txt" 2>&1
}

# run_peer SCRIPT OPTION...: what it prints is then in $work/peer.json. With --compile as
# its last option it runs in two modes of torch.compile, of which the faster one counts;
# $peer_mode says which.
run_peer() {
    peer_mode=
    case " $* " in
    *" --compile ") ;;
    *)
        run_peer_once "$@"
        return
        ;;
    esac
    best=0
    for mode in default max-autotune; do
        run_peer_once "$@" "$mode" || continue
        rate=$(figure tokens_per_second "$work/peer.json")
        if is_above "$rate" "$best"; then
            best=$rate peer_mode=$mode
            mv "$work/peer.json" "$work/best.json"
        fi
    done
    [ -n "$peer_mode" ] && mv "$work/best.json" "$work/peer.json"
}

is_above() {
    awk "BEGIN { exit !($1 > $2) }"
}

# How its threads wait is its own affair, whatever a script has said for ours.
run_peer_once() {
    script=$1
    shift
    env -u OMP_WAIT_POLICY "$peer" "bench/peers/$script" "$@" \
        >"$work/peer.json" 2>"$work/peer.log" || {
        tail -n 3 "$work/peer.log" >&2
        return 1
    }
}

# The launcher of the MPI that the build found, and how it is called on RANKS ranks.
mpirun() {
    sh bench/mpirun.sh
}

on_ranks() { # RANKS COMMAND...
    sh tests/launch.sh "$(mpirun)" "$@"
}
