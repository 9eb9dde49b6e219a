#!/bin/sh
# test.sh [PART]...: every test there is, or some parts of them. The parts, in order:
#   release  the release build with the whole suite and the checks of the sources; then
#            the tests that depend on the instruction set, held to what is less than this
#            machine's (AVX2, SSE 4.1), since nobody knows the next one's
#   mpich    what runs on ranks, with the other MPI, but for what only asks that ranks
#            come to the same numbers; the rest of the library is release's
#   asan     the suite under AddressSanitizer and UndefinedBehaviorSanitizer
#   tsan     the tests of our own threads under ThreadSanitizer
#   fuzz     the fuzz targets
# At the end it says how long each part took, and counts all tests in the last line. The
# whole should take half an hour on two cores, from nothing; it takes some minutes more.
#
# ThreadSanitizer does not see the barriers inside GCC's libgomp and takes correct OpenMP
# code for races, so it runs only the tests labelled "threads", with one OpenMP thread.
# Tests labelled "serial" measure time or memory and those labelled "slow" would take
# minutes: sanitizers leave both out.
set -u
cd "$(dirname "$0")/.." || exit 1
jobs=$(nproc 2>/dev/null || echo 2)
# Tests wait for ranks, for files and for time: two more than there are cores.
tests_at_once=$((jobs + 2))
passed=0
failed=0
skipped=0
broken=
times= # of each part, for the end
took=  # of the part at work

# Tests run side by side: threads that wait in a loop would take the other's core.
OMP_WAIT_POLICY=passive
# To find uses after a return, AddressSanitizer keeps frames elsewhere. With GCC 14, where
# that is the default, kernels whose frames have vectors of 64 bytes crash then.
# It keeps 16 MB of what was freed from being used again, and 10 calls of who took it: with
# 256 MB and 30, a third of the tests' time is its own.
ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=0:quarantine_size_mb=16:\
thread_local_quarantine_size_kb=64:malloc_context_size=10:${ASAN_OPTIONS:-}
UBSAN_OPTIONS=print_stacktrace=1:${UBSAN_OPTIONS:-}
export OMP_WAIT_POLICY ASAN_OPTIONS UBSAN_OPTIONS

# What changed little since the last time is not compiled again.
if command -v ccache >/dev/null 2>&1; then
    : "${CMAKE_C_COMPILER_LAUNCHER:=ccache}" "${CCACHE_NOHASHDIR:=1}"
    : "${CMAKE_CXX_COMPILER_LAUNCHER:=$CMAKE_C_COMPILER_LAUNCHER}"
    export CMAKE_C_COMPILER_LAUNCHER CMAKE_CXX_COMPILER_LAUNCHER CCACHE_NOHASHDIR
fi

