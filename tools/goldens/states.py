"""Writes tests/data/goldens/gpt2-states: twenty updates of a small GPT-2, in float32 on
the CPU, by optimizers whose states or updates are not Adam's. Needs torch 2.15,
transformers, safetensors, numpy and bitsandbytes 0.50:

    python tools/goldens/states.py

int8.json   losses by bitsandbytes' AdamW8bit; embeddings by its AdamW, as transformers'
            Trainer has it. Its kernel for CPUs finds codes by a table that has no room
            for values below 1e-5 of a block's largest; here they are the nearest, as in
            its other kernels
muon.json   losses by torch.optim.Muon on matrices, and by torch.optim.AdamW on the rest
f32.json    losses by torch.optim.AdamW, to see what the 8 bits change
"""
import copy
import json
import pathlib
import shutil

import bitsandbytes
import bitsandbytes.backends.cpu.ops
import numpy as np
import torch
import torch.nn.functional as F
from transformers import GPT2Config, GPT2LMHeadModel

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "goldens"
STEPS, BATCH, LENGTH, VOCABULARY = 20, 4, 16, 61
ADAMW = {"lr": 2e-3, "betas": [0.9, 0.999], "eps": 1e-8, "weight_decay": 0.1}

MUON = {"lr": 2e-2, "momentum": 0.95, "weight_decay": 0.1}


def make_model():
    torch.manual_seed(17)
    config = GPT2Config(vocab_size=VOCABULARY, n_positions=LENGTH, n_embd=64, n_layer=1,
                        n_head=4, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
                        bos_token_id=0, eos_token_id=0)
    config._attn_implementation = "eager"
    return GPT2LMHeadModel(config).eval()


def make_text():
    """Ids with something to learn: a walk with few branches."""
    rng = np.random.default_rng(17)
    follow = rng.integers(0, VOCABULARY, (VOCABULARY, 3))
    ids = np.empty(STEPS * BATCH * LENGTH + 1, np.int64)
    ids[0] = 1
    for i in range(1, len(ids)):
        ids[i] = follow[ids[i - 1], rng.integers(0, 3)]
    return ids


def split(model, chosen):
    """Parameters that are chosen by name, and the others."""
    named = list(model.named_parameters())
    return ([p for n, p in named if chosen(n, p)],
            [p for n, p in named if not chosen(n, p)])


def is_table(name, _):
    return ".wte." in name or ".wpe." in name


def adamw_arguments():
    return {**ADAMW, "betas": tuple(ADAMW["betas"])}


def int8(model):
    tables, others = split(model, is_table)
    return [bitsandbytes.optim.AdamW8bit(others, **adamw_arguments()),
            bitsandbytes.optim.AdamW(tables, **adamw_arguments())]


def quantize(values, code, absmax_out, out, block):
    """The nearest values of the map, of two as near the lower one."""
    blocks = values.reshape(-1, block)  # none of the tensors ends within a block
    absmax = blocks.abs().amax(1)
    scaled = (blocks * (1 / absmax.clamp(min=1e-38))[:, None]).clamp(-1, 1)
    nearest = torch.bucketize(scaled, (code[:-1] + code[1:]) / 2)
    out.copy_(nearest.reshape(values.shape))
    absmax_out.copy_(absmax)


bitsandbytes.backends.cpu.ops._quant_blockwise_fp32_direct = quantize


def f32(model):
    return [torch.optim.AdamW(model.parameters(), **adamw_arguments())]


def muon(model):
    matrices, others = split(model, lambda n, p: p.dim() == 2 and not is_table(n, p))
    return [torch.optim.Muon(matrices, **MUON),
            torch.optim.AdamW(others, **adamw_arguments())]


def losses(model, ids, make_optimizers):
    optimizers = make_optimizers(model)
    result = []
    for step in range(STEPS):
        at = step * BATCH * LENGTH
        x = torch.from_numpy(ids[at:at + BATCH * LENGTH]).reshape(BATCH, LENGTH)
        y = torch.from_numpy(ids[at + 1:at + BATCH * LENGTH + 1])
        model.zero_grad()
        loss = F.cross_entropy(model(input_ids=x).logits.reshape(-1, VOCABULARY), y)
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        result.append(float(loss.detach()))
    return result


def main():
    torch.set_num_threads(1)
    folder = OUT / "gpt2-states"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    model, ids = make_model(), make_text()
    model.save_pretrained(folder / "initial", safe_serialization=True)
    (folder / "initial" / "generation_config.json").unlink(missing_ok=True)
    ids.astype("<u2").tofile(folder / "tokens.u16")
    run = {"model": "initial",
           "data": {"format": "tokens", "train": ["tokens.u16"], "order": "sequential"},
           "steps": STEPS, "seed": 1, "train_batch_size": BATCH,
           "train_micro_batch_size_per_gpu": 2, "gradient_clipping": 0,
           "optimizer": {"type": "AdamW", "params": ADAMW}}
    (folder / "run.json").write_text(json.dumps(run, indent=1) + "\n")
    run["optimizer"] = {"type": "Muon", "params": {**ADAMW, "lr": MUON["lr"],
                                                   "adam_lr": ADAMW["lr"]}}
    (folder / "muon-run.json").write_text(json.dumps(run, indent=1) + "\n")
    for make in (f32, int8, muon):
        found = losses(copy.deepcopy(model), ids, make)
        (folder / f"{make.__name__}.json").write_text(json.dumps(found, indent=1) + "\n")
        print(make.__name__, found[0], found[-1])


main()
