"""Writes the goldens of tests/data/goldens that learn whole texts. Needs torch,
transformers, tokenizers, safetensors and numpy:

    python tools/goldens/texts.py [NAME ...]

Each folder has the layout of make.py's: ten updates by AdamW of a small random model of
transformers, whose own loss is computed text by text, in float64. <kind>-class: one label
of several; -set: several labels of each text; -value: regression; -masked: masked tokens,
as windows of ids with a file of labels. bert-next: masked tokens and the next sentence.
"""
import json
import math
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import torch
import transformers
from safetensors.torch import save_file
from tokenizers import Tokenizer

ROOT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data"
OUT = ROOT / "goldens"
PROGRAM = str(ROOT.parents[1] / "build" / "tranche")
STEPS, BATCH, CLIP, LENGTH = 10, 6, 1.0, 24
ADAMW = {"type": "AdamW", "params": {"lr": 3e-3, "betas": [0.9, 0.999], "eps": 1e-8,
                                     "weight_decay": 0.1}}
WORDS = "the river was low and boats lay on mud who waits for a tide it men in them".split()
NAMES = ["calm", "Flood", "ebb, slow", "high"]
TOKENIZERS = {"Bert": "../../encoders/bert/tokenizer.json",
              "Roberta": "../../encoders/roberta/tokenizer.json",
              "GPT2": "../../tokenizers/smollm.json", "Llama": "../../tokenizers/smollm.json",
              "Qwen3": "../../tokenizers/smollm.json"}


def shape(kind):
    if kind in ("Bert", "Roberta"):
        return dict(hidden_size=28, num_hidden_layers=2, num_attention_heads=4,
                    intermediate_size=51, max_position_embeddings=40,
                    type_vocab_size=1 if kind == "Roberta" else 2,
                    hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    if kind == "GPT2":
        return dict(n_layer=2, n_embd=16, n_head=2, n_positions=LENGTH, resid_pdrop=0.0,
                    embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=0)
    return dict(hidden_size=16, intermediate_size=24, num_hidden_layers=2,
                num_attention_heads=4, num_key_value_heads=2, head_dim=4,
                max_position_embeddings=LENGTH)


def model_of(kind, ending, seed, **more):
    torch.manual_seed(seed)
    tokenizer = Tokenizer.from_file(str(OUT / "x" / TOKENIZERS[kind]))
    config = getattr(transformers, kind + "Config")(
        vocab_size=tokenizer.get_vocab_size(), initializer_range=0.15, **shape(kind), **more)
    config._attn_implementation = "eager"
    bare = {"add_pooling_layer": False} if ending == "Model" else {}
    model = getattr(transformers, kind + ending)(config, **bare).eval()
    with torch.no_grad():
        for p in model.parameters():
            if p.dim() < 2:  # biases start at 0 and norms at 1: errors there would hide
                p.add_(torch.randn_like(p) * 0.05)
    return model, tokenizer


def begin(name, model):
    folder = OUT / name
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "initial").mkdir(parents=True)
    model.save_pretrained(folder / "initial")
    (folder / "initial" / "generation_config.json").unlink(missing_ok=True)
    return folder


def train(model, losses, count_of, whole=None):
    """losses: one function of the model for each sample, the sum of its losses. whole: in
    their place, the sum of the losses of a batch, of the model and the batch."""
    model = model.double()
    optimizer = torch.optim.AdamW(model.parameters(), lr=ADAMW["params"]["lr"],
                                  betas=(0.9, 0.999), eps=1e-8, weight_decay=0.1)
    history, at = [], 0
    for _ in range(STEPS):
        batch = range(at, min(at + BATCH, len(losses)))
        at = at + BATCH if at + BATCH < len(losses) else 0
        count = sum(count_of(i) for i in batch)
        model.zero_grad()
        total = 0.0
        for part in [batch] if whole else batch:
            loss = whole(model, part) if whole else losses[part](model)
            (loss / count).backward()
            total += float(loss.detach())
        # What no loss reaches (BERT's pooler has one here) has no gradient.
        parameters = [p for p in model.parameters() if p.grad is not None]
        norm = math.sqrt(sum(float(p.grad.pow(2).sum()) for p in parameters))
        for p in parameters:
            p.grad.div_(max(1.0, (norm + 1e-6) / CLIP))
        optimizer.step()
        history.append({"loss": total / count, "lr": ADAMW["params"]["lr"],
                        "grad_norm": norm, "count": count})
    states = {f"{n}.{s}": optimizer.state[p][s] for n, p in model.named_parameters()
              for s in ("exp_avg", "exp_avg_sq")}
    return history, states


def as_float32(tensors):
    return {n: t.detach().float().contiguous() for n, t in tensors}


def finish(folder, model, run, losses, count_of, whole=None):
    run = {"model": "initial", **run, "steps": STEPS, "seed": 1, "train_batch_size": BATCH,
           "train_micro_batch_size_per_gpu": 2, "gradient_clipping": CLIP,
           "optimizer": ADAMW}
    (folder / "run.json").write_text(json.dumps(run, indent=1) + "\n")
    history, states = train(model, losses, count_of, whole)
    (folder / "expected.json").write_text(json.dumps({"steps": history}, indent=1) + "\n")
    save_file(as_float32(model.named_parameters()), folder / "final.safetensors",
              metadata={"format": "pt"})
    save_file(as_float32(states.items()), folder / "optimizer.safetensors")


