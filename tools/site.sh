#!/bin/sh
# site.sh [OUT]: builds the site of docs/ (build/site), which is read from its files, without
# a server. A link or an anchor that leads nowhere is an error. 77: Sphinx or MyST is not
# installed (PyPI: sphinx, myst-parser, furo; Debian: python3-sphinx, python3-myst-parser,
# furo).
#
#   SPHINX=...  the command; sphinx-build
#   BUILD=...   the build whose program and library say what the pages of tables hold; build
set -eu
cd "$(dirname "$0")/.."
sphinx=${SPHINX:-sphinx-build}
build=${BUILD:-build}
out=${1:-build/site}
command -v "$sphinx" >/dev/null 2>&1 || {
    echo "site: $sphinx is not installed: the site is not built"
    exit 77
}
# What runs it has the modules that it finds.
interpreter=$(sed -n '1s/^#! *//p' "$(command -v "$sphinx")")
if ! $interpreter -c 'import myst_parser' 2>/dev/null; then
    echo "site: MyST is not installed: the site is not built"
    exit 77
fi
python3 tools/site_pages.py "$build" build/site-pages
rm -rf "$out"
"$sphinx" -q -W --keep-going -b html -d build/site-cache -c docs/site . "$out"
cp "$out/README.html" "$out/index.html"
rm -rf "$out/.buildinfo" "$out/_sources"
python3 tools/check_site.py "$out"
