#!/bin/sh
# with.sh: shows that an optimizer is one folder. In a copy of the sources it adds an
# optimizer: Lion once more, in a folder of its own, with another name, number and type.
# It builds the copy, runs the tests that try every optimizer, trains a small model by
# each of the two, and compares the bits of the weights.
# WITH: the folder of the copy, kept; by default a temporary one.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
copy=${WITH:-$(mktemp -d)}
[ -n "${WITH:-}" ] || trap 'rm -rf "$copy"' EXIT
mkdir -p "$copy"
(cd "$root" && git ls-files -co --exclude-standard -z | tar -c --null -T - -f -) |
    tar -x -C "$copy"
cd "$copy"

mkdir -p src/ops/optimizers/twin
for file in src/ops/optimizers/lion/*; do
    name=$(basename "$file" | sed 's/^lion/twin/')
    sed 's/lion/twin/g; s/LION/TWIN/g; s/"Lion"/"Twin"/; s/\.number = 3,/.number = 99,/' \
        "$file" > "src/ops/optimizers/twin/$name"
done

cmake --preset release > build.log
if ! cmake --build build --target tranche-program --target ops-optimizers \
    --target ops-update >> build.log 2>&1; then
    tail -n 40 build.log >&2
    exit 1
fi
ctest --test-dir build -R '^ops/(optimizers|update)$' --output-on-failure

for type in Lion Twin; do
    build/tranche train examples/classifier.json --set "out=\"out-$type\"" \
        --set "optimizer.type=\"$type\"" > "$type.log" 2>&1 || {
        tail -n 20 "$type.log" >&2
        exit 1
    }
done
weights=checkpoints/latest/model.safetensors
cmp "out-Lion/$weights" "out-Twin/$weights"
echo "one folder, and no other file, makes an optimizer: the weights are bit for bit Lion's"
