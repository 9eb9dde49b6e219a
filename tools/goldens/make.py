"""Writes tests/data/goldens. Needs torch, transformers, safetensors and numpy:

    python tools/goldens/make.py [NAME ...]

Each folder holds a run file with all it needs (paths relative to the folder) and what
PyTorch makes of it. README.md beside the folders says what is what. The script ends
with how far PyTorch itself, run in float32, is from the float64 results.
"""
import copy
import fnmatch
import json
import pathlib
import shutil
import sys

import numpy as np
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
import transformers
from transformers import GPT2Config, GPT2LMHeadModel
from transformers.utils import logging

import rules

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "goldens"
STEPS = 10
BATCH = 6

ADAMW = {
    "type": "AdamW",
    "params": {"lr": 3e-3, "betas": [0.9, 0.999], "eps": 1e-8, "weight_decay": 0.1},
    "groups": [{"match": ["*.bias", "*.ln_?.weight"], "weight_decay": 0}],
}
# Of models of as many units as there may be ranks: where ranks add in another order, a
# gradient of almost nothing is not to decide.
WIDE_EPS = {**ADAMW, "params": {**ADAMW["params"], "eps": 1e-6}}
# An MLP has no norms, and a pattern that matches nothing is an error.
BIASES = [{"match": ["*.bias"], "weight_decay": 0}]
MLP_ADAMW = {**ADAMW, "groups": BIASES}
COSINE = {
    "type": "WarmupCosineLR",
    "params": {"total_num_steps": STEPS, "warmup_num_steps": 4,
               "warmup_min_ratio": 0.1, "cos_min_ratio": 0.1},
}
WARMUP = {
    "type": "WarmupLR",
    "params": {"warmup_min_lr": 0, "warmup_max_lr": 1e-2, "warmup_num_steps": 4},
}


def write_json(path, value):
    path.write_text(json.dumps(value, indent=1) + "\n")


def as_float32(tensors):
    return {n: t.detach().float().contiguous() for n, t in tensors}


def write_result(folder, model, result):
    history, states = result
    write_json(folder / "expected.json", {"steps": history})
    save_file(as_float32(model.named_parameters()), folder / "final.safetensors",
              metadata={"format": "pt"})
    save_file(as_float32(states.items()), folder / "optimizer.safetensors")


def in_both_precisions(model, logits_of, samples, run):
    """Trains copies in float64 and float32; returns what rules.train returns of the
    first, and (model, states) of both."""
    wide, narrow = copy.deepcopy(model).double(), copy.deepcopy(model)
    cast = [(x.double() if x.is_floating_point() else x, y) for x, y in samples]
    result = rules.train(wide, logits_of, cast, run)
    _, states = rules.train(narrow, logits_of, samples, run)
    return result, (wide, result[1]), (narrow, states)


def report(name, initial, wide, narrow, skip=None):
    start, end, other = [dict(m.named_parameters())
                         for m in (initial, wide[0], narrow[0])]
    far = rules.distances(start, end, other, skip)
    worst = max(far, key=far.get)
    zeros = {n: torch.zeros_like(t) for n, t in wide[1].items()}
    off = max(rules.distances(zeros, wide[1], narrow[1], skip).values(), default=0)
    print(f"{name}: PyTorch in float32 is {far[worst]:.1e} away ({worst}), "
          f"its states {off:.1e}")


def base_run(optimizer, scheduler):
    run = {"steps": STEPS, "seed": 1, "train_batch_size": BATCH,
           "train_micro_batch_size_per_gpu": 2, "gradient_clipping": 1.0,
           "optimizer": optimizer}
    if scheduler:
        run["scheduler"] = scheduler
    return run


# ---- GPT-2


def gpt2_model(seed, **shape):
    torch.manual_seed(seed)
    config = GPT2Config(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
                        initializer_range=0.08, bos_token_id=0, eos_token_id=0,
                        **shape)
    config._attn_implementation = "eager"
    return shifted_vectors(GPT2LMHeadModel(config))


def shifted_vectors(model):
    """Biases start at 0 and norms at 1: errors there would hide."""
    with torch.no_grad():
        for p in model.parameters():
            if p.dim() < 2:
                p.add_(torch.randn_like(p) * 0.05)
    return model.eval()


