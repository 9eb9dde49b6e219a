#!/bin/sh
# check_first_contact.sh: bench/first_contact.sh on the stand-in for a GPU. All stages are
# done, though one fails and one runs out of time; who ends it is told what is known.
set -eu
cd "$(dirname "$0")/../.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
unset TRANCHE_PEER_PYTHON
export TRANCHE_BENCH_DEVICE=stand-in TRANCHE_CONTACT_LOGS="$folder/logs"
export TRANCHE_CONTACT_OPS="relu embedding" TRANCHE_CONTACT_TESTS="head none-such"
export TRANCHE_SANITIZER=false

# said PATTERN: in what was printed
said() {
    grep -q "$1" "$folder/said" || {
        cat "$folder/said"
        echo "check_first_contact: nothing printed is like \"$1\"" >&2
        exit 1
    }
}

result=0
bench/first_contact.sh >"$folder/said" 2>&1 || result=$?
[ "$result" -eq 1 ]
said '^op relu: passed'
said '^test head: passed'
said '^test none-such: FAILED'
said '^tests: FAILED'
for stage in open conformance machine steps kernels attention gpt2 gpt2_torch kernels_xl xl xl_torch \
    kernels_llama llama llama_torch lora lora_torch cuts offload; do
    said "^$stage: passed"
done
said '^memcheck: FAILED'
said '^failed: test none-such'
said '^| linear_backward_weight  *|  *4 |'
said '^attention of llama, "execution.attention": "auto"'
said '^| block  *| backward  *| attention_backward[.]'
said '^| optimizer on the host over all on the device  *|  *[0-9]'
[ "$(du -sk "$folder/logs" | cut -f1)" -lt 1000 ]

result=0
TRANCHE_CONTACT_SECONDS=1 TRANCHE_CONTACT_TESTS=train \
    bench/first_contact.sh tests open >"$folder/said" 2>&1 || result=$?
[ "$result" -eq 1 ]
said '^tests: OUT OF TIME'
said '^open: passed'

rm -rf "$folder/logs"
bench/first_contact.sh open conformance offload >"$folder/said" 2>&1 &
script=$!
for _ in $(seq 300); do
    ! grep -q '^== offload' "$folder/said" || break
    sleep 0.1
done
kill -TERM "$script"
result=0
wait "$script" || result=$?
[ "$result" -eq 143 ]
said '^conformance: passed'
said '^offload: ended from outside'
said '^== what is known'
