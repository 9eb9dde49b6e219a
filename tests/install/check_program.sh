#!/bin/sh
# The program's own rooms, the public headers and the shared library are all that it
# takes to build `tranche`, which then plans, trains and shows what it has saved.
# Its reports have no charts: it is built as where dygraphs is not.
# check_program.sh SOURCE_DIR FOLDER_OF_LIBRARY CC CMAKE
set -eu
source=$1 lib=$2 cc=$3 cmake=$4
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT INT TERM
cp -r "$source/include" "$dir"
mkdir "$dir/src"
cp -r "$source/src/cli" "$source/src/report" "$dir/src"
LD_LIBRARY_PATH=$lib
export LD_LIBRARY_PATH
cd "$dir"
"$cmake" -DOUT=page_files.c \
    -DSCRIPTS="$(printf '%s\n' "$source"/src/report/*.js | paste -sd, -)" \
    -DSTYLES="$(printf '%s\n' "$source"/src/report/*.css | paste -sd, -)" \
    -DDYGRAPHS= -P "$source/cmake/embed.cmake"
# shellcheck disable=SC2046
"$cc" -std=gnu17 -D_GNU_SOURCE -Iinclude -Isrc $(pkg-config --cflags jansson) \
    src/cli/*.c src/report/*.c page_files.c -L"$lib" -ltranche $(pkg-config --libs jansson) -lm \
    -o tranche
./tranche --version | grep -q '^tranche '
./tranche plan "$source/examples/classifier.json" | grep -q 'parameters'
./tranche train "$source/examples/classifier.json" --steps 3 --out out >log 2>&1 || {
    cat log
    exit 1
}
./tranche inspect out | grep -q 'layers.1.weight'
./tranche plot out | grep -q 'loss'
./tranche report out 2>said | grep -q '^report.html: 1 run$'
grep -q 'built without dygraphs (Debian: libjs-dygraphs)' said
grep -q '<svg ' report.html
grep -q '<h2>Memory of a step' report.html
