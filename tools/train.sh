#!/bin/sh
# train.sh [PATH...]: trains the default byte-level GPT-2 (examples/text.json) on the
# files and folders given, or on text that every Debian machine with a compiler has, and
# prints a sample of what it has learnt. OUT=folder says where everything is written,
# STEPS=n how many steps it takes; started again, a stopped run goes on where it was.
set -u
cd "$(dirname "$0")/.." || exit 1
program=build/tranche

if [ $# -gt 0 ]; then
    out=${OUT:-out/text-$(printf '%s\n' "$@" | cksum | cut -d ' ' -f 1)}
    prompt=${PROMPT:-
}
else
    # The kernel's headers for programs, the licences that Debian ships, our own sources.
    for path in /usr/include/linux /usr/share/common-licenses src include; do
        [ -e "$path" ] && set -- "$@" "$path"
    done
    out=${OUT:-out/text}
    prompt=${PROMPT:-#define }
fi
echo "training on: $*"

count=$#
while [ "$count" -gt 0 ]; do
    path=$1
    shift
    set -- "$@" --data "$path"
    count=$((count - 1))
done
[ -z "${STEPS:-}" ] || set -- "$@" --steps "$STEPS"
"$program" train examples/text.json --out "$out" "$@" || exit
printf '\na sample of %s, from the prompt "%s":\n\n' "$out" "$prompt"
"$program" sample "$out" --prompt "$prompt" --tokens 500 --temperature 0.7
