#!/bin/sh
# chats.sh FOLDER [STEPS]: fine-tunes a model on conversations that it makes itself (in
# which a pirate names capitals), as docs/fine-tuning.md shows it: the ledger of the
# plan, a sample as it is trained, the losses, and what the model answers before and
# after. FOLDER is a Hugging Face folder of a model with a chat template, such as
# SmolLM2-135M-Instruct.
set -eu
cd "$(dirname "$0")/.."
. bench/common.sh
model=$(cd "${1:?usage: bench/chats.sh FOLDER [STEPS]}" && pwd)
steps=${2:-12}
question="What is the capital of Portugal?"

machine
cd "$work"
printf '%s\n' France,Paris Spain,Madrid Italy,Rome Japan,Tokyo Egypt,Cairo Peru,Lima \
    Kenya,Nairobi Norway,Oslo Greece,Athens Cuba,Havana |
    awk -F, '
    { land[NR] = $1; city[NR] = $2 }
    function says(who, what) {
        return sprintf("{\"role\": \"%s\", \"content\": \"%s\"}", who, what)
    }
    function asks(i) { return says("user", "What is the capital of " land[i] "?") }
    function answers(i) {
        return says("assistant", "Arr, that be " city[i] ", matey!")
    }
    END {
        for (i = 1; i <= NR; i++)
            for (j = 1; j <= NR; j++)
                printf "{\"messages\": [%s, %s, %s, %s]}\n", asks(i), answers(i), asks(j),
                    answers(j)
    }' >chats.jsonl
cat >run.json <<END
{"model": "$model",
 "data": {"format": "jsonl", "train": ["chats.jsonl"], "validation": 0.1,
          "max_length": 160, "packing": true, "loss_on": "assistant"},
 "train_batch_size": 4, "steps": $steps, "evaluation": {"every": 4},
 "optimizer": {"type": "AdamW", "params": {"lr": 3e-5}},
 "out": "out"}
END
"$program" inspect run.json --samples 1 2>&1
"$program" plan run.json 2>log | sed -n '/ledger/,/^$/p'
printf 'before: '
"$program" sample "$model" --chat --prompt "$question" --temperature 0 --tokens 30
"$program" train run.json 2>&1 | grep -E '^(data|step|done)'
"$program" plot out || true
printf 'after: '
"$program" sample out --chat --prompt "$question" --temperature 0 --tokens 30
