#!/bin/sh
# mypy, strict, finds nothing in the package and in what makes its declarations; where mypy
# is not installed this is left out. check_types.sh PYTHON PACKAGES SOURCE_DIR
set -eu
python=$1 packages=$2 source=$3
mypy="$python -m mypy"
if ! "$python" -c 'import mypy' 2>/dev/null; then
    mypy=mypy
    command -v mypy >/dev/null 2>&1 || {
        echo "mypy is not installed: types are not checked"
        exit 77
    }
fi
cache=$(mktemp -d)
trap 'rm -rf "$cache"' EXIT INT TERM
mypy="$mypy --config-file $source/pyproject.toml --cache-dir $cache"
MYPYPATH=$packages $mypy -p tranche
$mypy "$source/tools/declarations.py" "$source/tools/wheel_licences.py"
