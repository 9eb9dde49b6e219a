#!/bin/sh
# pack_gpu.sh [ARCHIVE]: packs what is tried on a GPU, for a machine that has one and
# neither compiler nor libraries for a build: the tests of `ctest -L gpu`, bench/gpu.sh and
# bench/first_contact.sh, the program, their data, and the libraries that they were linked
# with. build/ is a build of the preset "release" with CUDA. ARCHIVE: build/gpu.tar.xz, of
# at most 50 MB; one that does not end in .xz is not compressed.
#
#     tools/pack_gpu.sh && scp build/gpu.tar.xz there:
#     ssh there 'tar xJf gpu.tar.xz && tranche-gpu/try.sh contact'
#
# The other machine's C library has to be as new as this one's.
set -eu
cd "$(dirname "$0")/.."
archive=${1:-build/gpu.tar.xz}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM
to=$folder/tranche-gpu
mkdir -p "$to/build/bench" "$to/build/tests" "$to/tests/cuda" "$to/lib"

for program in build/tranche build/bench/steps build/bench/kernels build/bench/machine \
    build/tests/gpu-*; do
    [ -f "$program" ] || {
        echo "pack_gpu: $program is not built" >&2
        exit 1
    }
    strip --strip-debug -o "$to/$program" "$program"
    ldd "$program"
done | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p' | LC_ALL=C sort -u |
    grep -v '/\(libc\|libm\|libdl\|librt\|libpthread\)\.so' |
    while read -r library; do
        cp -L "$library" "$to/lib/"
    done
[ -f "$to/build/tests/gpu-train" ] || exit 1

cp -R bench "$to/"
cp -R tests/data "$to/tests/"
cp tests/cuda/on_gpu.sh "$to/tests/cuda/"
cp tests/cuda/try.sh "$to/"
pwd >"$to/built_at" # where the tests look for their data
case $archive in
*.xz) set -- xz -T1 --lzma2=preset=1,dict=64MiB ;;
*) set -- cat ;;
esac
tar c -C "$folder" tranche-gpu | "$@" >"$archive"
size=$(($(wc -c <"$archive") / 1000000))
echo "$archive: $size MB"
if [ "$1" = xz ] && [ "$size" -ge 50 ]; then
    echo "pack_gpu: $archive has $size MB, and was to have 50 at most" >&2
    exit 1
fi
