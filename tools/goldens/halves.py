#!/usr/bin/env python3
"""Writes tests/data/halves: what PyTorch makes of a run in bf16 and in fp16, and in
float64 for comparison. Needs torch, transformers, safetensors and numpy:

    python3 tools/goldens/halves.py [NAME ...]

Of each format there are two runs, whose weights and sums of gradients are float32:

    pure      a copy of the model in 16 bits computes; the gradient of each micro-batch,
              in 16 bits, is added to float32 sums (as DeepSpeed's bf16 and fp16 do)
    autocast  torch.autocast: products in 16 bits, norms, softmax and loss in float32

One more, "summed", is the pure run with sums in 16 bits. The script prints how far each
ends from float64, by share of the distance moved, over all tensors.
"""
import copy
import json
import pathlib
import shutil
import sys

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from transformers.utils import logging

import make
import resnet
import rules

OUT = make.OUT.parent / "halves"
STEPS, SAMPLES = 4, 256
LOSS_SCALE = 1024  # of fp16, a constant
OPTIMIZER = {"type": "SGD", "params": {"lr": 0.2, "momentum": 0.9}}
FORMATS = {"bf16": torch.bfloat16, "fp16": torch.float16}


class Run:
    """A model's float32 (or float64) weights and the copy that computes."""

    def __init__(self, model, dtype, kind, optimizer):
        self.kind, self.dtype = kind, dtype
        self.master = copy.deepcopy(model)
        if dtype == torch.float64:
            self.master.double()
        pure = kind in ("pure", "summed")
        self.compute = copy.deepcopy(model).to(dtype) if pure else self.master
        self.scale = LOSS_SCALE if dtype == torch.float16 else 1
        self.optimizer = torch.optim.SGD(self.master.parameters(),
                                         **optimizer["params"])

    def loss(self, logits_of, x, y):
        automatic = self.kind == "autocast"
        with torch.autocast("cpu", dtype=self.dtype if automatic else torch.bfloat16,
                            enabled=automatic):
            logits = logits_of(self.compute, x)
        if logits.dtype != torch.float64:
            logits = logits.float()
        return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), y.reshape(-1),
                               ignore_index=rules.NO_TARGET, reduction="sum")

    def accumulate(self):
        """Adds what one micro-batch left in the copy."""
        if self.kind != "pure":
            return
        for p, q in zip(self.master.parameters(), self.compute.parameters()):
            p.grad = q.grad.float() if p.grad is None else p.grad + q.grad.float()
            q.grad = None

    def update(self, count):
        for p, q in zip(self.master.parameters(), self.compute.parameters()):
            if self.kind == "summed":
                p.grad, q.grad = q.grad.float(), None
            p.grad /= self.scale * count
        self.optimizer.step()
        self.optimizer.zero_grad()
        with torch.no_grad():
            for p, q in zip(self.master.parameters(), self.compute.parameters()):
                q.copy_(p)


def train(run, logits_of, samples):
    wide = run.dtype == torch.float64
    count = sum(int((y != rules.NO_TARGET).sum()) for _, y in samples)
    for _ in range(STEPS):
        for x, y in samples:
            if x.is_floating_point():
                x = x.to(run.dtype if run.kind in ("pure", "summed") or wide else x.dtype)
            # The division by the count comes last: no gradient is smaller for it.
            (run.loss(logits_of, x, y) * run.scale).backward()
            run.accumulate()
        run.update(count)
    return dict(run.master.named_parameters())


def distance(a, b):
    return float(sum((x.detach().double() - b[n].detach().double()).pow(2).sum()
                     for n, x in a.items()).sqrt())


def write(folder, model, logits_of, samples, optimizer=OPTIMIZER):
    start = dict(model.named_parameters())
    ends = {"f64": train(Run(model, torch.float64, "", optimizer), logits_of, samples)}
    for name, dtype in FORMATS.items():
        for kind in ("pure", "autocast", "summed"):
            ends[f"{name}.{kind}"] = train(Run(model, dtype, kind, optimizer), logits_of,
                                           samples)
    moved = distance(start, ends["f64"])
    for name, end in ends.items():
        print(f"{folder.name} {name}: {distance(ends['f64'], end) / moved:.2e}")
    save_file({f"{end}/{name}": t.detach().float().contiguous()
               for end, tensors in ends.items() if not end.endswith("summed")
               for name, t in tensors.items()}, folder / "ends.safetensors")


