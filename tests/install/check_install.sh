#!/bin/sh
# Installs into a temporary folder, moves the tree, then builds the C example against it
# as an outside project would, runs it, and reads its checkpoint with the installed
# program. check_install.sh CMAKE SOURCE_DIR BUILD_DIR pkg-config|cmake CC
set -eu
cmake=$1 source=$2 build=$3 way=$4 cc=$5
here=$(cd "$(dirname "$0")" && pwd)
example=$source/examples/classifier.c
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT INT TERM

# quietly COMMAND...: shows the output only when the command fails
quietly() {
    "$@" >"$dir/log" 2>&1 || {
        cat "$dir/log"
        exit 1
    }
}

quietly "$cmake" --install "$build" --prefix "$dir/first"
mv "$dir/first" "$dir/tree" # nothing installed may say where it was put
if grep -rIlF -e "$source/" -e "$dir/first" "$dir/tree"; then
    echo "the installed files above name a folder of the build"
    exit 1
fi

case $way in
pkg-config)
    pc=$(find "$dir/tree" -name tranche.pc)
    PKG_CONFIG_PATH=$(dirname "$pc")
    export PKG_CONFIG_PATH
    # shellcheck disable=SC2046
    quietly "$cc" -std=c17 -o "$dir/outside" "$example" \
        $(pkg-config --cflags --libs tranche)
    ;;
cmake)
    quietly "$cmake" -S "$here/project" -B "$dir/build" -DCMAKE_C_COMPILER="$cc" \
        -DCMAKE_PREFIX_PATH="$dir/tree" -DOUTSIDE_SOURCE="$example"
    quietly "$cmake" --build "$dir/build"
    mv "$dir/build/outside" "$dir/outside"
    ;;
*)
    echo "no such way: $way"
    exit 1
    ;;
esac

lib=$(dirname "$(find "$dir/tree" -name 'libtranche.*' | head -n 1)")
cd "$dir"
LD_LIBRARY_PATH=$lib ./outside
./tree/bin/tranche inspect out/classifier-c >"$dir/log"
grep -q 'layers.1.weight' "$dir/log"

# Documents, examples and machine files are there, and are of use there.
for file in README.md docs/run-file.md docs/library.md; do
    test -f "tree/share/doc/tranche/$file" || {
        echo "share/doc/tranche/$file is not installed"
        exit 1
    }
done
examples=tree/share/tranche/examples
quietly ./tree/bin/tranche plan "$examples/classifier.json"
quietly ./tree/bin/tranche simulate "$examples/classifier.json" --ranks 8 \
    --machine "$examples/machines/dgx-h100.json"
