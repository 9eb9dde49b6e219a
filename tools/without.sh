#!/bin/sh
# without.sh TECHNIQUE [CTEST OPTION]...: shows that a technique is one file. In a copy of
# the sources it deletes src/plan/passes/TECHNIQUE.c and the row of its pass, builds all, and
# runs the tests but those that ask for the technique. The techniques: micro_norm (the noise
# scale), stage (updates on NVMe), accumulate (sums that are not f32), recompute (units),
# boundary and saved (inputs and saved activations that wait on the host), defer (updates
# on the host that are left to the next step), hand_out (a loss outside of the model),
# two_passes (a contrastive loss without all activations at once), alternate (micro-batches
# that compute while another one exchanges), exchange (sums over ranks inside of units),
# pipeline (units on several ranks, one after the other).
# WITHOUT: the folder of the copy, kept for the next time, which builds what has changed;
# by default a temporary one.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
technique=${1:-}
# Test programs that have a case which asks for it. (Those on several ranks, labelled so,
# ask for all three in one table of cases.)
case $technique in
micro_norm)
    own='cli/budgets_later'     # a batch that follows the noise scale
    own="$own|plan/check"       # measuring, spoilt in every way
    own="$own|train/(batches|guard|noise|short|sums)" # runs that measure it
    ;;
stage)
    own='plan/(check|check_kept|norms|print|staging)' # plans that update on NVMe
    own="$own|plan/proof_spoilt"               # waits of every stream, left out
    own="$own|exec/left_out"                   # an update left to the next step
    own="$own|planner/exhaustive|sim/schedule" # choosing and simulating those plans
    own="$own|cli/process_memory"              # runs with them
    own="$own|train/(batches|key_effects|nvme|offload|places|precision|resnet|short)"
    own="$own|train/(sums|zero_keys)"
    ;;
accumulate)
    own='plan/(check|check_kept|plan|waves)'   # plans with such sums
    own="$own|planner/exhaustive|sim/schedule" # choosing and simulating them
    # Runs in reproducible mode or with sums in 16 bits, and their words.
    own="$own|cli/(budgets|config|deepspeed|process_memory|threads)"
    own="$own|train/(batches|check|halves|noise|offload|places|precision|resnet|sums)"
    ;;
recompute)
    own='exec/(executor|recompute)|plan/(away|check|choices|costs|freeze|match|plan|print)'
    own="$own|plan/(proof_spoilt|slices)|planner/exhaustive|sim/(output|schedule)"
    own="$own|cli/(budgets|budgets_later|total)|cuda/offload" # choosing those plans
    own="$own|(guard/)?train/(offload|places)|train/(freeze|key_effects)"
    ;;
boundary)
    own='exec/recompute|plan/(away|check|match|print|proof_spoilt)|cuda/offload'
    own="$own|(guard/)?train/(offload|places)|train/freeze"
    ;;
saved)
    own='exec/recompute|plan/(away|match|proof_spoilt)|cuda/offload'
    own="$own|(guard/)?train/(offload|places)"
    ;;
hand_out)
    own='plan/(proof|proof_spoilt)|sim/output|(guard/)?train/parts|train/(constants|parts_ranks)'
    own="$own|python/parts"
    ;;
two_passes)
    own='plan/(match|proof|proof_spoilt|schedule|two_passes)|cli/(budgets|sentence)'
    own="$own|(guard/)?train/goldens|train/(key_effects|pairs)"
    ;;
alternate)
    own='plan/pieces'
    ;;
exchange)
    own='plan/(pieces|proof_spoilt)'
    ;;
pipeline)
    own='plan/(match|owners|proof_spoilt)|sim/stages|cli/plan_ranks'
    ;;
defer)
    own='exec/left_out|sim/schedule|(guard/)?train/offload'
    ;;
*)
    echo "usage: without.sh TECHNIQUE [CTEST OPTION]..., of micro_norm, stage, accumulate," \
        "recompute, boundary, saved, defer, hand_out, two_passes, alternate, exchange," \
        "pipeline" >&2
    exit 2
    ;;
esac
shift

copy=${WITHOUT:-$(mktemp -d)}
[ -n "${WITHOUT:-}" ] || trap 'rm -rf "$copy"' EXIT
mkdir -p "$copy"
if [ -n "$(ls -A "$copy")" ] && [ ! -e "$copy/.made-by-without.sh" ]; then
    echo "without.sh: $copy is there already, and no copy of mine" >&2
    exit 2
fi
find "$copy" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} +
: >"$copy/.made-by-without.sh"
(cd "$root" && git ls-files -co --exclude-standard -z | tar -c --null -T - -f -) |
    tar -x -C "$copy"
cd "$copy"

row="{tr__pass_$technique, [A-Z_]*},"
if ! grep -q "$row" src/plan/make.c; then
    echo "without.sh: src/plan/make.c has no row of tr__pass_$technique" >&2
    exit 2
fi
rm "src/plan/passes/$technique.c"
sed -i "s/$row//" src/plan/make.c

cmake --preset release > build.log
if ! cmake --build build >> build.log 2>&1; then
    tail -n 40 build.log >&2
    exit 1
fi
ctest --test-dir build -LE ranks -E "^(source/.*|tidy/.*|$own)\$" "$@"
