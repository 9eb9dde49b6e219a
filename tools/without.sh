#!/bin/sh
# without.sh TECHNIQUE [CTEST OPTION]...: shows that a technique is one file. In a copy of
# the sources it deletes src/plan/TECHNIQUE.c and the row of its pass, builds all, and
# runs the tests but those that ask for the technique. The techniques: gauge (the noise
# scale), stage (updates on NVMe), fold (sums that are not f32).
# WITHOUT: the folder of the copy, kept; by default a temporary one.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
technique=${1:-}
# Tests of which some case asks for it. (Those on several ranks ask for all three.)
case $technique in
gauge) own='plan/check|train/(batches|guard|noise|short|sums)' ;;
stage)
    own='plan/(check|check_kept|norms|print)|sim/schedule|planner/exhaustive'
    own="$own|cli/process_memory|train/(batches|key_effects|nvme|offload|places)"
    own="$own|train/(precision|resnet|short|sums|zero_keys)"
    ;;
fold)
    own='plan/(check|check_kept)|sim/schedule|planner/exhaustive'
    own="$own|train/(batches|check|halves|noise|offload|places|precision|resnet|sums)"
    ;;
*)
    echo "usage: without.sh gauge|stage|fold [CTEST OPTION]..." >&2
    exit 2
    ;;
esac
shift

copy=${WITHOUT:-$(mktemp -d)}
[ -n "${WITHOUT:-}" ] || trap 'rm -rf "$copy"' EXIT
mkdir -p "$copy"
(cd "$root" && git ls-files -co --exclude-standard -z | tar -c --null -T - -f -) |
    tar -x -C "$copy"
cd "$copy"

row="{tr__pass_$technique, [A-Z]*},"
if ! grep -q "$row" src/plan/plan.c; then
    echo "without.sh: src/plan/plan.c has no row of tr__pass_$technique" >&2
    exit 2
fi
rm "src/plan/$technique.c"
sed -i "s/$row//" src/plan/plan.c

cmake --preset release > build.log
if ! cmake --build build >> build.log 2>&1; then
    tail -n 40 build.log >&2
    exit 1
fi
ctest --test-dir build -LE ranks -E "^(source/.*|$own)\$" "$@"
