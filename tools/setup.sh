#!/bin/sh
# setup.sh [test]: installs, on Debian and Ubuntu, what is missing to build Tranche; with
# "test", what its tests need besides. Where nothing is missing it does nothing, on any
# system. It never asks for anything but what sudo asks.
set -eu
wanted=${1:-build}
missing=
optional=

# need PACKAGE COMMAND... : notes the package when the command fails
need() {
    package=$1
    shift
    "$@" >/dev/null 2>&1 || missing="$missing $package"
}

# wish PACKAGE COMMAND... : the same for what can be done without
wish() {
    package=$1
    shift
    "$@" >/dev/null 2>&1 || optional="$optional $package"
}

cc=${CC:-cc}

preprocesses() { # HEADER FLAGS...
    header=$1
    shift
    printf '#include <%s>\n' "$header" | "$cc" -E -x c "$@" -
}

has_compiler() { command -v "$cc"; }
has_headers() { preprocesses stdio.h; }
has_openmp() { preprocesses omp.h -fopenmp; }
has_cmake() {
    cmake --version | awk 'NR == 1 {
        split($3, v, ".")
        good = v[1] > 3 || (v[1] == 3 && v[2] >= 22)
    }
    END { exit !good }' # without cmake there is no first line
}
has_dnnl() { preprocesses oneapi/dnnl/dnnl.h; }
has_dygraphs() { [ -e /usr/share/javascript/dygraphs/dygraph.min.js ]; }
has_mpi() { command -v mpicc; }
has_fuzzer() { "$(dirname "$0")/has_fuzzer.sh"; }
has_mpich() { command -v mpicc.mpich; }
has_format() {
    clang-format-14 --version || clang-format --version | grep -q 'version 14\.'
}

probe() {
    missing=
    optional=
    need gcc has_compiler
    need libc6-dev has_headers
    need gcc has_openmp
    need cmake has_cmake
    need ninja-build command -v ninja
    need pkg-config command -v pkg-config
    need libdnnl-dev has_dnnl
    need libjansson-dev pkg-config --exists 'jansson >= 2.13'
    need libxxhash-dev pkg-config --exists 'libxxhash >= 0.8.0'
    need libpcre2-dev pkg-config --exists 'libpcre2-8 >= 10.32'
    if [ "$wanted" = test ]; then
        need libopenmpi-dev has_mpi
    else
        wish libopenmpi-dev has_mpi
    fi
    wish liburing-dev pkg-config --exists 'liburing >= 2.0'
    wish libjs-dygraphs has_dygraphs
    if [ "$wanted" = test ]; then
        wish libmpich-dev has_mpich
        need libcmocka-dev pkg-config --exists cmocka
        wish ccache command -v ccache
        wish g++ command -v "${CXX:-c++}"
        wish python3 command -v python3
        wish groff-base command -v groff
        wish zsh command -v zsh
        wish fish command -v fish
        wish python3-sphinx command -v sphinx-build
        wish python3-myst-parser command -v sphinx-build
        wish furo command -v sphinx-build
        wish clang-format-14 has_format
        wish clang-tidy-14 command -v clang-tidy-14
        wish clang has_fuzzer
        wish libclang-rt-dev has_fuzzer
        wish libomp-dev has_fuzzer
    fi
}

words() { echo "$*" | tr ' ' '\n' | sort -u | tr '\n' ' ' | sed 's/^ *//; s/ *$//'; }

probe
# What can be done without is asked for once: a mark remembers that it was not there.
mark=$(cd "$(dirname "$0")/.." && pwd)/build/setup-without
[ -n "$missing" ] || [ ! -e "$mark" ] || optional=
[ -n "$missing$optional" ] || exit 0

if ! command -v apt-get >/dev/null 2>&1; then
    if [ -z "$missing" ]; then
        echo "setup: not here, and can be done without: $(words $optional)"
        exit 0
    fi
    {
        echo "setup: this is not Debian or Ubuntu (no apt-get), so install by hand what"
        echo "these packages hold, then run make again: $(words $missing $optional)"
    } >&2
    exit 2
fi

root=
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null 2>&1; then
        {
            echo "setup: packages are missing and you are not root; as root run"
            echo "    apt-get install $(words $missing $optional)"
        } >&2
        [ -n "$missing" ] || exit 0
        exit 2
    fi
    root=sudo
    # With nobody to answer, asking for a password would wait for ever.
    [ -t 0 ] || root='sudo -n'
fi

apt() {
    $root env DEBIAN_FRONTEND=noninteractive apt-get -q -y \
        -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 "$@" </dev/null
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT INT TERM
quietly() {
    "$@" >"$log" 2>&1 || {
        tail -n 20 "$log" >&2
        return 1
    }
}

echo "setup: installing $(words $missing $optional) with apt-get${root:+ ($root)}"
quietly apt update || echo "setup: apt-get update failed; trying with the lists at hand" >&2
if [ -n "$missing" ]; then
    # shellcheck disable=SC2046
    quietly apt install --no-install-recommends $(words $missing) || {
        echo "setup: could not install $(words $missing)" >&2
        exit 2
    }
fi
for package in $optional; do
    quietly apt install --no-install-recommends "$package" || {
        echo "setup: no $package; what uses it will be left out"
        mkdir -p "$(dirname "$mark")"
        echo "$package" >>"$mark"
    }
done

probe
if [ -n "$missing" ]; then
    echo "setup: still missing after the installation: $(words $missing)" >&2
    exit 2
fi
echo "setup: done"
