#!/usr/bin/env python3
"""Writes tests/data/safetensors with the safetensors package of Hugging Face.

Element i of every floating-point tensor is (i - 5) / 4, of every integer tensor i; all
are exact in every type used. Needs torch and safetensors; the files are kept in the
repository, so that the tests need neither.

    python3 tools/goldens/safetensors_files.py [folder]
"""

import json
import pathlib
import sys

import torch
from safetensors.torch import save_file

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64]


def values(dtype, *shape):
    count = torch.Size(shape).numel()
    numbers = torch.arange(count, dtype=torch.float64)
    if dtype.is_floating_point:
        numbers = (numbers - 5) / 4
    return numbers.to(dtype).reshape(shape)


def name(dtype):
    return str(dtype).removeprefix("torch.")


def main():
    default = pathlib.Path(__file__).parents[2] / "tests/data/safetensors"
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default
    folder.mkdir(parents=True, exist_ok=True)

    # Only f32: what our own writer must give, byte for byte.
    f32 = {
        "h.0.attn.weight": values(torch.float32, 4, 6),
        "h.0.attn.bias": values(torch.float32, 6),
        "wte.weight": values(torch.float32, 3, 5),
        "ln_f.scale": values(torch.float32),
        "empty": values(torch.float32, 0, 7),
    }
    save_file(f32, folder / "f32.safetensors", metadata={"format": "pt"})

    every = {name(d): values(d, 2, 3, 5) for d in FLOATS + INTEGERS}
    every["bool"] = torch.tensor([True, False, True])
    save_file(every, folder / "types.safetensors", metadata={"made": "by hand"})

    shards = folder / "sharded"
    shards.mkdir(exist_ok=True)
    parts = {
        "model-00001-of-00002.safetensors": ["wte.weight", "h.0.attn.bias"],
        "model-00002-of-00002.safetensors": ["h.0.attn.weight", "ln_f.scale"],
    }
    for file, names in parts.items():
        tensors = {"transformer." + n: f32[n] for n in names}
        save_file(tensors, shards / file, metadata={"format": "pt"})
    index = {
        "metadata": {"total_size": 4 * (15 + 6 + 24 + 1)},
        "weight_map": {"transformer." + n: f for f, ns in parts.items() for n in ns},
    }
    text = json.dumps(index, indent=2, sort_keys=True) + "\n"
    (shards / "model.safetensors.index.json").write_text(text)


if __name__ == "__main__":
    main()