def write_run(folder, data, optimizer=OPTIMIZER):
    make.write_json(folder / "run.json", {
        "model": "initial", "data": {**data, "order": "sequential"}, "steps": STEPS,
        "seed": 1, "train_batch_size": SAMPLES, "train_micro_batch_size_per_gpu": 1,
        "gradient_clipping": 0, "optimizer": optimizer, "out": "unused"})


def fresh(name):
    folder = OUT / name
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "initial").mkdir(parents=True)
    return folder


def make_gpt2():
    shape = dict(n_layer=1, n_embd=24, n_head=3, n_positions=12, vocab_size=37)
    make_language("gpt2", make.gpt2_model(21, **shape))


def make_qwen3():
    shape = dict(num_hidden_layers=1, hidden_size=24, intermediate_size=32, head_dim=8,
                 num_attention_heads=3, num_key_value_heads=1, vocab_size=37,
                 max_position_embeddings=12)
    make_language("qwen3", make.llama_model(24, "Qwen3", **shape))


def make_language(name, model):
    folder = fresh(name)
    model.save_pretrained(folder / "initial", safe_serialization=True)
    (folder / "initial" / "generation_config.json").unlink(missing_ok=True)
    n, words = model.config.max_position_embeddings, model.config.vocab_size
    ids = make.gpt2_text(np.random.default_rng(21), words, SAMPLES * n + 1)
    ids.astype("<u2").tofile(folder / "tokens.u16")
    write_run(folder, {"format": "tokens", "train": ["tokens.u16"]})
    samples = [(torch.from_numpy(ids[i * n:i * n + n])[None],
                torch.from_numpy(ids[i * n + 1:i * n + n + 1])) for i in range(SAMPLES)]
    write(folder, model, lambda m, x: m(input_ids=x, use_cache=False).logits, samples)


def make_mlp():
    folder = fresh("mlp")
    torch.manual_seed(22)
    sizes = [12, 24, 16, 5]
    model = make.Mlp(sizes)
    make.write_json(folder / "initial" / "config.json",
                    {"model_type": "mlp", "layer_sizes": sizes, "activation": "relu"})
    save_file({n: p.detach() for n, p in model.named_parameters()},
              folder / "initial" / "model.safetensors", metadata={"format": "pt"})
    rng = np.random.default_rng(22)
    x = rng.standard_normal((SAMPLES, sizes[0])).round(3).astype(np.float32)
    y = rng.integers(0, sizes[-1], SAMPLES).astype(np.int64)
    np.save(folder / "features.npy", x)
    np.save(folder / "labels.npy", y)
    write_run(folder, {"format": "npy", "train": ["features.npy"],
                       "labels": "labels.npy"})
    samples = list(zip(torch.from_numpy(x)[:, None], torch.from_numpy(y)[:, None]))
    write(folder, model, lambda m, v: m(v), samples)


def make_resnet():
    """Batch norm has the statistics of all samples, so they are one micro-batch here."""
    folder = fresh("resnet")
    config = {"depth": 8, "width": 4, "num_channels": 2, "image_size": 8, "num_labels": 5,
              "shortcut": "identity"}
    model = resnet.draw(config, [1, 1, 1], False, False, 23)
    make.write_json(folder / "initial" / "config.json",
                    {"model_type": "resnet", **config})
    save_file({n: t.detach().contiguous() for n, t in model.state_dict().items()},
              folder / "initial" / "model.safetensors", metadata={"format": "pt"})
    rng = np.random.default_rng(23)
    side, channels = config["image_size"], config["num_channels"]
    raw = rng.integers(0, 256, (SAMPLES, side, side, channels)).astype(np.uint8)
    y = rng.integers(0, config["num_labels"], SAMPLES).astype(np.int64)
    np.save(folder / "images.npy", raw)
    np.save(folder / "labels.npy", y)
    mean, std = [100.0, 109.0], [60.0, 61.0]
    optimizer = {"type": "SGD", "params": {"lr": 0.05, "momentum": 0.9}}
    write_run(folder, {"format": "npy", "train": ["images.npy"], "labels": "labels.npy",
                       "image_mean": mean, "image_std": std}, optimizer)
    x = (raw.transpose(0, 3, 1, 2).astype(np.float64) - np.array(mean)[:, None, None]
         ) / np.array(std)[:, None, None]
    samples = [(torch.from_numpy(x.astype(np.float32)), torch.from_numpy(y))]
    write(folder, model, lambda m, v: m(v), samples, optimizer)


if __name__ == "__main__":
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)
    logging.disable_progress_bar()
    models = {"gpt2": make_gpt2, "qwen3": make_qwen3, "mlp": make_mlp,
              "resnet": make_resnet}
    for name in sys.argv[1:] or models:
        models[name]()
