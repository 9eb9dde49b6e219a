#!/usr/bin/env python3
"""compare_gguf_tokens.py PROGRAM FOLDER [NAME...]: tokenizers of GGUF files, imported,
against llama.cpp's own test vectors.

FOLDER is models/ of llama.cpp's sources, which the source package llama-cpp-python of
PyPI has (vendor/llama.cpp/models): ggml-vocab-NAME.gguf, with texts in .gguf.inp and
their ids in .gguf.out. Each vocabulary gets a model of a few zeros beside it, `tranche
import` makes a folder of that file, and `tranche tokenize` has to give these ids. Exit
status 1: one differs."""
import pathlib
import struct
import subprocess
import sys
import tempfile

NAMES = ["gpt-2", "llama-spm", "llama-bpe", "qwen2"]
NUMBER_BYTES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
TEXT, ARRAY, WIDTH, INNER = 8, 9, 4, 2


def text(value):
    return struct.pack("<Q", len(value)) + value.encode()


def values_of(data):
    """The keys of a file, each with its bytes and the length of its list."""
    count, at = struct.unpack_from("<Q", data, 16)[0], 24

    def behind_text(place):
        return place + 8 + struct.unpack_from("<Q", data, place)[0]

    for _ in range(count):
        begin, at = at, behind_text(at)
        key = data[begin + 8:at].decode()
        kind = struct.unpack_from("<I", data, at)[0]
        at += 4
        length = 1
        if kind == ARRAY:
            kind, length = struct.unpack_from("<IQ", data, at)
            at += 12
        if kind == TEXT:
            for _ in range(length):
                at = behind_text(at)
        else:
            at += NUMBER_BYTES[kind] * length
        yield key, data[begin:at], length


def model_of(data):
    """The tokenizer's keys, and a llama of one layer with zeros."""
    keys, tokens = [], 0
    for key, stored, length in values_of(data):
        if key.startswith("tokenizer."):
            keys.append(stored)
        if key == "tokenizer.ggml.tokens":
            tokens = length
    keys.append(text("general.architecture") + struct.pack("<I", TEXT) + text("llama"))
    for name, value in (("block_count", 1), ("context_length", 8),
                        ("embedding_length", WIDTH), ("feed_forward_length", INNER),
                        ("attention.head_count", 2)):
        keys.append(text(f"llama.{name}") + struct.pack("<II", 4, value))
    keys.append(text("llama.attention.layer_norm_rms_epsilon")
                + struct.pack("<If", 6, 1e-5))
    square = (WIDTH, WIDTH)
    layer = {"attn_norm": (WIDTH,), "ffn_norm": (WIDTH,), "attn_q": square,
             "attn_k": square, "attn_v": square, "attn_output": square,
             "ffn_gate": (WIDTH, INNER), "ffn_up": (WIDTH, INNER),
             "ffn_down": (INNER, WIDTH)}
    shapes = {"token_embd": (WIDTH, tokens), "output_norm": (WIDTH,)}
    shapes.update({f"blk.0.{name}": shape for name, shape in layer.items()})
    made, end = b"", 0
    for name, shape in shapes.items():
        made += text(f"{name}.weight") + struct.pack("<I", len(shape))
        made += b"".join(struct.pack("<Q", size) for size in shape)
        made += struct.pack("<IQ", 0, end)
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        end += (4 * count + 31) // 32 * 32
    head = b"GGUF" + struct.pack("<IQQ", 3, len(shapes), len(keys))
    head += b"".join(keys) + made
    return head + bytes(-len(head) % 32) + bytes(end)


def run(*arguments):
    done = subprocess.run(list(map(str, arguments)), capture_output=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr.decode())


def compare(program, path, folder):
    (folder / "model.gguf").write_bytes(model_of(path.read_bytes()))
    run(program, "import", folder / "model.gguf", folder / "model")
    texts = path.with_suffix(".gguf.inp").read_bytes().split(b"\n__ggml_vocab_test__\n")
    lines = path.with_suffix(".gguf.out").read_text().split("\n")
    tried = differ = 0
    for words, line in zip(texts, lines):
        if not words:
            continue
        (folder / "text").write_bytes(words)
        run(program, "tokenize", "--tokenizer", folder / "model", folder / "text",
            "--out", folder / "ids", "--dtype", "u32")
        stored = (folder / "ids").read_bytes()
        ids = list(struct.unpack(f"<{len(stored) // 4}I", stored))
        tried += 1
        differ += ids != list(map(int, line.split()))
    print(f"{path.stem}: {tried} texts, {differ} differ", flush=True)
    return differ == 0 and tried > 0


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    good = True
    for name in sys.argv[3:] or NAMES:
        with tempfile.TemporaryDirectory() as temporary:
            path = pathlib.Path(sys.argv[2]) / f"ggml-vocab-{name}.gguf"
            good &= compare(sys.argv[1], path, pathlib.Path(temporary))
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
