#!/bin/sh
# train.sh [PATH...]: trains the default byte-level GPT-2 (examples/text.json) on the
# files and folders given, or on text that every Debian machine with a compiler has, and
# prints a sample of what it has learnt. OUT=folder says where everything is written,
# STEPS=n how many steps it takes, PROMPT what the sample begins with (else words of the
# data's end, which is set aside for validation); started again, a stopped run goes on
# where it was.
set -u
cd "$(dirname "$0")/.." || exit 1
program=build/tranche
enough=1000000 # bytes of prose

# Prose that comes with the packages: manuals in Perl's form, terms of use. Of files of
# one size one is taken, as packages of one source have the same. The program takes 64
# paths.
find_prose() {
    find /usr/share/perl /usr/share/perl5 -name '*.pod' -size +3k 2>/dev/null | sort | head -n 20
    find /usr/share/doc -type f -name copyright -size +7k -size -80k \
        -printf '%s %p\n' 2>/dev/null | sort -rn -u -k 1,1 | cut -d ' ' -f 2- |
        head -n 35
}

# The last of the files that a path stands for, in the order in which they are read.
last_file() {
    find -L "$1" -type f ! -path '*/.*' 2>/dev/null | LC_ALL=C sort | tail -n 1
}

# The first words of a line of prose close to the end of a file.
last_words() {
    tail -c 2000 "$1" 2>/dev/null | LC_ALL=C tr -cd '\012\040-\176' | awk '
        { sub(/^[ \t]+/, "") }
        /^[A-Z][a-z]* [a-z]+,? [a-z]+,? [a-z]+,? [a-z]+/ { found = $0 }
        NF >= 5 { any = $0 }
        END {
            count = split(found ? found : any, word, " ")
            for (i = 1; i <= count && i <= 5; i++)
                printf "%s%s", (i > 1 ? " " : ""), word[i]
        }'
}

if [ $# -gt 0 ]; then
    out=${OUT:-out/text-$(printf '%s\n' "$@" | cksum | cut -d ' ' -f 1)}
else
    # What Debian ships is read last, so that the end is prose wherever this is.
    for path in README.md docs $(find_prose) /usr/share/common-licenses; do
        [ -e "$path" ] && set -- "$@" "$path"
    done
    # Where there is little prose, the kernel's headers for programs and our sources.
    if [ "$(find -L "$@" -type f -exec cat {} + | wc -c)" -lt "$enough" ]; then
        for path in /usr/include/linux include src; do
            [ -e "$path" ] && set -- "$path" "$@"
        done
    fi
    out=${OUT:-out/text}
fi

count=$#
last=
named=
while [ "$count" -gt 0 ]; do
    path=$1
    last=$1
    shift
    set -- "$@" --data "$path"
    count=$((count - 1))
    case $path in
    /usr/share/doc/*) name="/usr/share/doc/*/copyright" ;;
    /usr/share/perl*) name="/usr/share/perl*/*.pod" ;;
    *) name=$path ;;
    esac
    case " $named " in
    *" $name "*) ;;
    *) named=${named:+$named }$name ;;
    esac
done
echo "training on: $named"
prompt=${PROMPT:-$(last_words "$(last_file "$last")")}
[ -n "$prompt" ] || prompt='
'
[ -z "${STEPS:-}" ] || set -- "$@" --steps "$STEPS"
"$program" train examples/text.json --out "$out" "$@" || exit
printf '\na sample of %s, from the prompt "%s":\n\n' "$out" "$prompt"
"$program" sample "$out" --prompt "$prompt" --tokens 500 --temperature 0.7 || exit
# What the program proposes begins with its name.
command -v tranche >/dev/null ||
    printf '\nto call the program by its name: export PATH="%s:$PATH"\n' "$PWD/build"
