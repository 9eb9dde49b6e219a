#!/bin/sh
# packages.sh [SUITE...]: tries each way of installing Tranche from nothing, in fresh
# systems of Debian 12 and 13 (bookworm trixie):
#
#     packages   the Debian packages are built from `make dist`, twice, elsewhere and under
#                other settings, to the same bytes; lintian finds nothing; they install in
#                a system that has never seen Tranche, train, are upgraded, and leave no
#                file behind
#     source     the archive of `make dist` builds without git by `make install`, trains,
#                and `make uninstall` leaves no file behind
#     image      the steps of the Containerfile; its packages have the bytes of those above
#     wheel      python/dist/tranche-*.whl, where `make wheel` has left one
#
# Minutes: no part of `make test`. The systems are made once, in build-packages; each try
# has a copy of its own. Needs root and mmdebstrap; without them everything is skipped.
#
#   WAYS="packages source image wheel"   only some of them
#   ONCE=1                               one build of the packages, compared with the
#                                        image's alone
set -u
cd "$(dirname "$0")/.." || exit 1
tree=$PWD
to=$tree/build-packages
ways=${WAYS:-packages source image wheel}
[ $# -gt 0 ] || set -- bookworm trixie
. tools/roots.sh
passed=0 failed=0 skipped=0
built= # the system whose packages have been built
mkdir -p "$to"

# attempt NAME COMMAND...: counts whether the command succeeds; what it says is in a file.
attempt() {
    name=$1
    shift
    if "$@" >"$to/$name.log" 2>&1; then
        passed=$((passed + 1))
        echo "$name: good"
    else
        failed=$((failed + 1))
        echo "$name: FAILED"
        tail -n 30 "$to/$name.log"
        return 1
    fi
}

# left_out NAME WHY
left_out() {
    skipped=$((skipped + 1))
    echo "$1: skipped, $2"
}

# fresh NAME: a system in $to/NAME in which nothing has happened yet
fresh() {
    rm -rf "${to:?}/$1"
    mkdir -p "$to/$1" && tar -xpf "$to/$suite.tar" -C "$to/$1"
}

# What is in a system, without what apt and the systems themselves keep for later, and
# without what adduser leaves, which packages of Debian's call.
list_files() {
    (cd "$to/$1" && find . \( -path ./proc -o -path ./sys -o -path ./dev -o -path ./tmp \
        -o -path ./srv -o -path ./var/lib/apt -o -path ./var/lib/dpkg \
        -o -path ./var/cache -o -path ./var/log -o -path ./root -o -path ./run \
        -o -path ./etc/gshadow- -o -path ./etc/passwd- -o -path ./etc/group- \
        -o -path ./etc/resolv.conf \) -prune -o \( ! -type d -o -name '*tranche*' \) -print |
        LC_ALL=C sort)
}

apt='export DEBIAN_FRONTEND=noninteractive
    install() { apt-get -q -y -o Dpkg::Use-Pty=0 --no-install-recommends install "$@"; }
    apt-get -q update'

# ---- Debian packages

# build SYSTEM FOLDER SETTINGS: the packages, in FOLDER of the system
build() {
    mkdir -p "$to/$1$2"
    tar -xzf "$archive" -C "$to/$1$2" || return 1
    roots_run "$to/$1" sh -euc "$apt
        install dpkg-dev fakeroot build-essential
        cd $2/tranche-*
        apt-get -q -y --no-install-recommends build-dep ./
        $3
        dpkg-buildpackage -us -uc -b"
}

# cmp_packages FOLDER: the packages there are those of the first build, byte by byte.
cmp_packages() {
    count=0
    for file in "$to/$suite-build"/srv/a/*.deb; do
        cmp "$file" "$1/${file##*/}" || return 1
        sha256sum "$file"
        count=$((count + 1))
    done
    [ "$count" -ge 5 ] # with symbols for debuggers
}

has_no_tag() {
    roots_run "$to/$suite-build" sh -euc "$apt
        install lintian
        cd /srv/a
        lintian --allow-root --fail-on error,warning --show-overrides *.changes"
}