def gpt2_text(rng, vocab, length):
    """Ids with something to learn: a walk with few branches."""
    follow = rng.integers(0, vocab, (vocab, 3))
    ids = np.empty(length, np.int64)
    ids[0] = 1
    for i in range(1, length):
        ids[i] = follow[ids[i - 1], rng.integers(0, 3)]
    return ids


def gpt2_labels(rng, ids, n):
    """Hugging Face's layout: an entry's label is the entry or -100. Among the windows
    some have no target at all."""
    labels = ids.copy()
    labels[rng.random(len(ids)) < 0.15] = rules.NO_TARGET
    for window in (4, 13, 14, 15):
        labels[window * n + 1:window * n + n + 1] = rules.NO_TARGET
    return labels


def key_bias_out(name, tensor):
    """The gradient of the key's bias is rounding noise, which Adam amplifies."""
    if "c_attn.bias" not in name:
        return tensor
    width = tensor.numel() // 3
    return torch.cat([tensor[:width], tensor[2 * width:]])


def make_gpt2(name, seed, freeze=(), optimizer=ADAMW, results_alone=False, **shape):
    make_language(name, seed, gpt2_model(seed, **shape), shape["n_positions"], optimizer,
                  key_bias_out, freeze, results_alone)


def freeze_parameters(model, patterns):
    for n, p in model.named_parameters():
        if any(fnmatch.fnmatchcase(n, pattern) for pattern in patterns):
            p.requires_grad_(False)


def begin_language(name, model):
    folder = OUT / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    model.save_pretrained(folder / "initial", safe_serialization=True)
    (folder / "initial" / "generation_config.json").unlink(missing_ok=True)
    return folder


def logits_of(model, x):
    return model(input_ids=x, use_cache=False).logits


def save_gradients(folder, model, batch):
    first = copy.deepcopy(model).double()
    rules.backward(first, logits_of, batch)
    save_file(as_float32((n, p.grad) for n, p in first.named_parameters()),
              folder / "gradients.safetensors")


def make_language(name, seed, model, n, optimizer, skip=None, freeze=(),
                  results_alone=False):
    folder = begin_language(name, model)
    vocab = model.config.vocab_size

    rng = np.random.default_rng(seed)
    ids = gpt2_text(rng, vocab, STEPS * BATCH * n + 1)
    labels = gpt2_labels(rng, ids, n)
    ids.astype("<u2").tofile(folder / "tokens.u16")
    labels.astype("<i2").tofile(folder / "labels.i16")
    run = base_run(optimizer, COSINE)
    run = {"model": "initial",
           "data": {"format": "tokens", "train": ["tokens.u16"],
                    "labels": "labels.i16", "order": "sequential"}, **run}
    if freeze:
        run["freeze"] = list(freeze)
        freeze_parameters(model, freeze)
    write_json(folder / "run.json", run)

    samples = [(torch.from_numpy(ids[i * n:i * n + n])[None],
                torch.from_numpy(labels[i * n + 1:i * n + n + 1]))
               for i in range(STEPS * BATCH)]
    result, wide, narrow = in_both_precisions(model, logits_of, samples, run)
    write_result(folder, wide[0], result)
    report(name, model, wide, narrow, skip)
    if freeze or results_alone:  # the forward is that of any other
        return

    save_gradients(folder, model, samples[:BATCH])
    x = torch.from_numpy(ids[:2 * n].reshape(2, n))
    with torch.no_grad():
        logits = logits_of(copy.deepcopy(model).double(), x).float()
    save_file({"input_ids": x.int(), "logits": logits}, folder / "forward.safetensors")


# ---- Llama and its kin


def llama_model(seed, family, **shape):
    """`family`: "Llama", "Mistral", "Qwen2", "Qwen3". Weights are wide (deviation 0.2): with
    0.02 a rotation that is missing would go unseen."""
    torch.manual_seed(seed)
    config = getattr(transformers, family + "Config")(
        initializer_range=0.2, bos_token_id=0, eos_token_id=0, **shape)
    config._attn_implementation = "eager"
    return shifted_vectors(getattr(transformers, family + "ForCausalLM")(config))


def make_llama(name, seed, family, optimizer=ADAMW, results_alone=False, **shape):
    model = llama_model(seed, family, **shape)
    biased = any(n.endswith(".bias") for n, _ in model.named_parameters())
    match = ["*norm.weight"] + ["*.bias"] * biased
    optimizer = {**optimizer, "groups": [{"match": match, "weight_decay": 0}]}
    make_language(name, seed, model, model.config.max_position_embeddings, optimizer,
                  results_alone=results_alone)


