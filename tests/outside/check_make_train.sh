#!/bin/sh
# check_make_train.sh SOURCE_DIR BUILD_DIR: `make train DATA=...` in a copy of the sources
# that has this build in it: set-up finds nothing to install, the build nothing to do, and
# a few steps end with a checkpoint and a sample; started again, it goes on.
set -eu
source=$1 build=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT INT TERM

for name in Makefile CMakeLists.txt CMakePresets.json cmake tools examples src include; do
    ln -s "$source/$name" "$dir/$name"
done
ln -s "$build" "$dir/build"
# Nothing may be installed by a test.
mkdir "$dir/no"
for name in apt-get sudo; do
    printf '#!/bin/sh\necho "$0 $*: not in a test" >&2\nexit 1\n' >"$dir/no/$name"
    chmod +x "$dir/no/$name"
done
PATH=$dir/no:$PATH
mkdir "$dir/texts"
for i in 1 2 3 4 5 6 7 8; do
    seq -f "line %g of a text of which there is more than one window." 200 \
        >"$dir/texts/$i.txt"
done

fail() {
    cat "$dir/log"
    echo "check_make_train: $*"
    exit 1
}

train() { # STEPS
    STEPS=$1 OUT=$dir/out make -C "$dir" train DATA="$dir/texts" >"$dir/log" 2>&1 ||
        fail "make train, $1 steps: exit status $?"
}

says() {
    grep -q -e "$1" "$dir/log" || fail "does not say: $1"
}

train 1
says "training on: $dir/texts"
says "step 1/1 "
says "a sample of $dir/out"
command -v tranche >/dev/null || says "export PATH=\"$dir/build:"
train 2
says "step 2/2 "
[ "$(readlink "$dir/out/checkpoints/latest")" = step-00000002 ] ||
    fail "the last checkpoint is not step 2"