# old_version FOLDER: the packages as an older version, to be upgraded from: no other
# version has been published yet.
old_version() {
    for file in "$1"/*.deb; do
        case $file in *dbgsym*) continue ;; esac
        rm -rf "$1/unpacked"
        dpkg-deb -R "$file" "$1/unpacked" &&
            sed -i -e 's/^Version: .*/Version: 0.0.9/' \
                -e 's/\(libtranche0.1 (>\{0,1\}= \)[^)]*/\10.0.9/' "$1/unpacked/DEBIAN/control" &&
            dpkg-deb --root-owner-group -b "$1/unpacked" "$1/old" || return 1
    done
}

# In a system of its own: installation, first run as a user, upgrade, removal.
install_packages() {
    system=$suite-packages
    fresh "$system" || return 1
    # What only the trials need is there before, and stays; so is adduser, which packages
    # of Debian's bring and apt does not take away with them.
    roots_run "$to/$system" sh -euc "$apt
        install adduser man-db gcc libc6-dev pkg-config python3" || return 1
    list_files "$system" >"$to/$system.before"
    mkdir -p "$to/$system/srv/new/old"
    cp "$to/$suite-build"/srv/a/*.deb "$to/$system/srv/new/" || return 1
    cp -R debian/tests "$to/$system/srv/tests"
    cp tools/check_site.py "$to/$system/srv/"
    old_version "$to/$system/srv/new" || return 1
    cat >"$to/$system/srv/try.sh" <<'TRY'
work=$(mktemp -d)
chmod 777 "$work"
as_user() {
    setpriv --reuid 65534 --regid 65534 --clear-groups \
        env HOME="$work" AUTOPKGTEST_TMP="$(setpriv --reuid 65534 --regid 65534 \
            --clear-groups mktemp -d "$work/XXXXXX")" "$@"
}
install $(ls /srv/new/old/*.deb | grep -v -e -dev_)
dpkg-query -W tranche | grep 0.0.9
as_user sh /srv/tests/program
install $(ls /srv/new/*.deb | grep -v -e -dev_ -e dbgsym)
dpkg-query -W tranche libtranche0.1 tranche-doc
! dpkg-query -W tranche libtranche0.1 tranche-doc | grep 0.0.9
as_user sh /srv/tests/program
python3 -B /srv/check_site.py /usr/share/doc/tranche/html
install $(ls /srv/new/*.deb | grep -e -dev_)
as_user sh /srv/tests/library
apt-get -q -y purge --autoremove -o APT::AutoRemove::RecommendsImportant=false \
    -o APT::AutoRemove::SuggestsImportant=false \
    tranche libtranche0.1 libtranche-dev tranche-doc
rm -rf "$work"
TRY
    roots_run "$to/$system" sh -euc "$apt
        . /srv/try.sh" || return 1
    nothing_left "$system"
}

nothing_left() {
    list_files "$1" >"$to/$1.after"
    diff "$to/$1.before" "$to/$1.after"
}

# ---- from source

install_source() {
    system=$suite-source
    fresh "$system" || return 1
    mkdir -p "$to/$system/srv/a"
    tar -xzf "$archive" -C "$to/$system/srv/a" || return 1
    cp -R debian/tests "$to/$system/srv/tests"
    roots_run "$to/$system" sh -euc "$apt
        install make
        cd /srv/a/tranche-*
        tools/setup.sh
        make"  || return 1
    list_files "$system" >"$to/$system.before"
    roots_run "$to/$system" sh -euc "cd /srv/a/tranche-*
        make install
        ldconfig
        export AUTOPKGTEST_TMP=\$(mktemp -d)
        sed s,/usr/share/bash,/usr/local/share/bash, /srv/tests/program | sh
        make uninstall" || return 1
    nothing_left "$system"
}

# ---- an image, and a wheel

# steps N: the RUN steps behind FROM number N of the Containerfile
steps() {
    awk -v wanted="$1" '
        /^FROM / { stage++ }
        /^RUN / { sub(/^RUN /, ""); on = 1 }
        on && stage == wanted { print }
        on && !/\\$/ { on = 0 }' Containerfile
}

# What a builder of images would do, in systems of the suite that the Containerfile names.
build_image() {
    fresh "$suite-image" || return 1
    mkdir -p "$to/$suite-image/src/tranche" "$to/$suite-image/packages"
    tar -xzf "$archive" --strip-components=1 -C "$to/$suite-image/src/tranche" || return 1
    steps 1 >"$to/$suite-image/srv/steps.sh"
    roots_run "$to/$suite-image" sh -euxc 'cd /src/tranche && . /srv/steps.sh' || return 1
    mv "$to/$suite-image"/src/*.deb "$to/$suite-image/packages/" || return 1
    # They were built in another folder than those of this system's packages.
    if [ "$built" = "$suite" ]; then
        cmp_packages "$to/$suite-image/packages" || return 1
    fi
    mv "$to/$suite-image/packages" "$to/$suite-image.packages"
    fresh "$suite-image" || return 1
    mv "$to/$suite-image.packages" "$to/$suite-image/packages"
    steps 2 >"$to/$suite-image/srv/steps.sh"
    cp debian/tests/program "$to/$suite-image/srv/program"
    roots_run "$to/$suite-image" sh -euxc '. /srv/steps.sh && sh /srv/program' &&
        python3 tools/sbom.py root "$to/$suite-image" "$to/tranche-image.spdx.json"
}

install_wheel() {
    system=$suite-wheel
    fresh "$system" || return 1
    cp python/dist/tranche-*.whl "$to/$system/srv/"
    roots_run "$to/$system" sh -euc "$apt
        install python3-venv
        python3 -m venv /srv/env
        /srv/env/bin/pip install --no-index /srv/tranche-*.whl
        cd /tmp
        i=0
        while [ \$i -lt 400 ]; do
            echo \"Line \$i of a text that a small model learns in no time.\"
            i=\$((i + 1))
        done >text.txt
        /srv/env/bin/tranche init text.txt --out run.json
        /srv/env/bin/tranche train run.json --steps 3
        /srv/env/bin/python -c 'import tranche; print(tranche.__name__)'
        /srv/env/bin/pip uninstall -y tranche
        [ -z \"\$(find /srv/env -iname '*tranche*')\" ]"
}

# ---- all

try_suite() {
    for way in $ways; do
        case $way in
        packages)
            if ! fresh "$suite-build" ||
                ! attempt "$suite-build" build "$suite-build" /srv/a :; then
                continue
            fi
            built=$suite
            if [ -z "${ONCE:-}" ]; then
                attempt "$suite-build-again" build "$suite-build" /srv/elsewhere/b \
                    'export TZ=Asia/Tokyo LC_ALL=C.UTF-8 LANG=C.UTF-8
                    umask 027' &&
                    attempt "$suite-same-bytes" cmp_packages \
                        "$to/$suite-build/srv/elsewhere/b"
            fi
            attempt "$suite-lintian" has_no_tag
            attempt "$suite-packages" install_packages
            ;;
        source) attempt "$suite-source" install_source ;;
        image)
            if grep -q "^FROM debian:$suite" Containerfile; then
                attempt "$suite-image" build_image
            fi
            ;;
        wheel)
            if ls python/dist/tranche-*.whl >/dev/null 2>&1; then
                attempt "$suite-wheel" install_wheel
            else
                left_out "$suite-wheel" "make wheel has left none"
            fi
            ;;
        esac
    done
}

lacking=$(roots_lack)
for suite; do
    if [ -n "$lacking" ]; then
        left_out "$suite" "$lacking"
    elif [ -s "$to/$suite.tar" ] ||
        roots_make "$suite" "$to/$suite.tar" ca-certificates; then
        archive=$(tools/dist.sh "$to")
        try_suite
    else
        failed=$((failed + 1))
        echo "$suite: no system could be made"
    fi
done
line="$passed passed, $failed failed"
[ "$skipped" -eq 0 ] || line="$line, $skipped skipped"
echo "$line"
[ "$failed" -eq 0 ]
