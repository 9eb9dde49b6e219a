#!/bin/sh
# debian13.sh [TARGET...]: makes a Debian 13 system in a folder, copies this tree into it
# and runs `make TARGET...` (test) there: GCC 14, oneDNN 3.7, Open MPI 5, CMake 3.31.
# The system stays for the next run, which takes what has changed; remove the folder to
# start anew. Needs root and mmdebstrap (Debian, Ubuntu: apt-get install mmdebstrap).
#
#   debian13.sh test PARTS="asan tsan"  runs only some parts of the tests (test.sh)
#
#   FOLDER=...  of the system; build-debian13
#   MIRROR=...  of Debian; the one that this machine's apt uses
#   SUITE=...   another version of Debian; trixie
set -eu
cd "$(dirname "$0")/.."
tree=$PWD
folder=${FOLDER:-$tree/build-debian13}
suite=${SUITE:-trixie}
[ $# -gt 0 ] || set -- test

fail() {
    echo "debian13: $*" >&2
    exit 2
}

. tools/roots.sh
lacking=$(roots_lack)
[ -z "$lacking" ] || fail "$lacking"
made=$folder/etc/made-by-debian13.sh # the folder is complete
if [ ! -e "$made" ]; then
    echo "debian13: making $folder"
    roots_make "$suite" "$folder" make,ca-certificates ||
        fail "mmdebstrap failed; remove $folder before the next try"
    touch "$made"
fi

# The tree, with the times of its files, so that only what has changed is built again.
mkdir -p "$folder/srv/tranche"
find "$folder/srv/tranche" -mindepth 1 -maxdepth 1 ! -name 'build*' -exec rm -rf {} +
find . -mindepth 1 -maxdepth 1 ! -name 'build*' ! -name out ! -name .git -print |
    tar -c -T - | tar -x -C "$folder/srv/tranche"

roots_run "$folder" make -C /srv/tranche "$@"
