#!/usr/bin/env python3
"""compare_packing.py FOLDER [--own] [--double] [--count N] [--length L] [--seed S]
                   [--program FILE]

Trains one step on N drawn records (60) that are packed into rows of L tokens (128), and
compares its loss and its gradients with those of transformers (f32, eager attention),
which reads every record apart, as a sequence of its own. The gradients are read from the
momentum of SGD, which they are after one step. FOLDER has a tokenizer. The models are
small and drawn: GPT-2 (learned positions), Llama, and Mistral with a sliding window;
with --own it is the model of FOLDER alone. With --double transformers computes in f64: of
a deep model its own f32 is off by more than the limits. Records are texts, and prompts with
completions, of which the completion counts. Prints by how much losses and gradients
differ, relative to the loss and to the gradients' norm. Ends with 1 where the loss
differs by more than 1e-6, or the gradients by more than 1e-5.

Needs torch, transformers and safetensors.
"""
import argparse
import json
import math
import os
import random
import subprocess
import sys
import tempfile

import torch
import transformers
from safetensors.torch import load_file

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LOSS_LIMIT, GRADIENT_LIMIT = 1e-6, 1e-5
WORDS = [" the", " of", " Weather", " 12.5", " naïve", " 漢字", " don't", "!", " A", "\n"]


# ---- models and records


def small_models(vocabulary, length):
    """Drawn with weights large enough that attention prefers some tokens to others."""
    layers = {"vocab_size": vocabulary, "hidden_size": 64, "intermediate_size": 96,
              "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
              "max_position_embeddings": length, "initializer_range": 0.1}
    yield "gpt2", transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=vocabulary, n_positions=length, n_embd=64, n_layer=2, n_head=4,
        resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, initializer_range=0.1))
    yield "llama", transformers.LlamaForCausalLM(transformers.LlamaConfig(**layers))
    yield "mistral, window of 20", transformers.MistralForCausalLM(
        transformers.MistralConfig(**layers, sliding_window=20))


def words(r, most):
    return "".join(r.choice(WORDS) for _ in range(r.randint(1, most)))


def draw(kind, r, length):
    if kind == "text":
        return {"text": "It" + words(r, length // 3)}
    return {"prompt": "Say" + words(r, length // 6), "completion": " so" + words(r, length // 6)}


def encode(tokenizer, record, length):
    """The ids of a record, and how many of them are its prompt."""
    def ids(text):
        return tokenizer(text)["input_ids"]
    if "text" in record:
        return (ids(record["text"]) + [tokenizer.eos_token_id])[:length], 0
    both = record["prompt"] + record["completion"]
    return (ids(both) + [tokenizer.eos_token_id])[:length], len(ids(record["prompt"]))


# ---- the two


def by_transformers(model, tokenizer, records, length):
    """The loss, and the gradients by their names."""
    encoded = [encode(tokenizer, record, length) for record in records]
    targets = sum(len(ids) - max(prompt, 1) for ids, prompt in encoded)
    total = 0.0
    model.zero_grad()
    for ids, prompt in encoded:
        first = max(prompt, 1)
        logits = model(input_ids=torch.tensor([ids]), use_cache=False).logits[0]
        losses = torch.nn.functional.cross_entropy(
            logits[first - 1:-1], torch.tensor(ids[first:]), reduction="none")
        (losses.sum() / targets).backward()
        total += losses.double().sum().item()
    return total / targets, {n: p.grad for n, p in model.named_parameters()}


def by_tranche(program, folder, tokenizer, records, length, work):
    with open(os.path.join(work, "records.jsonl"), "w", encoding="utf-8") as file:
        file.writelines(json.dumps(record) + "\n" for record in records)
    out = os.path.join(work, "out")
    run = {"model": folder, "steps": 1, "gradient_clipping": 0, "out": out,
           "data": {"format": "jsonl", "train": [os.path.join(work, "records.jsonl")],
                    "tokenizer": tokenizer, "max_length": length, "packing": True},
           "train_batch_size": len(records), "train_micro_batch_size_per_gpu": 2,
           "optimizer": {"type": "SGD", "params": {"lr": 1e-3, "momentum": 0.9}}}
    with open(os.path.join(work, "run.json"), "w", encoding="utf-8") as file:
        json.dump(run, file)
    done = subprocess.run([program, "train", os.path.join(work, "run.json")],
                          capture_output=True, text=True, check=False,
                          env={**os.environ, "XDG_CACHE_HOME": work})
    if done.returncode:
        sys.exit(done.stderr)
    rows = next(line for line in done.stderr.splitlines() if "packed into" in line)
    with open(os.path.join(out, "metrics.jsonl"), encoding="utf-8") as file:
        loss = json.loads(file.readline())["loss"]
    state = load_file(os.path.join(out, "checkpoints", "latest", "optimizer.safetensors"))
    ending = ".momentum_buffer"
    return loss, {name.removesuffix(ending): tensor for name, tensor in state.items()
                  if name.endswith(ending)}, rows


# ---- comparison


def distance(wanted, got):
    """Of all gradients, relative to their norm."""
    off = whole = 0.0
    for name, gradient in wanted.items():
        other = got.get(name, got.get(name.removeprefix("transformer.")))
        if other is None:
            sys.exit(f"Tranche has no gradient of {name}: it has {sorted(got)}")
        off += (gradient.double() - other.double()).square().sum().item()
        whole += gradient.double().square().sum().item()
    return math.sqrt(off / whole)


def compare(options, name, model, kind):
    """Whether losses and gradients are the same."""
    r = random.Random(f"{options.seed}/{kind}")
    records = [draw(kind, r, options.length) for _ in range(options.count)]
    tokenizer = transformers.AutoTokenizer.from_pretrained(options.folder)
    with tempfile.TemporaryDirectory() as work:
        folder = os.path.join(work, "model")
        model.float().save_pretrained(folder)
        loss, gradients, rows = by_tranche(options.program, folder, options.folder, records,
                                           options.length, work)
    if options.double:
        model = model.double()
    wanted, apart = by_transformers(model, tokenizer, records, options.length)
    off, far = abs(loss / wanted - 1), distance(apart, gradients)
    right = off <= LOSS_LIMIT and far <= GRADIENT_LIMIT
    print(f"{'ok ' if right else 'BAD'} {name}, {kind}: loss {wanted:.7f}, off by {off:.2e}; "
          f"gradients off by {far:.2e} of their norm ({rows.split(': ')[-1]})", flush=True)
    return right


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--own", action="store_true")
    parser.add_argument("--double", action="store_true")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--program", default=os.path.join(ROOT, "build/tranche"))
    options = parser.parse_args()
    options.folder = os.path.abspath(options.folder)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.manual_seed(options.seed)
    tokenizer = transformers.AutoTokenizer.from_pretrained(options.folder)
    models = [(os.path.basename(options.folder), transformers.AutoModelForCausalLM
               .from_pretrained(options.folder, dtype=torch.float32))
              ] if options.own else small_models(len(tokenizer), options.length)
    right = True
    for name, model in models:
        model.set_attn_implementation("eager")
        model.eval()
        for kind in ("text", "completion"):
            right = compare(options, name, model, kind) and right
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
