# roots.sh: systems of Debian in folders, for scripts that source it. They need root and
# mmdebstrap (Debian, Ubuntu: apt-get install mmdebstrap).
#
#   MIRROR=...  of Debian; the one that this machine's apt uses

# What lacks for making them, in words; "": nothing.
roots_lack() {
    [ "$(id -u)" -eq 0 ] || echo "it mounts and changes root: run it as root"
    command -v mmdebstrap >/dev/null 2>&1 ||
        echo "mmdebstrap is missing: apt-get install mmdebstrap"
    [ -n "${MIRROR:-$(roots_mirror)}" ] ||
        echo "no mirror of Debian in apt's sources: name one, MIRROR=URL"
}

# A mirror of Debian's own packages, security updates aside.
roots_mirror() {
    # shellcheck disable=SC2016
    apt-get indextargets --format '$(REPO_URI) $(LABEL)' 'Created-By: Packages' \
        2>/dev/null | awk '$2 == "Debian" { print $1; exit }'
}

# roots_make SUITE TARGET PACKAGES: a system in a folder, or in a file TARGET.tar. apt
# there reaches its mirror as it does here (proxies, time limits, checks of dates).
roots_make() {
    roots_options=$(mktemp)
    apt-config dump Acquire | grep -E '^Acquire::(https?::|Retries|Check-)' |
        grep -v -i 'auto-\?detect' >"$roots_options" || true
    mmdebstrap --quiet --variant=apt --include="$3" --aptopt="$roots_options" "$1" "$2" \
        "${MIRROR:-$(roots_mirror)}"
    roots_status=$?
    rm -f "$roots_options"
    return "$roots_status"
}

# roots_run FOLDER COMMAND...: the command in the system of the folder, with /proc, /dev
# and /sys, in its own space of processes, all of which end with it.
roots_run() {
    cp -L /etc/resolv.conf "$1/etc/resolv.conf" 2>/dev/null || true
    # shellcheck disable=SC2016
    unshare --mount --pid --fork --kill-child sh -eu -c '
        folder=$1
        shift
        mount --make-rprivate /
        mount -t proc proc "$folder/proc"
        mount --rbind /dev "$folder/dev"
        mount --rbind /sys "$folder/sys"
        # A compiler cache of this machine is not there.
        unset CMAKE_C_COMPILER_LAUNCHER CMAKE_CXX_COMPILER_LAUNCHER
        exec chroot "$folder" "$@"
    ' sh "$@"
}
