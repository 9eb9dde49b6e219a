#!/bin/sh
# check_uninstall.sh ROOT: what `make uninstall` removes: all files of a list whose last
# line has no end, and the folders that are Tranche's alone; nothing beside them.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/prefix/share/tranche/examples" "$folder/prefix/lib/pkgconfig"
: >"$folder/prefix/share/tranche/examples/a b.json"
: >"$folder/prefix/lib/pkgconfig/tranche.pc"
: >"$folder/prefix/lib/pkgconfig/other.pc"
printf '%s\n%s' "$folder/prefix/share/tranche/examples/a b.json" \
    "$folder/prefix/lib/pkgconfig/tranche.pc" >"$folder/manifest"
sh "$1/tools/uninstall.sh" "$folder/manifest" | grep -q '^removed: 2 files$'
left=$(cd "$folder" && find . -type f -o -name '*tranche*' | LC_ALL=C sort)
[ "$left" = ./prefix/lib/pkgconfig/other.pc ] || {
    echo "left: $left"
    exit 1
}
[ -d "$folder/prefix/share" ]
