#!/usr/bin/env python3
"""gguf_files.py [OUT]: writes tests/data/gguf by gguf-py (the package gguf of PyPI):

    blocks.txt   a line for each block: a format's name, its bytes, and the numbers that
                 gguf-py makes of it, as the bits of f32; all in hexadecimal. Then lines
                 "encode Q8_0": numbers, and the bytes that gguf-py makes of them.
    kinds.gguf   a file with a value of each kind, and tensors of several formats; what
                 gguf-py reads of them is in kinds.txt
    gpt2.gguf    a small GPT-2 as older converters wrote it, with its embedding a second
                 time as output.weight; gpt2.txt has its tensors as transformers has them

Needs numpy and gguf 0.19. The same input gives the same bytes."""
import pathlib
import sys

import gguf
import numpy as np

FORMATS = ["F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q3_K",
           "Q4_K", "Q5_K", "Q6_K"]
SCALES = {"Q8_0": [0], "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2],
          "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2],
          "Q6_K": [208]}
BLOCKS = 2


def drawn_block(draw, name, size):
    """Any bytes, but scales that are finite."""
    block = bytearray(draw.integers(0, 256, size, dtype=np.uint8).tobytes())
    for place in SCALES.get(name, []):
        block[place:place + 2] = np.float16(draw.normal()).tobytes()
    return bytes(block)


def finite(values):
    return bool(np.all(np.isfinite(values)))


def write_blocks(path, draw):
    lines = []
    for name in FORMATS:
        kind = gguf.GGMLQuantizationType[name]
        _, size = gguf.GGML_QUANT_SIZES[kind]
        found = 0
        while found < BLOCKS:
            block = drawn_block(draw, name, size)
            values = gguf.dequantize(np.frombuffer(block, dtype=np.uint8), kind)
            if finite(values):
                lines.append(f"{name} {block.hex()} {values.astype('<f4').tobytes().hex()}")
                found += 1
    spread = np.concatenate([draw.normal(size=16), np.zeros(16)])
    halves = np.arange(-16, 16) / 2 * 127 / 8  # ties at every other one
    for values in (draw.normal(size=32), spread, np.zeros(32), halves,
                   draw.normal(size=32) * 1e-30, -np.abs(draw.normal(size=32)) * 1e4):
        values = values.astype(np.float32)
        block = gguf.quantize(values, gguf.GGMLQuantizationType.Q8_0)
        lines.append(f"encode Q8_0 {values.tobytes().hex()} {block.tobytes().hex()}")
    path.write_text("\n".join(lines) + "\n")


def write_kinds(path, draw):
    writer = gguf.GGUFWriter(path, "kinds")
    writer.add_uint8("a.u8", 200)
    writer.add_int8("a.i8", -100)
    writer.add_uint16("a.u16", 60000)
    writer.add_int16("a.i16", -30000)
    writer.add_uint32("a.u32", 4000000000)
    writer.add_int32("a.i32", -2000000000)
    writer.add_float32("a.f32", 1e-5)
    writer.add_bool("a.bool", True)
    writer.add_string("a.text", "drei Äpfel")
    writer.add_uint64("a.u64", 1 << 63)
    writer.add_int64("a.i64", -(1 << 62))
    writer.add_float64("a.f64", 0.1)
    writer.add_array("a.texts", ["", "b", "cd"])
    writer.add_array("a.numbers", [-1, 0, 70000])
    writer.add_array("a.reals", [0.5, -2.0])
    writer.add_tensor("f32", draw.normal(size=(3, 5)).astype(np.float32))
    writer.add_tensor("f16", draw.normal(size=7).astype(np.float16))
    rows = draw.normal(size=(2, 64)).astype(np.float32)
    for name in ("Q8_0", "Q4_0", "Q5_1"):
        kind = gguf.GGMLQuantizationType[name]
        writer.add_tensor(name, gguf.quantize(rows, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    # What the tensors are, beside them.
    reader = gguf.GGUFReader(path)
    sums = {}
    for tensor in reader.tensors:
        values = gguf.dequantize(tensor.data, tensor.tensor_type).astype("<f4")
        sums[tensor.name] = values.tobytes().hex()
    (path.parent / "kinds.txt").write_text(
        "".join(f"{name} {bits}\n" for name, bits in sums.items()))


def write_gpt2(path, draw):
    width, inner, tokens, positions = 4, 6, 5, 3
    writer = gguf.GGUFWriter(path, "gpt2")
    writer.add_block_count(1)
    writer.add_context_length(positions)
    writer.add_embedding_length(width)
    writer.add_feed_forward_length(inner)
    writer.add_head_count(2)
    writer.add_layer_norm_eps(1e-5)
    lines = []

    def add(theirs, ours, *shape, turned=False):
        values = draw.normal(size=shape).astype(np.float32)
        writer.add_tensor(theirs, values)
        mine = np.ascontiguousarray(values.T) if turned else values
        lines.append(f"transformer.{ours} {mine.astype('<f4').tobytes().hex()}")
        return values

    embedding = add("token_embd.weight", "wte.weight", tokens, width)
    add("position_embd.weight", "wpe.weight", positions, width)
    for theirs, ours in (("attn_norm", "ln_1"), ("ffn_norm", "ln_2")):
        for part in ("weight", "bias"):
            add(f"blk.0.{theirs}.{part}", f"h.0.{ours}.{part}", width)
    for theirs, ours, rows, columns in (
            ("attn_qkv", "attn.c_attn", 3 * width, width),
            ("attn_output", "attn.c_proj", width, width),
            ("ffn_up", "mlp.c_fc", inner, width), ("ffn_down", "mlp.c_proj", width, inner)):
        add(f"blk.0.{theirs}.weight", f"h.0.{ours}.weight", rows, columns, turned=True)
        add(f"blk.0.{theirs}.bias", f"h.0.{ours}.bias", rows)
    add("output_norm.weight", "ln_f.weight", width)
    add("output_norm.bias", "ln_f.bias", width)
    writer.add_tensor("output.weight", embedding)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    path.with_suffix(".txt").write_text("\n".join(lines) + "\n")


def main():
    here = pathlib.Path(__file__).resolve().parents[2] / "tests/data/gguf"
    out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here
    out.mkdir(parents=True, exist_ok=True)
    draw = np.random.default_rng(1)
    write_blocks(out / "blocks.txt", draw)
    write_kinds(out / "kinds.gguf", draw)
    write_gpt2(out / "gpt2.gguf", draw)


if __name__ == "__main__":
    main()
