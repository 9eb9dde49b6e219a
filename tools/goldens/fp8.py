#!/usr/bin/env python3
"""Writes tests/data/fp8.txt: numbers of f32 and the codes of 8 bits to which PyTorch's
casts (torch.float8_e4m3fn, torch.float8_e5m2) round them, as hexadecimal bits. Numbers
beyond the largest are left out: PyTorch's casts do not saturate, Tranche's do.

    python3 tools/goldens/fp8.py tests/data/fp8.txt
"""

import random
import struct
import sys

import torch

FORMATS = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}
LEAST = {torch.float8_e4m3fn: 2**-9, torch.float8_e5m2: 2**-16}
DRAWN = 600


def bits_of(value):
    return struct.unpack("<I", struct.pack("<f", value))[0]


# Numbers of every size down to half of the least one, and the middles between codes.
def numbers(dtype):
    largest, least = float(torch.finfo(dtype).max), LEAST[dtype]
    draw = random.Random(8)
    for _ in range(DRAWN):
        size = least / 4 * (4 * largest / least) ** draw.random()
        yield size if draw.random() < 0.5 else -size
    codes = torch.arange(128, dtype=torch.uint8).view(dtype).float()
    finite = codes[torch.isfinite(codes)]
    yield from ((finite[1:] + finite[:-1]) / 2).tolist()


def main(path):
    with open(path, "w", encoding="ascii") as file:
        file.write(f"# format, bits of f32, code; PyTorch {torch.__version__}\n")
        for name, dtype in FORMATS.items():
            for number in numbers(dtype):
                value = torch.tensor(number, dtype=torch.float32)
                code = value.to(dtype).view(torch.uint8).item()
                file.write(f"{name} {bits_of(value.item()):08x} {code:02x}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
