#!/bin/sh
# check_shells.sh PROGRAM SHELL: the shell takes the completion that the program prints,
# and completes commands, options, keys, values and files by it. 77: there is no such
# shell here.
set -eu
program=$1 shell=$2
command -v "$shell" >/dev/null 2>&1 || {
    echo "$shell is not installed: its completion is not tried"
    exit 77
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/bin" "$folder/work" "$folder/work/runs"
ln -s "$program" "$folder/bin/tranche"
PATH=$folder/bin:$PATH
HOME=$folder XDG_CONFIG_HOME=$folder/config
export PATH HOME XDG_CONFIG_HOME
cd "$folder/work"
: >run.json
: >notes.txt
tranche completion "$shell" >../script

# ask WORD...: what the shell completes the last word with, a candidate a line. Bash has
# split the words at "=" already: so they are given to it here.
ask() {
    case $shell in
    bash)
        # shellcheck disable=SC2016
        bash -c '. ../script
            compopt() { :; } # there is no line that is typed
            COMP_WORDS=(tranche) IFS=
            for word; do
                while [[ $word == *=* && $word != = ]]; do
                    part=${word%%=*}
                    [[ -z $part ]] || COMP_WORDS+=("$part")
                    COMP_WORDS+=("=")
                    word=${word#*=}
                done
                COMP_WORDS+=("$word")
            done
            COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
            _tranche
            printf "%s\n" "${COMPREPLY[@]}"' bash "$@"
        ;;
    zsh)
        # shellcheck disable=SC2016
        zsh -f -c 'compdef() { :; }
            . ../script
            compadd() { while [[ $1 != -- ]]; do shift; done; shift; print -l -- "$@"; }
            compset() { :; }
            _files() {
                case $1 in
                -/) print -l -- *(/N) ;;
                -g) print -l -- ${~2} *(/N) ;;
                *) print -l -- * ;;
                esac
            }
            words=(tranche "$@") CURRENT=$#words
            _tranche' zsh "$@"
        ;;
    fish)
        line=tranche
        for word; do
            line="$line $word"
        done
        fish --no-config -c "source ../script; complete -C '$line'" | cut -f 1
        ;;
    esac
}

rc=0
# wants WORD WORDS...: completing the line, the shell offers the word; "!WORD": it does
# not.
wants() {
    wanted=$1
    shift
    found=$(ask "$@")
    case $wanted in
    !*) ! printf '%s\n' "$found" | grep -qxF -e "${wanted#!}" ;;
    *) printf '%s\n' "$found" | grep -qxF -e "$wanted" ;;
    esac || {
        echo "$shell: tranche $*: $wanted is wanted, and there is: $found"
        rc=1
    }
}

lead= # bash completes what stands behind the last "=" of a word
[ "$shell" = bash ] || lead=optimizer.type=
wants train tr
wants '!plan' tr
wants --trace-step train --tr
wants run.json train ''
wants '!notes.txt' train ''
folder_end=
[ "$shell" != fish ] || folder_end=/
wants "runs$folder_end" plot ''
wants optimizer.type= train run.json --set optimizer.ty
wants "${lead}AdamW" train run.json --set optimizer.type=
wants "${lead}Lion" train run.json --set optimizer.type=Li
wants never train run.json --resume ''
wants jsonl evaluate runs --format js
wants run-file manual run
exit "$rc"
