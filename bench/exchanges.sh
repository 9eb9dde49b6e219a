#!/bin/sh
# exchanges.sh [RANKS [MOST [WAY...]]]
# exchanges.sh nodes [RATE [MOST [WAY...]]]
#
# What an exchange of the ranks of this machine takes by each algorithm of the library, by
# MPI's own collectives, by bare messages, and by memory that the ranks share
# (bench/exchanges.c), in microseconds, for 4 KiB to MOST bytes of the whole. The fastest
# of 40 tries in each of three rounds, in which the ways take turns: another process can
# only make one slower. "nodes": of four ranks, two in each of two network namespaces with
# a link of RATE between them (tools/netns.sh; it needs root); way "2" is the hierarchical
# exchange.
set -u
cd "$(dirname "$0")/.." || exit 1
if [ "${1:-}" = nodes ] && [ -z "${NETNS_A:-}" ]; then
    sh tools/netns.sh run "${2:-1gbit}" none "$0" "$@"
    exit
fi
. bench/common.sh
ranks=${1:-2} most=${2:-67108864} ways="direct ring tree mpi messages copies shared"
if [ "$ranks" = nodes ]; then
    shift
    most=${2:-4194304} ways="direct 2 ring tree mpi"
fi
if [ $# -gt 2 ]; then
    shift 2
    ways=$*
fi

# exchange WAY
exchange() {
    if [ "$ranks" = nodes ]; then
        NETNS_EACH=2 sh tools/netns.sh mpirun "$(mpirun)" build/bench/exchanges "$1" "$most"
    else
        on_ranks "$ranks" build/bench/exchanges "$1" "$most"
    fi
}

machine
for round in 1 2 3; do
    for way in $ways; do
        exchange "$way" >"$work/$way.$round" || exit 1
    done
done
for way in $ways; do
    cat "$work/$way".[123] | sed "s/^/$way /"
done | awk -v ways="$ways" '
    { key = $2 " " $3; if (!(key in seen)) { seen[key] = 1; keys[++count] = key } }
    !(($1, key) in least) || $4 < least[$1, key] { least[$1, key] = $4 }
    END {
        n = split(ways, way, " ")
        printf "%-8s %10s", "kind", "bytes"
        for (i = 1; i <= n; i++) printf " %12s", way[i]
        print ""
        for (k = 1; k <= count; k++) {
            split(keys[k], part, " ")
            printf "%-8s %10d", part[1], part[2]
            for (i = 1; i <= n; i++) {
                there = (way[i], keys[k]) in least
                printf " %12s", there ? sprintf("%.1f", least[way[i], keys[k]] * 1e6) : "-"
            }
            print ""
        }
    }'
