#!/bin/sh
# sample.sh FOLDER [PROMPT [TOKENS]]: how fast a model writes, one token after the other,
# in f32 and bf16: tokens a second, the bytes of weights and cache that a token reads, the
# rate at which all threads read memory in the same run, and the share of it that a token
# reaches; transformers' generate with its cache beside it (TRANCHE_PEER_PYTHON).
# FOLDER is a Hugging Face folder (tools/smollm2.py makes one).
set -eu
cd "$(dirname "$0")/.."
. bench/common.sh
model=${1:?usage: bench/sample.sh FOLDER [PROMPT [TOKENS]]}
prompt=${2:-128}
tokens=${3:-128}

machine
printf 'prompt of %s tokens, %s tokens behind it\n\n' "$prompt" "$tokens"
row='%-6s %10s %12s %10s %8s %6s %14s %14s\n'
# shellcheck disable=SC2059 # the format of all rows
{
    printf "$row" type tokens/s prompt/s MB/token GB/s share transformers/s prompt/s
    for type in f32 bf16; do
        beside="- -"
        if [ -n "$peer" ]; then
            beside=$("$peer" bench/peers/sample.py "$model" "$type" "$prompt" \
                "$tokens" 2>"$work/log") || beside="failed failed"
        fi
        build/bench/sample "$model" "$type" "$prompt" "$tokens" >"$work/row"
        # shellcheck disable=SC2034,SC2086 # fields of the row; two words
        while read -r name length rate first bytes read share; do
            printf "$row" "$name" "$rate" "$first" "$((bytes / 1000000))" "$read" \
                "$share" $beside
        done <"$work/row"
    done
}