def rope(kind, **numbers):
    return {"rope_type": kind, "rope_theta": 100.0, **numbers}


# ---- packed documents

WORDS = "the of and to a in is that it was he for on with as".split()
# What they can share six rows of 24 tokens in, by best fit decreasing, which comes to six.
LENGTHS = [24, 20, 4, 19, 5, 17, 7, 16, 5, 3, 14, 9]


def draw_document(rng, tokenizer, length):
    """A prompt with a completion that have so many tokens with the one that ends them,
    the ids, and the labels: those of the completion."""
    while True:
        words = [" " + word for word in rng.choice(WORDS, rng.integers(2, length))]
        cut = rng.integers(1, len(words))
        prompt, completion = "".join(words[:cut]), "".join(words[cut:])
        head = tokenizer.encode(prompt, add_special_tokens=False).ids
        ids = tokenizer.encode(prompt + completion, add_special_tokens=False).ids
        if len(ids) == length - 1 and ids[:len(head)] == head:
            ids.append(tokenizer.token_to_id("<|end|>"))
            labels = [rules.NO_TARGET] * (len(head) - 1) + ids[len(head):] + [rules.NO_TARGET]
            return {"prompt": prompt, "completion": completion}, ids, labels


def make_packed(name, seed, model, skip=None):
    """Each update has all documents: six rows of the run, one by one here."""
    folder = begin_language(name, model)
    rng = np.random.default_rng(seed)
    tokenizer = Tokenizer.from_file(str(OUT.parent / "tokenizers" / "smollm.json"))
    drawn = [draw_document(rng, tokenizer, length) for length in rng.permutation(LENGTHS)]
    lines = [json.dumps(record) + "\n" for record, _, _ in drawn]
    (folder / "records.jsonl").write_text("".join(lines))
    vectors = [n for n, p in model.named_parameters() if p.dim() < 2]
    optimizer = {**ADAMW, "groups": [{"match": vectors, "weight_decay": 0}]}
    run = {"model": "initial",
           "data": {"format": "jsonl", "train": ["records.jsonl"], "packing": True,
                    "tokenizer": "../../tokenizers/smollm.json",
                    "eos_token": "<|end|>", "order": "sequential"},
           **base_run(optimizer, COSINE)}
    write_json(folder / "run.json", run)
    samples = [(torch.tensor([ids]), torch.tensor(labels)) for _, ids, labels in drawn]
    result, wide, narrow = in_both_precisions(
        model, logits_of, samples, {**run, "train_batch_size": len(samples)})
    write_result(folder, wide[0], result)
    report(name, model, wide, narrow, skip)
    save_gradients(folder, model, samples)


# ---- MLP


