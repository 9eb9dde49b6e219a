#!/bin/sh
# dist.sh [FOLDER]: writes FOLDER/tranche-VERSION.tar.gz (build), the sources as they are
# here: what git knows, or in a tree without git all but builds. The archive builds without
# git. Two runs on the same sources write the same bytes.
set -eu
folder=${1:-build}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
cd "$(dirname "$0")/.."
version=$(awk '/^#define TRANCHE_VERSION_(MAJOR|MINOR|PATCH) / { v = v "." $3 }
    END { print substr(v, 2) }' include/tranche/version.h)
name=tranche-$version
list=$(mktemp)
trap 'rm -f "$list"' EXIT
if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    git ls-files --cached --others --exclude-standard >"$list"
else
    find . -mindepth 1 -path './build*' -prune -o -path ./out -prune -o \
        -path ./python/dist -prune -o -name __pycache__ -prune -o \
        \( -type f -o -type l \) -printf '%P\n' >"$list"
fi
LC_ALL=C sort -o "$list" "$list"
tar -c --no-recursion --files-from="$list" --transform="s,^,$name/,S" \
    --owner=0 --group=0 --numeric-owner --mtime=2026-01-01T00:00Z \
    --mode=u+rwX,go+rX,go-w | gzip -n >"$folder/$name.tar.gz"
echo "$folder/$name.tar.gz"
