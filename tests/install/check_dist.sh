#!/bin/sh
# check_dist.sh ROOT: the archive of `make dist` has the same bytes when it is made again,
# also from its own tree, which has no git; it is what git knows, and nothing names
# another version than the headers.
set -eu
root=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
archive=$(sh "$root/tools/dist.sh" "$folder/first")
name=$(basename "$archive" .tar.gz)
tar -xzf "$archive" -C "$folder"
again=$(cd "$folder" && GIT_CEILING_DIRECTORIES=$folder sh "$name/tools/dist.sh" "$folder/second")
cmp "$archive" "$again"
for file in Makefile CMakeLists.txt tools/setup.sh debian/rules docs/install.md; do
    [ -e "$folder/$name/$file" ] || {
        echo "$archive: there is no $file"
        exit 1
    }
done
! tar -tzf "$archive" | grep -E '/(build|build-[a-z0-9-]*|out|\.git)/' || exit 1
version=${name#tranche-}
rc=0
grep -q "^version: $version\$" "$root/CITATION.cff" || {
    echo "CITATION.cff does not say version $version"
    rc=1
}
grep -q "^tranche ($version)" "$root/debian/changelog" || {
    echo "debian/changelog does not begin with version $version"
    rc=1
}
soname=$(echo "$version" | cut -d . -f 1-2)
grep -q "^Package: libtranche$soname\$" "$root/debian/control" || {
    echo "debian/control has no package libtranche$soname"
    rc=1
}
exit "$rc"
