#!/bin/sh
# Installs into a temporary folder, moves the tree, then builds and runs an outside
# program against it. check_install.sh CMAKE BUILD_DIR pkg-config|cmake CC
set -eu
cmake=$1 build=$2 way=$3 cc=$4
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT INT TERM

"$cmake" --install "$build" --prefix "$dir/first" >"$dir/log" || {
    cat "$dir/log"
    exit 1
}
mv "$dir/first" "$dir/tree" # nothing installed may name where it was put
if grep -rIl "$build" "$dir/tree"; then
    echo "the installed files above name the build folder"
    exit 1
fi

case $way in
pkg-config)
    pc=$(find "$dir/tree" -name tranche.pc)
    PKG_CONFIG_PATH=$(dirname "$pc")
    export PKG_CONFIG_PATH
    # shellcheck disable=SC2046
    "$cc" -std=c17 -o "$dir/outside" "$here/main.c" \
        $(pkg-config --cflags --libs tranche)
    ;;
cmake)
    "$cmake" -S "$here/project" -B "$dir/outside-build" -DCMAKE_C_COMPILER="$cc" \
        -DCMAKE_PREFIX_PATH="$dir/tree" >"$dir/log" 2>&1 &&
        "$cmake" --build "$dir/outside-build" >>"$dir/log" 2>&1 || {
        cat "$dir/log"
        exit 1
    }
    mv "$dir/outside-build/outside" "$dir/outside"
    ;;
*)
    echo "no such way: $way"
    exit 1
    ;;
esac

lib=$(dirname "$(find "$dir/tree" -name 'libtranche.*' | head -n 1)")
LD_LIBRARY_PATH=$lib "$dir/outside"
