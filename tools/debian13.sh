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

# A mirror of Debian's own packages, security updates aside.
mirror() {
    # shellcheck disable=SC2016
    apt-get indextargets --format '$(REPO_URI) $(LABEL)' 'Created-By: Packages' \
        2>/dev/null | awk '$2 == "Debian" { print $1; exit }'
}

# How apt reaches its mirror from here (proxies, time limits, checks of dates), as lines
# of an apt.conf.
ways() {
    apt-config dump Acquire | grep -E '^Acquire::(https?::|Retries|Check-)' |
        grep -v -i 'auto-\?detect' || true
}

[ "$(id -u)" -eq 0 ] || fail "it mounts and changes root: run it as root"
made=$folder/etc/made-by-debian13.sh # the folder is complete
if [ ! -e "$made" ]; then
    command -v mmdebstrap >/dev/null 2>&1 ||
        fail "mmdebstrap is missing: apt-get install mmdebstrap"
    from=${MIRROR:-$(mirror)}
    [ -n "$from" ] || fail "no mirror of Debian in apt's sources: name one, MIRROR=URL"
    echo "debian13: making $folder from $from"
    options=$(mktemp)
    trap 'rm -f "$options"' EXIT
    ways >"$options"
    mmdebstrap --quiet --variant=apt --include=make,ca-certificates \
        --aptopt="$options" "$suite" "$folder" "$from" ||
        fail "mmdebstrap failed; remove $folder before the next try"
    rm -f "$options"
    touch "$made"
fi

# The tree, with the times of its files, so that only what has changed is built again.
cp -L /etc/resolv.conf "$folder/etc/resolv.conf" 2>/dev/null || true
mkdir -p "$folder/srv/tranche"
find "$folder/srv/tranche" -mindepth 1 -maxdepth 1 ! -name 'build*' -exec rm -rf {} +
find . -mindepth 1 -maxdepth 1 ! -name 'build*' ! -name out ! -name .git -print |
    tar -c -T - | tar -x -C "$folder/srv/tranche"

# What the tests start there needs /proc and shared memory.
# shellcheck disable=SC2016
exec unshare --mount --pid --fork --kill-child sh -eu -c '
    folder=$1
    shift
    mount --make-rprivate /
    mount -t proc proc "$folder/proc"
    mount --rbind /dev "$folder/dev"
    mount --rbind /sys "$folder/sys"
    exec chroot "$folder" make -C /srv/tranche "$@"
' sh "$folder" "$@"
