"""Makes tests/data/torch/kinds.pt, a file of torch.save with values of each kind that
are read (src/files/torch), and some that are not. Needs torch (made with 2.15):

    python tools/goldens/torch_file.py tests/data/torch/kinds.pt"""

from __future__ import annotations

import collections
import enum
import sys

import torch


class Kind(enum.Enum):
    SECOND = 2


class Point:
    def __init__(self) -> None:
        self.x = 3


def values() -> dict:
    flat = torch.arange(12, dtype=torch.float32) / 4
    loop: list = [1]
    loop.append(loop)
    ordered = collections.OrderedDict(a=1, b=torch.Size([2, 3]))
    ordered.note = "an attribute"
    return {
        "none": None,
        "yes": True,
        "no": False,
        "small": 7,
        "two bytes": 300,
        "negative": -5,
        "long": 1 << 40,
        "negative long": -(1 << 40),
        "longer": 1 << 80,
        "float": 0.1,
        "text": "drei Äpfel",
        "zero": "a\0b",
        "list": [1, 2.5, "x", [None]],
        "tuple": (1, (2, 3), (4, 5, 6), (7, 8, 9, 10), ()),
        "dict": {1: "one", "two": 2},
        "ordered": ordered,
        "set": {1, 2},
        "bytes": b"abc",
        "enum": Kind.SECOND,
        "object": Point(),
        "class": Point,
        "dtype": torch.float32,
        "loop": loop,
        "counter": collections.Counter("aab"),
        "f32": flat,
        "part": flat[2:8].view(2, 3),
        "scalar": torch.tensor(2.5),
        "turned": flat.view(3, 4).t(),
        "parameter": torch.nn.Parameter(torch.tensor([1.0, -2.0])),
        "f16": torch.tensor([0.5, -0.25], dtype=torch.float16),
        "bf16": torch.tensor([0.5, -0.25], dtype=torch.bfloat16),
        "f64": torch.tensor([0.1], dtype=torch.float64),
        "i64": torch.tensor([-7, 1 << 40]),
        "complex": torch.tensor([1j]),
        "empty": torch.zeros(0, 3),
    }


if __name__ == "__main__":
    torch.save(values(), sys.argv[1])