def draw_records(rng, pairs, label_of):
    records = []
    for i in range(23):
        record = {"text": " ".join(rng.choice(WORDS, rng.integers(1, 7)))}
        if pairs and i % 3 == 0:
            record["text_pair"] = " ".join(rng.choice(WORDS, rng.integers(1, 5)))
        records.append({**record, "label": label_of(rng)})
    return records


def make_labels(name, kind, seed, label_of, target_of, names, problem):
    encoder = kind in ("Bert", "Roberta")
    model, tokenizer = model_of(
        kind, "ForSequenceClassification", seed, problem_type=problem,
        id2label=dict(enumerate(names)), label2id={n: i for i, n in enumerate(names)})
    folder = begin(name, model)
    rng = np.random.default_rng(seed)
    records = draw_records(rng, kind == "Bert", label_of)
    (folder / "records.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    each = 1 if problem == "single_label_classification" else len(names)

    def loss_of(record):
        text = (record["text"],) + ((record["text_pair"],) if "text_pair" in record else ())
        coded = tokenizer.encode(*text)
        assert len(coded.ids) <= LENGTH
        more = {"token_type_ids": torch.tensor([coded.type_ids])} if kind == "Bert" else {}
        target = target_of(record["label"])
        return lambda m: each * m(input_ids=torch.tensor([coded.ids]),
                                  labels=target, **more).loss

    finish(folder, model, {"data": {
        "format": "jsonl", "train": ["records.jsonl"], "tokenizer": TOKENIZERS[kind],
        "max_length": LENGTH, "order": "sequential"}},
        [loss_of(r) for r in records], lambda i: each)


def one(name, kind, seed):
    return lambda: make_labels(
        name, kind, seed, lambda rng: str(rng.choice(NAMES)),
        lambda label: torch.tensor([NAMES.index(label)]), NAMES,
        "single_label_classification")


def several(name, kind, seed):
    return lambda: make_labels(
        name, kind, seed, lambda rng: [n for n in NAMES if rng.random() < 0.4],
        lambda label: torch.tensor([[float(n in label) for n in NAMES]]).double(), NAMES,
        "multi_label_classification")


def value(name, kind, seed):
    return lambda: make_labels(
        name, kind, seed, lambda rng: round(float(rng.standard_normal()), 3),
        lambda label: torch.tensor([label]).float().double(), ["LABEL_0"], "regression")


def make_masked(name, kind, seed):
    """17 windows of ids, of which 15% or so have a label."""
    model, tokenizer = model_of(kind, "ForMaskedLM", seed)
    folder = begin(name, model)
    rng = np.random.default_rng(seed)
    windows = 17
    # No padding, which transformers' embeddings do not learn.
    ids = rng.integers(5, model.config.vocab_size, (windows, LENGTH))
    labels = np.where(rng.random(ids.shape) < 0.15,
                      rng.integers(0, model.config.vocab_size, ids.shape), -100)
    labels[:, 3] = ids[:, 3]  # no window is without one
    ids.astype("<u2").tofile(folder / "tokens.u16")
    labels.astype("<i2").tofile(folder / "labels.i16")

    def loss_of(i):
        x, y = torch.tensor(ids[i:i + 1]), torch.tensor(labels[i:i + 1])
        return lambda m: int((y >= 0).sum()) * m(input_ids=x, labels=y).loss

    finish(folder, model, {"data": {
        "format": "tokens", "dtype": "u16", "train": ["tokens.u16"],
        "labels": "labels.i16", "max_length": LENGTH, "order": "sequential"}},
        [loss_of(i) for i in range(windows)], lambda i: int((labels[i] >= 0).sum()))


def make_next(name, kind, seed):
    """Pairs of spans as `tranche inspect` shows them (build/tranche), with their masks; the
    loss of a batch is transformers' own. The last batch of the epoch is short."""
    model, _ = model_of(kind, "ForPreTraining", seed)
    folder = begin(name, model)
    rng = np.random.default_rng(seed)
    documents = [" ".join(rng.choice(WORDS, rng.integers(2, 60))) for _ in range(26)]
    (folder / "documents.txt").write_text("\n\n".join(documents))
    run = {"task": "masked_lm", "mlm": {"next_sentence": True}, "data": {
        "format": "text", "train": ["documents.txt"], "document_separator": "\n\n",
        "tokenizer": TOKENIZERS[kind], "max_length": LENGTH, "order": "sequential"}}
    (folder / "run.json").write_text(json.dumps({"model": "initial", "seed": 1, **run}))
    shown = subprocess.run([PROGRAM, "inspect", "run.json", "--samples", "1000", "--json"],
                           cwd=folder, check=True, capture_output=True, text=True).stdout
    samples = json.loads(shown)["samples"]
    assert (STEPS - 1) * BATCH < len(samples) < STEPS * BATCH, len(samples)

    def whole(m, batch):
        rows = {n: torch.tensor([samples[i][n] for i in batch])
                for n in ("input_ids", "token_type_ids", "position_ids", "labels")}
        used = rows["position_ids"].max(1, keepdim=True).values + 1
        del rows["position_ids"]
        follows = torch.tensor([samples[i]["next_sentence_label"][0] for i in batch])
        loss = m(attention_mask=(torch.arange(LENGTH) < used).long(),
                 next_sentence_label=follows, **rows).loss
        return loss * sum(map(count_of, batch))

    def count_of(i):
        return sum(label >= 0 for label in samples[i]["labels"])

    finish(folder, model, run, [None] * len(samples), count_of, whole)


def allowed(own, other, asks, answers):
    """May `answers` of group `other` be a negative of `asks` of group `own`? Texts of both
    groups by name: not where it is a text that `own` has in either place, nor where both
    groups ask the same."""
    return other[answers] not in (own[asks], own[answers]) and other[asks] != own[asks]


def make_contrast(name, kind, seed, texts, symmetric, learned=False):
    """23 groups of an anchor, a positive and perhaps a negative; the loss is over a whole
    batch, of embeddings that are the mean of a text's tokens, of length 1. learned: the
    temperature is a parameter, many texts are equal, and equal ones no negatives."""
    model, tokenizer = model_of(kind, "Model", seed)
    if learned:
        model.logit_scale = torch.nn.Parameter(torch.tensor(1.3))
    folder = begin(name, model)
    rng = np.random.default_rng(seed)
    fields = ["anchor", "positive", "negative"][:texts]
    records = [{f: " ".join(rng.choice(WORDS, rng.integers(1, 7))) for f in fields}
               for _ in range(23)]
    if learned:
        few = [r["anchor"] for r in records[:5]]
        records = [{f: str(rng.choice(few)) for f in fields} for _ in records]
    (folder / "records.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    temperature = 0.2

    def embed(m, field, batch):
        rows = []
        for i in batch:
            ids = tokenizer.encode(records[i][field]).ids
            assert len(ids) <= LENGTH
            rows.append(m(input_ids=torch.tensor([ids])).last_hidden_state[0].mean(0))
        return torch.nn.functional.normalize(torch.stack(rows), dim=1)

    def one_way(m, batch, asks, answers, x, y, names):
        """names: what field each block of y is."""
        factor = m.logit_scale.exp() if learned else 1 / temperature
        logits = x @ y.T * factor
        for i, a in enumerate(batch):
            for j, b in enumerate(list(batch) * len(names)):
                field = names[j // len(batch)]
                hidden = not allowed(records[a], records[b], asks, answers) \
                    if field == answers else \
                    records[b][field] in (records[a][asks], records[a][answers])
                if learned and i != j and hidden:
                    logits[i, j] = -math.inf
        return torch.nn.functional.cross_entropy(logits, torch.arange(len(batch)),
                                                 reduction="sum")

    def whole(m, batch):
        parts = [embed(m, f, batch) for f in fields]
        loss = one_way(m, batch, "anchor", "positive", parts[0], torch.cat(parts[1:]),
                       fields[1:])
        if symmetric:
            back = one_way(m, batch, "positive", "anchor", parts[1], parts[0],
                           fields[:1])
            loss = (loss + back) / 2
        return loss

    more = {"learned": True, "duplicates": "mask"} if learned else {}
    finish(folder, model, {
        "task": "contrastive",
        "contrastive": {"temperature": temperature, "symmetric": symmetric, **more},
        "data": {"format": "jsonl", "train": ["records.jsonl"],
                 "tokenizer": TOKENIZERS[kind], "max_length": LENGTH,
                 "order": "sequential"}},
        [None] * len(records), lambda i: 1, whole)


GOLDENS = {
    "bert-pairs": lambda: make_contrast("bert-pairs", "Bert", 69, 2, True),
    "roberta-triples": lambda: make_contrast("roberta-triples", "Roberta", 70, 3, False),
    "bert-scale": lambda: make_contrast("bert-scale", "Bert", 71, 3, True, True),
    "bert-class": one("bert-class", "Bert", 61),
    "roberta-class": one("roberta-class", "Roberta", 62),
    "gpt2-class": one("gpt2-class", "GPT2", 73),
    "qwen3-class": one("qwen3-class", "Qwen3", 64),
    "bert-set": several("bert-set", "Bert", 65),
    "roberta-value": value("roberta-value", "Roberta", 66),
    "bert-next": lambda: make_next("bert-next", "Bert", 74),
    "bert-masked": lambda: make_masked("bert-masked", "Bert", 67),
    "roberta-masked": lambda: make_masked("roberta-masked", "Roberta", 68),
}

if __name__ == "__main__":
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)
    transformers.utils.logging.disable_progress_bar()
    (OUT / "x").mkdir(exist_ok=True)  # from where paths of tokenizers are taken
    for golden in sys.argv[1:] or GOLDENS:
        print(golden)
        GOLDENS[golden]()
    (OUT / "x").rmdir()
