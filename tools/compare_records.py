#!/usr/bin/env python3
"""compare_records.py FOLDER [--count N] [--seed S] [--max-length L] [--program FILE]

Draws N records (1,000) of each kind of instruction data, and compares what Tranche makes
of them with what TRL's SFTTrainer does: which records are kept, input_ids, and labels
(TRL shifts them later; Tranche's label of a position is the token after it). FOLDER has
a tokenizer and a ChatML template. The kinds: texts; prompts with completions, and the
same with the loss on all; conversations; conversations with completions; conversations
with the loss on the assistant by {% generation %}; the same with tools, calls of them,
their results and reasoning; and the loss on the assistant by differences of prefixes,
which TRL does not have: there it gets a template with {% generation %} that marks the
same. At last the documents and the number of rows with packing. Ends with 1 where something differs. Needs trl.
"""
import argparse
import json
import logging
import os
import random
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PIECES = ["the", " of", " Weather", "\n", "  ", " 12.5", " naïve", "漢字", " 🙂", "\t",
          " <|im_end|>", "<|im_start|>", " don't", "!", "…", " x = y;", "é", " A", "\n\n"]
MARKED = """{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system
You are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>
' }}{% endif %}{{'<|im_start|>' + message['role'] + '
'}}{% if message['role'] == 'assistant' %}{% generation %}{{ message['content'] + '<|im_end|>' + '
' }}{% endgeneration %}{% else %}{{ message['content'] + '<|im_end|>' + '
'}}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant
' }}{% endif %}"""

TOOLS = """{% if tools %}{{ '<|im_start|>system
' + tools|tojson + '<|im_end|>
' }}{% endif %}{% for message in messages %}{{ '<|im_start|>' + message.role + '
' }}{% if message.role == 'assistant' %}{% generation %}{% if message.reasoning_content %}{{ '<think>' + message.reasoning_content + '</think>' }}{% endif %}{{ message.content or '' }}{% for call in message.tool_calls or [] %}{{ '<call>' + call.function.name + ' ' + call.function.arguments|tojson + '</call>' }}{% endfor %}{{ '<|im_end|>
' }}{% endgeneration %}{% else %}{{ message.content + '<|im_end|>
' }}{% endif %}{% endfor %}"""
TEMPLATES = {"chat assistant, marked": MARKED, "chat assistant, by prefixes": MARKED,
             "chat assistant, tools": TOOLS}


def text(r, most=30):
    return "".join(r.choice(PIECES) for _ in range(r.randint(1, most)))


def turns(r, first_system=True):
    out = []
    if first_system and r.random() < 0.4:
        out.append({"role": "system", "content": text(r)})
    for _ in range(r.randint(1, 3)):
        out.append({"role": "user", "content": text(r)})
        out.append({"role": "assistant", "content": text(r)})
    return out


def tool_turns(r):
    out = []
    for _ in range(r.randint(1, 2)):
        out.append({"role": "user", "content": text(r, 8)})
        answer = {"role": "assistant", "content": text(r, 8)}
        if r.random() < 0.5:
            answer["reasoning_content"] = text(r, 8)
        out.append(answer)
        if r.random() < 0.6:
            call = {"name": "weather", "arguments": {"city": text(r, 3), "days": r.randint(0, 9)}}
            answer["tool_calls"] = [{"type": "function", "function": call}]
            out.append({"role": "tool", "name": "weather", "content": text(r, 5)})
            out.append({"role": "assistant", "content": text(r, 8)})
    return out


def draw_tools(r):
    city = {"type": "string", "description": text(r, 3)}
    tool = {"name": "weather", "description": text(r, 5),
            "parameters": {"type": "object", "properties": {"city": city}}}
    return {"messages": tool_turns(r), "tools": [{"type": "function", "function": tool}]}


def draw(kind, r):
    if kind.endswith("tools"):
        return draw_tools(r)
    if kind == "text":
        return {"text": text(r, 60) + r.choice(["", "", "<|im_end|>"])}
    if kind in ("completion", "completion all"):
        return {"prompt": text(r), "completion": text(r) + r.choice(["", "<|im_end|>"])}
    if kind == "chat completion":
        messages = turns(r)
        return {"prompt": messages[:-1], "completion": messages[-1:]}
    return {"messages": turns(r)}


def by_trl(kind, records, folder, template, length, packing=False):
    import torch
    from datasets import Dataset
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM
    from trl import SFTConfig, SFTTrainer
    tokenizer = AutoTokenizer.from_pretrained(folder)
    if template:
        tokenizer.chat_template = template
    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=8, intermediate_size=8,
        num_hidden_layers=1, num_attention_heads=1))
    with tempfile.TemporaryDirectory() as out:
        settings = SFTConfig(output_dir=out, max_length=length, report_to=[], use_cpu=True,
                             packing=packing, max_steps=1,
                             assistant_only_loss=template is not None, bf16=False,
                             completion_only_loss=False if kind == "completion all" else None)
        trainer = SFTTrainer(model=model, args=settings, processing_class=tokenizer,
                             train_dataset=Dataset.from_list(records))
        rows = list(trainer.train_dataset)
    return rows if packing else [(row["input_ids"], row["labels"]) for row in rows]


