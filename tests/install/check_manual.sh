#!/bin/sh
# check_manual.sh SHARE: groff finds nothing to warn of in the manual pages that the build
# has written, and none of them is without its sections. 77: groff is not installed.
set -eu
share=$1
command -v groff >/dev/null 2>&1 || {
    echo "groff is not installed: the manual pages are not read"
    exit 77
}
rc=0 pages=0
for page in "$share"/man/man1/* "$share"/man/man5/*; do
    pages=$((pages + 1))
    warnings=$(groff -K utf8 -T utf8 -mandoc -ww -z "$page" 2>&1)
    if [ -n "$warnings" ]; then
        echo "$page: $warnings"
        rc=1
    fi
    for section in NAME DESCRIPTION OPTIONS; do
        case $section:$page in
        DESCRIPTION:*/tranche-*.1 | OPTIONS:*.5) continue ;;
        esac
        grep -q "^\\.SH \"$section\"" "$page" || {
            echo "$page: there is no section $section"
            rc=1
        }
    done
done
[ "$pages" -gt 15 ] || {
    echo "$pages pages in $share"
    rc=1
}
[ "$rc" -eq 0 ] && echo "$pages pages, no warning"
exit "$rc"
