#!/bin/sh
# uninstall.sh MANIFEST: removes the files that `make install` has listed there, and the
# folders of Tranche's name that are empty then. CMake ends the list without a line end.
set -eu
files=0
while IFS= read -r file || [ -n "$file" ]; do
    rm -f "$file"
    files=$((files + 1))
    folder=$(dirname "$file")
    while [ "${folder#*/tranche}" != "$folder" ]; do
        rmdir "$folder" 2>/dev/null || break
        folder=$(dirname "$folder")
    done
done <"$1"
rm -f "$1"
echo "removed: $files files"
