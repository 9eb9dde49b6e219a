"""Writes tests/data/quantized. Needs torch, transformers, peft, bitsandbytes and gguf:

    python tools/goldens/quantized.py [FOLDER]

For each base of tests/data/adapters and each way to keep weights in few bits: what two
of its weights become by bitsandbytes (NF4) or gguf (Q8_0), as f32 (where the adapter is
DoRA, none); and the losses of 20 steps of AdamW in float64 beside such a base, as tools/goldens/adapters.py makes them.
GPT-2's weights are quantised as [out, in], which transformers does. saved/: the llama
base in NF4 with double quantization, with the tensors that transformers saves.
"""
import json
import pathlib
import shutil
import sys

import bitsandbytes.functional as bits
import gguf
import numpy
import torch
import transformers
from peft import PeftModel
from safetensors.torch import load_file, save_file

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from adapters import losses  # noqa: E402

SOURCE = pathlib.Path("tests/data/adapters")
SHOWN = {
    "llama": ["model.layers.0.self_attn.q_proj.weight",
              "model.layers.1.mlp.down_proj.weight"],
    "gpt2": ["transformer.h.0.attn.c_attn.weight", "transformer.h.1.mlp.c_proj.weight"],
    "llama-dora": [],  # losses alone
    "gpt2-dora": [],
}


def through_nf4(weight, double):
    codes, state = bits.quantize_4bit(weight, quant_type="nf4", blocksize=64,
                                      compress_statistics=double)
    return bits.dequantize_4bit(codes, state)


# ggml quantises rows; here the blocks of 32 run through the whole tensor, which is the
# same where rows are whole blocks.
def through_q8_0(weight):
    flat = weight.numpy().reshape(-1)
    rest = -len(flat) % 32
    row = numpy.concatenate([flat, numpy.zeros(rest, numpy.float32)])[None]
    kind = gguf.GGMLQuantizationType.Q8_0
    back = gguf.dequantize(gguf.quantize(row, kind), kind).reshape(-1)
    return torch.from_numpy(back[: len(flat)].copy()).reshape(weight.shape)


WAYS = {
    "nf4": lambda w: through_nf4(w, False),
    "nf4_double": lambda w: through_nf4(w, True),
    "q8_0": through_q8_0,
}


def is_linear(name, value):
    return value.dim() == 2 and (".layers." in name or ".h." in name)


def save(folder):
    """The names and tensors of Linear4bit's state_dict."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(SOURCE / "llama" / "base", folder)
    tensors = {}
    for name, value in load_file(folder / "model.safetensors").items():
        if is_linear(name, value):
            codes, state = bits.quantize_4bit(value, quant_type="nf4", blocksize=64,
                                              compress_statistics=True)
            parts = state.as_dict(packed=True)
            tensors |= {f"{name}.{part}": each for part, each in parts.items()}
            value = codes
        tensors[name] = value
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    config["quantization_config"] = {
        "quant_method": "bitsandbytes", "load_in_4bit": True, "load_in_8bit": False,
        "bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": True,
        "bnb_4bit_compute_dtype": "float32", "bnb_4bit_quant_storage": "uint8"}
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "tests/data/quantized")
    for model, shown in SHOWN.items():
        data = torch.tensor(list((SOURCE / model / "text.bin").read_bytes()))
        told = {}
        shutil.rmtree(root / model, ignore_errors=True)
        (root / model).mkdir(parents=True)
        turns = model.startswith("gpt2")
        for way, through in WAYS.items():
            base = transformers.AutoModelForCausalLM.from_pretrained(
                SOURCE / model / "base", dtype=torch.float32)
            state, values = base.state_dict(), b""
            for name, value in state.items():
                if is_linear(name, value):
                    turned = value.T.contiguous() if turns else value
                    back = through(turned)
                    values += back.numpy().tobytes() if name in shown else b""
                    value.copy_(back.T if turns else back)
            if shown:
                (root / model / f"{way}.bin").write_bytes(values)
            peft = PeftModel.from_pretrained(base.double(), SOURCE / model / "adapter",
                                             is_trainable=True,
                                             autocast_adapter_dtype=False)
            told[way] = losses(peft.double().train(), data)
        (root / model / "golden.json").write_text(json.dumps(told, indent=1) + "\n")
    save(root / "saved")


main()
