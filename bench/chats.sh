#!/bin/sh
# chats.sh FOLDER [STEPS]: fine-tunes a model on conversations that it makes itself (a
# pirate names capitals), as docs/fine-tuning.md shows it: a sample as it is trained, the
# ledger of the plan, the losses, and what the model answers before and after. The
# validation conversations are about other countries. FOLDER is a Hugging Face folder of a
# model with a chat template, such as SmolLM2-135M-Instruct.
set -eu
cd "$(dirname "$0")/.."
. bench/common.sh
model=$(cd "${1:?usage: bench/chats.sh FOLDER [STEPS]}" && pwd)
steps=${2:-12}
question="What is the capital of Portugal?"

# talk COUNT SEED COUNTRY,CITY...: COUNT conversations of one to four questions.
talk() {
    count=$1 seed=$2
    shift 2
    printf '%s\n' "$@" | awk -F, -v count="$count" -v random="$seed" '
    function below(n) {
        random = (random * 16807) % 2147483647
        return random % n
    }
    function says(who, what) {
        return sprintf("{\"role\": \"%s\", \"content\": \"%s\"}", who, what)
    }
    BEGIN {
        form[1] = "What is the capital of %s?"
        form[2] = "Capital of %s?"
        form[3] = "I wonder which city is the capital of %s. Do you know it?"
    }
    { land[NR] = $1; city[NR] = $2 }
    END {
        while (count-- > 0) {
            for (turns = 1 + below(4); turns > 0; turns--) {
                i = 1 + below(NR)
                chat = chat says("user", sprintf(form[1 + below(3)], land[i])) ", " \
                    says("assistant", "Arr, that be " city[i] ", matey!") \
                    (turns > 1 ? ", " : "")
            }
            print "{\"messages\": [" chat "]}"
            chat = ""
        }
    }'
}

machine
cd "$work"
talk 200 1 France,Paris Spain,Madrid Italy,Rome Japan,Tokyo Egypt,Cairo Peru,Lima \
    Kenya,Nairobi Norway,Oslo Greece,Athens Cuba,Havana Iran,Tehran Chile,Santiago \
    >chats.jsonl
talk 30 2 Austria,Vienna Poland,Warsaw Russia,Moscow Iraq,Baghdad >held.jsonl
cat >run.json <<END
{"model": "$model",
 "data": {"format": "jsonl", "train": ["chats.jsonl"], "validation": ["held.jsonl"],
          "max_length": 512, "packing": true, "loss_on": "assistant"},
 "train_batch_size": 2, "steps": $steps, "evaluation": {"every": 4},
 "optimizer": {"type": "AdamW", "params": {"lr": 2e-5}},
 "out": "out"}
END
"$program" inspect run.json --samples 1 2>/dev/null
"$program" plan run.json 2>log | sed -n '/ledger/,/^$/p'
printf 'before: '
"$program" sample "$model" --chat --prompt "$question" --temperature 0 --tokens 30
"$program" train run.json 2>&1 | grep -E '^(data|done)'
echo 'step, loss, validation loss:'
awk '
    function member(name) {
        match($0, "\"" name "\": *[^,}]*")
        return substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 3)
    }
    /"loss":/ { loss[++steps] = member("loss") }
    /"validation_loss":/ { validation[steps] = member("validation_loss") }
    END {
        for (i = 1; i <= steps; i++)
            printf "%4d  %.4f%s\n", i, loss[i],
                (i in validation) ? sprintf("  %.4f", validation[i]) : ""
    }' out/metrics.jsonl
printf 'after: '
"$program" sample out --chat --prompt "$question" --temperature 0 --tokens 30