# Counts one run of CTest from its JUnit file. The cases of a cmocka program count one by
# one, any other test is one; a program that fails without saying where is one failure.
count() {
    awk '
    /<testcase / {
        status = $0
        sub(/.* status="/, "", status)
        sub(/".*/, "", status)
        good = bad = left = 0
    }
    /<skipped message="SKIP_/ { status = "skipped" }
    /\[  PASSED  \] [0-9]+ test/ { good += number($0) }
    /\[  FAILED  \] [0-9]+ test/ { bad += number($0) }
    /\[  SKIPPED \] [0-9]+ test/ { left += number($0) }
    /<\/testcase>/ {
        if (status == "run" && good + bad + left == 0) good = 1
        if (status == "skipped") left = 1
        if (status != "run" && status != "skipped" && bad == 0) bad = 1
        pass += good; fail += bad; skip += left
    }
    function number(line) {
        sub(/.*\[  [A-Z]+ +\] /, "", line)
        return line + 0
    }
    END { print pass + 0, fail + 0, skip + 0 }' "$1"
}

# Tests on ranks of the engine: what they ask of an MPI is what comm/ tries, and
# train/matrix on 3 and 4 ranks, residency on 2, together, changes and mesh do. What
# exchanges ask of it on eight ranks they ask on five.
engine_alone='^cuda/|^cli/soak$|^train/(adapting|half|sums|frozen|trace|statistics|noise|goldens|freeze|heads|mesh-goldens)-|^train/(matrix-([12]|ring|tree)|residency-3)$|^comm/exchange-(ring-8|tree-8|nodes-8x2)$'

# What these do on several ranks, their tests on one rank or two and the tests of exchanges,
# of train/matrix and of train/changes do in the same memory: a sanitizer sees no more. Nor
# does it of every model, and of every cut, on the guard backend, whose own code the other
# tests there run.
engine_again='^guard/train/(goldens|invariance)$|^train/(adapting|half|sums|frozen|trace|statistics|noise|goldens|freeze|residency)-[2-9]$|^train/mesh-tensor-|^train/(adapted|axes|heads|pieces|schedules|mesh-goldens)-[3-9]$|^comm/exchange-(ring|tree)-[24]$'

# Exchanges on three ranks, trees on four, and two nodes of two, run the same threads as
# these do.
ranks_again='^comm/exchange-(2|ring-[245]|tree-[25]|nodes-8x[24])$'

# timed WHAT COMMAND...: notes how long the command takes
timed() {
    took="$took${took:+, }$1 "
    began=$(date +%s)
    shift
    "$@"
    status=$?
    seconds=$(($(date +%s) - began))
    took=$took$(printf '%d:%02d' $((seconds / 60)) $((seconds % 60)))
    return "$status"
}

# lost PRESET: a run that could not be made counts as one failure
lost() {
    broken="$broken $1"
    failed=$((failed + 1))
}

# build PRESET FOLDER TARGET
build() {
    cmake --preset "$1" >"$log" 2>&1 &&
        cmake --build "$2" --target "$3" >>"$log" 2>&1 && return
    tail -n 40 "$log"
    echo "$1: the build failed"
    lost "$1"
    return 1
}

# suite PRESET FOLDER TARGET ARGUMENTS_OF_CTEST...
suite() {
    preset=$1 folder=$2 target=$3
    shift 3
    echo "== $preset"
    timed build build "$preset" "$folder" "$target" &&
        timed tests tests "$preset" "$folder" "$@"
}

# tests NAME FOLDER ARGUMENTS_OF_CTEST... : of a build that is there
tests() {
    name=$1 results=$PWD/$2/tests.xml
    rm -f "$results"
    folder=$2
    shift 2
    ctest --test-dir "$folder" --output-on-failure --parallel "$tests_at_once" \
        --output-junit "$results" --test-output-size-passed 1000000 \
        --test-output-size-failed 1000000 "$@" || broken="$broken $name"
    if [ ! -s "$results" ]; then
        lost "$name"
        return
    fi
    # shellcheck disable=SC2046
    set -- $(count "$results")
    passed=$((passed + $1))
    failed=$((failed + $2))
    skipped=$((skipped + $3))
}

# On a processor whose widest set is AVX2, the release tests have just been held to it.
has_avx512() {
    ! [ -r /proc/cpuinfo ] || grep -q '^flags.* avx512f ' /proc/cpuinfo
}

# held ISA: what the release build has that depends on the instruction set
held() {
    echo "== release, held to $1"
    DNNL_MAX_CPU_ISA=$1 TR_HELD=1
    export DNNL_MAX_CPU_ISA TR_HELD
    timed "tests held to $1" tests "release-$1" build --label-regex '^isa$'
    unset DNNL_MAX_CPU_ISA TR_HELD
}

# left_out PART WHY
left_out() {
    echo "== $1: $2, skipped"
    skipped=$((skipped + 1))
}

# with_one_thread COMMAND...: of OpenMP's
with_one_thread() {
    OMP_NUM_THREADS=1
    export OMP_NUM_THREADS
    "$@"
    unset OMP_NUM_THREADS
}

part() {
    case $1 in
    release)
        suite release build all
        if has_avx512; then
            held AVX2
        fi
        held SSE41
        ;;
    mpich)
        if command -v mpicc.mpich >/dev/null 2>&1; then
            timed "release's objects" build release build objects &&
                suite mpich build-mpich tests-ranks --label-regex ranks \
                    --exclude-regex "$engine_alone"
        else
            left_out mpich "not installed"
        fi
        ;;
    asan)
        timed "release's kernels" build release build kernels &&
            suite asan build-asan all --label-exclude 'slow|serial' \
                --exclude-regex "$engine_again"
        ;;
    tsan)
        timed "release's kernels" build release build kernels &&
            with_one_thread suite tsan build-tsan tests-threads --label-regex threads \
                --exclude-regex "$ranks_again"
        ;;
    fuzz)
        if tools/has_fuzzer.sh >/dev/null 2>&1; then
            timed "release's kernels" build release build kernels &&
                with_one_thread suite fuzz build-fuzz fuzz --label-regex fuzz
        else
            left_out fuzz "clang with libFuzzer is not installed"
        fi
        ;;
    esac
}

[ $# -gt 0 ] || set -- release mpich asan tsan fuzz
for wanted; do
    case $wanted in
    release | mpich | asan | tsan | fuzz) ;;
    *)
        echo "test.sh: there is no part \"$wanted\"; there are release, mpich, asan," \
            "tsan and fuzz" >&2
        exit 2
        ;;
    esac
done

log=$(mktemp)
trap 'rm -f "$log"' EXIT INT TERM
for wanted; do
    took=
    part "$wanted"
    times="$times$wanted: ${took:-nothing to do}
"
done

printf '\n%s' "$times"
[ -z "$broken" ] || echo "not clean:$broken"
line="$passed passed, $failed failed"
[ "$skipped" -eq 0 ] || line="$line, $skipped skipped"
echo "$line"
[ "$failed" -eq 0 ] && [ -z "$broken" ] && [ "$passed" -gt 0 ]
