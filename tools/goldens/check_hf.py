"""Whether Hugging Face's transformers and Tranche agree on a language model, by hand:

    python tools/goldens/check_hf.py FOLDER [--program build/tranche] [--library PATH]
        [--length N]

FOLDER is a checkpoint, a run's out folder or any Hugging Face folder. Checked:
from_pretrained finds every tensor and no other, in the folder and in what Tranche makes
of it; the loss and the gradient's norm that
Tranche logs for a step over random tokens, against float64; what Tranche saves after a
step at rate 0, bit by bit, and once more in bf16 and in shards. With a shared library (cmake -DBUILD_SHARED_LIBS=ON) also
the logits of the last position.
"""
import argparse
import ctypes
import json
import math
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM
from transformers.utils import logging

SAMPLES = 3
DROPOUT = ("resid_pdrop", "embd_pdrop", "attn_pdrop", "attention_dropout")
failures = 0


def check(what, far, limit):
    global failures
    ok = far <= limit
    failures += not ok
    print(f"{'ok  ' if ok else 'FAIL'} {what}: {far:.2e} (at most {limit:g})")


def locate(path):
    path = pathlib.Path(path)
    latest = path / "checkpoints" / "latest"
    return (path if (path / "config.json").exists() else latest).resolve()


def load(folder, dtype=torch.float32):
    """In the type given, or in that which the folder says ("auto"), as float64."""
    model, info = AutoModelForCausalLM.from_pretrained(
        folder, dtype=dtype, output_loading_info=True)
    wrong = [f"{kind}: {sorted(info[kind])}"
             for kind in ("missing_keys", "unexpected_keys", "mismatched_keys")
             if info.get(kind)]
    check(f"from_pretrained loads every tensor {' '.join(wrong)}".strip(), len(wrong), 0)
    return model.double().eval()


def train_once(program, folder, ids, length, work, checkpoint):
    """One step of Tranche over the ids at rate 0, without dropout."""
    model = work / "model"
    model.mkdir()
    config = json.loads((folder / "config.json").read_text())
    config.update({key: 0.0 for key in DROPOUT if key in config})
    (model / "config.json").write_text(json.dumps(config))
    for weights in folder.glob("model*.safetensors*"):
        (model / weights.name).symlink_to(weights)
    ids.astype("<u2").tofile(work / "tokens.u16")
    (work / "run.json").write_text(json.dumps({
        "model": str(model), "steps": 1, "out": str(work / "out"),
        "data": {"format": "tokens", "train": [str(work / "tokens.u16")],
                 "max_length": length, "order": "sequential"},
        "checkpoint": checkpoint, "train_batch_size": SAMPLES, "train_micro_batch_size_per_gpu": 2,
        "optimizer": {"type": "AdamW", "params": {"lr": 0.0}}}))
    subprocess.run([program, "train", str(work / "run.json")], check=True,
                   stdout=subprocess.DEVNULL)
    lines = (work / "out" / "metrics.jsonl").read_text().splitlines()
    return json.loads(lines[0]), work / "out" / "checkpoints" / "latest"


def bytes_of(model):
    """In bf16."""
    return 2 * sum(p.numel() for p in model.parameters())


def check_step(model, program, folder, ids, length):
    x = torch.from_numpy(ids[:-1].reshape(SAMPLES, length))
    y = torch.from_numpy(ids[1:].reshape(SAMPLES, length))
    logits = model(input_ids=x, use_cache=False).logits
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten())
    loss.backward()
    norm = math.sqrt(sum(float(p.grad.pow(2).sum()) for p in model.parameters()))
    with tempfile.TemporaryDirectory() as temporary:
        logged, saved = train_once(program, folder, ids, length,
                                   pathlib.Path(temporary), {})
        weights = load_file(saved / "model.safetensors")
        again = load(saved)
    with tempfile.TemporaryDirectory() as temporary:
        _, saved = train_once(
            program, folder, ids, length, pathlib.Path(temporary),
            {"dtype": "bf16", "shard_bytes": bytes_of(model) // 5})
        check("files of weights in bf16 lacking",
              max(0, 2 - len(list(saved.glob("model-*-of-*.safetensors")))), 0)
        rounded = load(saved, "auto")
    check("loss", abs(logged["loss"] - float(loss.detach())), 1e-5)
    check("gradient norm, relative", abs(logged["grad_norm"] / norm - 1), 1e-4)
    differing = [n for n, p in model.named_parameters()
                 if n not in weights or not torch.equal(weights[n].double(), p)]
    check("tensors that a step at rate 0 changed", len(differing), 0)
    differing = [n for n, p in rounded.named_parameters()
                 if not torch.equal(p, weights[n].bfloat16().double())]
    check("tensors that are not the weights in bf16", len(differing), 0)
    with torch.no_grad():
        differs = not torch.equal(again(input_ids=x, use_cache=False).logits, logits)
    check("logits of what from_pretrained loads then", float(differs), 0)


def check_logits(model, library, folder, ids, length):
    lib = ctypes.CDLL(library)
    sampler, logits = ctypes.c_void_p(), ctypes.POINTER(ctypes.c_float)()
    status = lib.tr_sampler_create(str(folder).encode(), ctypes.c_int64(length), 0,
                                   ctypes.byref(sampler), None)
    tokens = np.ascontiguousarray(ids[:length], np.int32)
    if status == 0:
        pointer = tokens.ctypes.data_as(ctypes.POINTER(ctypes.c_int32))
        status = lib.tr_sampler_logits(sampler, pointer, ctypes.c_int64(length),
                                       ctypes.byref(logits), None)
    if status != 0:
        sys.exit(f"the library refuses {folder}: status {status}")
    got = np.ctypeslib.as_array(logits, (model.config.vocab_size,))
    with torch.no_grad():
        x = torch.from_numpy(ids[:length].copy())[None]
        want = model(input_ids=x, use_cache=False).logits[0, -1].numpy()
    check("logits of the last position", float(np.abs(got - want).max()), 1e-4)
    lib.tr_sampler_destroy(sampler)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("folder")
    options.add_argument("--program", default="build/tranche")
    options.add_argument("--library")
    options.add_argument("--length", type=int, default=64,
                         help="tokens of a sample (64, or the model's positions)")
    options.add_argument("--seed", type=int, default=1)
    args = options.parse_args()

    logging.disable_progress_bar()
    folder = locate(args.folder)
    model = load(folder)
    length = min(model.config.max_position_embeddings, args.length)
    rng = np.random.default_rng(args.seed)
    ids = rng.integers(0, min(model.config.vocab_size, 65536), SAMPLES * length + 1)
    check_step(model, args.program, folder, ids, length)
    if args.library:
        check_logits(model, args.library, folder, ids, length)
    else:
        print("no --library: logits not compared")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