class Mlp(torch.nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.layers = torch.nn.ModuleList(
            torch.nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = torch.relu(layer(x))
        return self.layers[-1](x)


def write_csv(path, x, y):
    names = [f"x{i}" for i in range(x.shape[1])] + ["label"]
    rows = [",".join([f"{v:.3f}" for v in row] + [str(label)]) for row, label in zip(x, y)]
    path.write_text("\n".join([",".join(names)] + rows) + "\n")


def without_norms(model, x):
    """Tensors of norm zero: biases, and, for the first batch, all gradients but the last
    bias's."""
    with torch.no_grad():
        for p in model.parameters():
            if p.dim() < 2:
                p.zero_()
    x[:BATCH] = 0


def make_mlp(name, seed, sizes, count, optimizer, scheduler, form="csv", norms=True):
    folder = OUT / name
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "initial").mkdir(parents=True)
    torch.manual_seed(seed)
    model = Mlp(sizes)
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((count, sizes[0])).round(3).astype(np.float32)
    y = rng.integers(0, sizes[-1], count).astype(np.int64)
    if not norms:
        without_norms(model, x)
    write_json(folder / "initial" / "config.json",
               {"model_type": "mlp", "layer_sizes": sizes, "activation": "relu"})
    save_file({n: p.detach() for n, p in model.named_parameters()},
              folder / "initial" / "model.safetensors", metadata={"format": "pt"})
    if form == "csv":
        write_csv(folder / "data.csv", x, y)
        data = {"format": "csv", "train": ["data.csv"]}
    else:
        np.save(folder / "features.npy", x)
        np.save(folder / "labels.npy", y)
        data = {"format": "npy", "train": ["features.npy"], "labels": "labels.npy"}
    data["order"] = "sequential"
    run = {"model": "initial", "data": data, **base_run(optimizer, scheduler)}
    write_json(folder / "run.json", run)

    samples = list(zip(torch.from_numpy(x)[:, None], torch.from_numpy(y)[:, None]))
    result, wide, narrow = in_both_precisions(model, lambda m, v: m(v), samples, run)
    write_result(folder, wide[0], result)
    report(name, model, wide, narrow)


GOLDENS = {
    "gpt2": lambda: make_gpt2("gpt2", 11, n_layer=2, n_embd=32, n_head=4,
                              n_positions=16, vocab_size=61),
    "gpt2-frozen": lambda: make_gpt2(
        "gpt2-frozen", 21, n_layer=3, n_embd=24, n_head=3, n_positions=13, vocab_size=41,
        freeze=["transformer.w?e.weight", "transformer.h.0.*", "*.h.2.attn.*",
                "*.h.1.mlp.*.weight", "*.h.2.ln_2.bias"]),
    "gpt2-odd": lambda: make_gpt2("gpt2-odd", 12, n_layer=1, n_embd=21, n_head=3,
                                  n_positions=11, vocab_size=37, n_inner=50,
                                  activation_function="gelu"),
    "llama": lambda: make_llama(
        "llama", 31, "Llama", vocab_size=61, hidden_size=24, intermediate_size=40,
        num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        max_position_embeddings=16),
    "llama-grouped": lambda: make_llama(
        "llama-grouped", 36, "Llama", vocab_size=41, hidden_size=36, intermediate_size=27,
        num_hidden_layers=1, num_attention_heads=9, num_key_value_heads=3,
        max_position_embeddings=13, tie_word_embeddings=True, attention_bias=True),
    "llama3": lambda: make_llama(
        "llama3", 32, "Llama", vocab_size=37, hidden_size=21, intermediate_size=35,
        num_hidden_layers=2, num_attention_heads=3, num_key_value_heads=1, head_dim=10,
        max_position_embeddings=19, tie_word_embeddings=True, attention_bias=True,
        mlp_bias=True,
        rope_parameters=rope("llama3", factor=8.0, low_freq_factor=1.0,
                             high_freq_factor=4.0,
                             original_max_position_embeddings=32)),
    "llama-linear": lambda: make_llama(
        "llama-linear", 33, "Llama", vocab_size=37, hidden_size=16, intermediate_size=24,
        num_hidden_layers=1, num_attention_heads=2, max_position_embeddings=16,
        rope_parameters=rope("linear", factor=3.0)),
    "llama-yarn": lambda: make_llama(
        "llama-yarn", 34, "Llama", vocab_size=37, hidden_size=18, intermediate_size=24,
        num_hidden_layers=1, num_attention_heads=1, max_position_embeddings=24,
        rope_parameters=rope("yarn", factor=4.0, original_max_position_embeddings=12,
                             beta_fast=2.0, beta_slow=0.25)),
    "mistral": lambda: make_llama(
        "mistral", 35, "Mistral", vocab_size=37, hidden_size=16, intermediate_size=24,
        num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        max_position_embeddings=16, sliding_window=5),
    "qwen2": lambda: make_llama(
        "qwen2", 43, "Qwen2", vocab_size=37, hidden_size=20, intermediate_size=30,
        num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1,
        max_position_embeddings=16, use_sliding_window=True, sliding_window=6,
        max_window_layers=1, tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": 4.0}),
    "qwen3": lambda: make_llama(
        "qwen3", 37, "Qwen3", vocab_size=37, hidden_size=20, intermediate_size=30,
        num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=6,
        max_position_embeddings=16),
    "gpt2-deep": lambda: make_gpt2(
        "gpt2-deep", 51, optimizer=WIDE_EPS, results_alone=True, n_layer=6, n_embd=16,
        n_head=4, n_positions=12, vocab_size=67),
    "llama-deep": lambda: make_llama(
        "llama-deep", 52, "Llama", optimizer=WIDE_EPS, results_alone=True, vocab_size=67,
        hidden_size=16, intermediate_size=43, num_hidden_layers=6, num_attention_heads=8,
        num_key_value_heads=4, max_position_embeddings=12),
    "qwen2-deep": lambda: make_llama(
        "qwen2-deep", 53, "Qwen2", optimizer=WIDE_EPS, results_alone=True, vocab_size=67,
        hidden_size=16, intermediate_size=43, num_hidden_layers=6, num_attention_heads=4,
        num_key_value_heads=4, max_position_embeddings=12, tie_word_embeddings=True),
    "gpt2-packed": lambda: make_packed(
        "gpt2-packed", 44, gpt2_model(44, n_layer=2, n_embd=16, n_head=2, n_positions=24,
                                      vocab_size=500), key_bias_out),
    "mistral-packed": lambda: make_packed(
        "mistral-packed", 45, llama_model(
            45, "Mistral", vocab_size=500, hidden_size=16, intermediate_size=24,
            num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
            max_position_embeddings=24, sliding_window=9, tie_word_embeddings=True)),
    "mlp": lambda: make_mlp("mlp", 13, [7, 13, 5], 57, MLP_ADAMW, COSINE),
    "mlp-npy": lambda: make_mlp("mlp-npy", 14, [20, 50, 10], 23, MLP_ADAMW, WARMUP,
                                "npy"),
    "mlp-adam": lambda: make_mlp(
        "mlp-adam", 15, [7, 13, 5], 57,
        {"type": "Adam", "params": {"lr": 1e-2, "betas": [0.8, 0.95], "eps": 1e-6,
                                    "weight_decay": 0.01, "adam_w_mode": False}}, None),
    "mlp-sgd": lambda: make_mlp(
        "mlp-sgd", 16, [7, 13, 5], 57,
        {"type": "SGD", "params": {"lr": 5e-2, "momentum": 0.9, "nesterov": True,
                                   "weight_decay": 0.01}}, None),
    "mlp-momentum": lambda: make_mlp(
        "mlp-momentum", 17, [7, 13, 5], 57,
        {"type": "SGD", "params": {"lr": 5e-2, "momentum": 0.9, "dampening": 0.1}},
        None),
    "mlp-lion": lambda: make_mlp(
        "mlp-lion", 18, [7, 13, 5], 57,
        {"type": "Lion", "params": {"lr": 1e-3, "betas": [0.9, 0.99],
                                    "weight_decay": 0.1}}, COSINE),
    "mlp-lamb": lambda: make_mlp(
        "mlp-lamb", 19, [7, 13, 5], 57,
        {"type": "Lamb", "params": {"lr": 1e-2, "weight_decay": 0, "min_coeff": 0,
                                    "max_coeff": 1e9}}, COSINE, norms=False),
    "mlp-lamb-paper": lambda: make_mlp(
        "mlp-lamb-paper", 20, [7, 9, 13, 5], 57,
        {"type": "Lamb", "params": {"lr": 1e-2, "weight_decay": 0.1, "form": "paper"},
         "groups": BIASES}, COSINE, norms=False),
    "mlp-lars": lambda: make_mlp(
        "mlp-lars", 23, [7, 13, 5], 57,
        {"type": "LARS", "params": {"lr": 2.0, "momentum": 0.9, "weight_decay": 0.01,
                                    "trust_coefficient": 0.02},
         "groups": BIASES}, None, norms=False),
    "mlp-lars-all": lambda: make_mlp(
        "mlp-lars-all", 24, [7, 9, 13, 5], 57,
        {"type": "LARS", "params": {"lr": 2.0, "momentum": 0.8, "nesterov": True,
                                    "weight_decay": 0.01, "trust_coefficient": 0.02,
                                    "exclude_1d": False, "decay_1d": True}}, None,
        norms=False),
    "mlp-cycle": lambda: make_mlp(
        "mlp-cycle", 25, [7, 13, 5], 57,
        {"type": "Lion", "params": {"lr": 1e-3, "weight_decay": 0.1}},
        {"type": "OneCycle", "params": {
            "cycle_min_lr": 1e-4, "cycle_max_lr": 2e-3, "cycle_first_step_size": 4,
            "cycle_second_step_size": 3, "decay_step_size": 2, "decay_lr_rate": 0.5}}),
    "mlp-range": lambda: make_mlp(
        "mlp-range", 26, [7, 13, 5], 57, {"type": "SGD", "params": {"lr": 5e-2}},
        {"type": "LRRangeTest", "params": {
            "lr_range_test_min_lr": 0.02, "lr_range_test_step_size": 3,
            "lr_range_test_step_rate": 2.0, "lr_range_test_staircase": True}}),
}


if __name__ == "__main__":
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)
    logging.disable_progress_bar()
    for golden in sys.argv[1:] or GOLDENS:
        GOLDENS[golden]()