def by_tranche(program, kind, records, folder, template, length, packing=False):
    loss = ("assistant" if "assistant" in kind else "all" if kind.endswith("all") else None)
    with tempfile.TemporaryDirectory() as out:
        with open(os.path.join(out, "data.jsonl"), "w", encoding="utf-8") as file:
            for record in records:
                file.write(json.dumps(record, ensure_ascii=random.random() < 0.5) + "\n")
        data = {"format": "jsonl", "train": [os.path.join(out, "data.jsonl")],
                "max_length": length, "order": "sequential", "packing": packing}
        if loss:
            data["loss_on"] = loss
        if template:
            data["chat_template"] = os.path.join(out, "marked.jinja")
            with open(data["chat_template"], "w", encoding="utf-8") as file:
                file.write(template)
        run = os.path.join(out, "run.json")
        with open(run, "w", encoding="utf-8") as file:
            json.dump({"model": folder, "data": data}, file)
        done = subprocess.run([program, "inspect", run, "--samples", str(len(records)),
                               "--json"], capture_output=True, check=False,
                              env={**os.environ, "XDG_CACHE_HOME": out})
    if done.returncode:
        sys.exit(f"{kind}: {done.stderr.decode()}")
    return json.loads(done.stdout)["samples"]


def same(wanted, got, length):
    ids, labels = wanted
    pad = [0] * (length - len(ids))
    shifted = labels[1:] + [-100] + [-100] * len(pad)
    return got["input_ids"] == ids + pad and got["labels"] == shifted


# ---- packed


def documents_of(ids, labels, lengths):
    """Those that have targets, with shifted labels: a document's last token has none."""
    out, at = [], 0
    for length in lengths:
        document = ids[at:at + length], labels[at:at + length - 1]
        if any(label != -100 for label in document[1]):
            out.append(document)
        at += length
    return out


def lengths_of(places):
    """Padding counts as documents of one token."""
    begins = [i for i, place in enumerate(places) if place == 0] + [len(places)]
    return [b - a for a, b in zip(begins, begins[1:])]


def compare_packed(kind, options):
    """Whether the documents are the same, in no more rows than TRL's. TRL packs 1,000 at a
    time."""
    r = random.Random(f"{options.seed}/packed {kind}")
    records = [draw(kind, r) for _ in range(min(options.count, 1000))]
    marks = TEMPLATES.get(kind)
    theirs = by_trl(kind, records, options.folder, marks, options.max_length, True)
    ours = by_tranche(options.program, kind, records, options.folder, marks,
                      options.max_length, True)
    wanted = [d for row in theirs
              for d in documents_of(row["input_ids"], row["labels"][1:] + [-100],
                                    row["seq_lengths"])]
    got = [d for row in ours
           for d in documents_of(row["input_ids"], row["labels"],
                                 lengths_of(row["position_ids"]))]
    same_documents = sorted(wanted) == sorted(got)
    print(f"packed, {kind}: {len(wanted)} documents in {len(theirs)} rows by TRL, "
          f"{len(got)} in {len(ours)} by Tranche, "
          f"{'the same' if same_documents else 'not the same'} documents", flush=True)
    return same_documents and len(ours) <= len(theirs)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--max-length", type=int, default=96)
    parser.add_argument("--program", default=os.path.join(ROOT, "build/tranche"))
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    failed = False
    for kind in ("text", "completion", "completion all", "chat", "chat completion",
                 "chat assistant, marked", "chat assistant, tools",
                 "chat assistant, by prefixes"):
        r = random.Random(f"{options.seed}/{kind}")
        records = [draw(kind, r) for _ in range(options.count)]
        marks = TEMPLATES.get(kind)
        wanted = by_trl(kind, records, options.folder, marks, options.max_length)
        got = by_tranche(options.program, kind, records, options.folder,
                         None if kind.endswith("prefixes") else marks, options.max_length)
        different = [i for i, (w, g) in enumerate(zip(wanted, got))
                     if not same(w, g, options.max_length)]
        failed = failed or bool(different) or len(wanted) != len(got)
        print(f"{kind}: {len(records)} records, {len(wanted)} kept by TRL, {len(got)} by "
              f"Tranche, {len(different)} differ")
        if different:
            i = different[0]
            print(f"    {i}: {wanted[i]}\n    {got[i]}")
    for kind in ("text", "completion", "chat assistant, marked"):
        failed = not compare_packed(kind, options) or failed
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
