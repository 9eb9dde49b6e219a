#!/bin/sh
# uninstall.sh MANIFEST: removes the files that `make install` has listed there, and the
# folders that are empty then and have been made for them (those of Tranche's name).
set -eu
while IFS= read -r file; do
    rm -f "$file"
    folder=$(dirname "$file")
    while [ "${folder#*tranche}" != "$folder" ]; do
        rmdir "$folder" 2>/dev/null || break
        folder=$(dirname "$folder")
    done
done <"$1"
echo "removed: $(wc -l <"$1") files"
rm -f "$1"
