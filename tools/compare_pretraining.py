#!/usr/bin/env python3
"""compare_pretraining.py TOKENIZER [--steps N] [--batch T] [--recipe base|lamb]...
                       [--program FILE] [--keep FOLDER]

Pre-trains a small BERT from plain text by the recipes in examples/, with Tranche and with
transformers' BertForPreTraining, and compares the two. TOKENIZER: a folder with one of
BERT's. base: AdamW, steps of T sequences as 8 micro-batches, warm-up, linear decay. lamb:
You et al.'s two phases, of T sequences and then of half as many that are twice as long,
from the weights of the first. The documents are docstrings of Python's own modules. Both
begin with the weights that transformers draws, and take the same samples and masks (those
that `tranche inspect --samples` shows). Ends with 1 where losses of a step are over 1%
apart, or where transformers does not load a checkpoint whole. Needs torch and transformers.
"""
import argparse
import ast
import json
import pathlib
import subprocess
import sys
import sysconfig
import tempfile

import torch
import transformers

ROOT = pathlib.Path(__file__).resolve().parent.parent
WITHIN, SEED = 0.01, 1


def read_options():
    options = argparse.ArgumentParser(description=__doc__.split("\n\n")[1])
    options.add_argument("tokenizer")
    options.add_argument("--steps", type=int, default=24, help="of a phase")
    options.add_argument("--batch", type=int, default=256)
    options.add_argument("--length", type=int, default=32, help="tokens, of the first phase")
    options.add_argument("--recipe", action="append", choices=["base", "lamb"])
    options.add_argument("--program", default=str(ROOT / "build" / "tranche"))
    options.add_argument("--keep", help="a folder for all files, in place of one that goes")
    return options.parse_args()


def documents():
    """One for each module: its docstrings, one behind the other."""
    found = []
    for path in sorted(pathlib.Path(sysconfig.get_path("stdlib")).rglob("*.py")):
        if "site-packages" in path.parts or "test" in path.parts:
            continue
        try:
            tree = ast.parse(path.read_text())
        except (SyntaxError, ValueError):
            continue
        kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
        texts = [ast.get_docstring(n) for n in ast.walk(tree) if isinstance(n, kinds)]
        text = " ".join(" ".join(t.split()) for t in texts if t)
        if text:
            found.append(text)
    return found


class Lamb(torch.optim.Optimizer):
    """Algorithm 2 of You et al., arXiv 1904.00962, with the identity for phi."""

    def __init__(self, groups, lr, betas, eps):
        super().__init__(groups, dict(lr=lr, betas=betas, eps=eps))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                self.advance(p, self.state[p], group)

    def advance(self, p, state, group):
        if not state:
            state.update(t=0, m=torch.zeros_like(p), v=torch.zeros_like(p))
        state["t"] += 1
        first, second = group["betas"]
        state["m"].lerp_(p.grad, 1 - first)
        state["v"].mul_(second).addcmul_(p.grad, p.grad, value=1 - second)
        m = state["m"] / (1 - first ** state["t"])
        v = state["v"] / (1 - second ** state["t"])
        u = m / (v.sqrt() + group["eps"]) + group["weight_decay"] * p
        norms = p.norm(), u.norm()
        ratio = norms[0] / norms[1] if norms[0] > 0 and norms[1] > 0 else 1.0
        p.sub_(u * ratio, alpha=group["lr"])


class Phase:
    """One run file, and the same run in transformers."""

    def __init__(self, args, work, name, example, model, length, batch):
        self.args, self.folder, self.batch = args, work / name, batch
        self.folder.mkdir()
        self.model, self.length = pathlib.Path(model), length
        recipe = "\n".join(line for line in (ROOT / "examples" / example).read_text().splitlines()
                           if not line.strip().startswith("//"))
        self.run = json.loads(recipe)
        self.run["data"].update(train=[str(work / "documents.txt")], tokenizer=args.tokenizer,
                                max_length=length)
        self.run["scheduler"]["params"]["warmup_num_steps"] = args.steps // 4
        self.run["optimizer"]["params"]["lr"] = 2e-3 if example == "bert-base.json" else 2e-2
        self.run.update(model=str(self.model), steps=args.steps, train_batch_size=batch,
                        train_micro_batch_size_per_gpu=batch // 8, seed=SEED,
                        checkpoint={"keep": 1}, out=str(self.folder / "out"), memory={})
        (self.folder / "run.json").write_text(json.dumps(self.run, indent=1))

    def call(self, *arguments):
        done = subprocess.run([self.args.program, *arguments], capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stderr)
        return done.stdout

    def ours(self):
        self.call("train", str(self.folder / "run.json"))
        lines = (self.folder / "out" / "metrics.jsonl").read_text().splitlines()
        steps = [json.loads(line) for line in lines if '"grad_norm"' in line]
        return [s["loss"] for s in steps], [s["lr"] for s in steps]

    def samples(self):
        count = str(self.args.steps * self.batch)
        shown = self.call("inspect", str(self.folder / "run.json"), "--json", "--samples", count)
        told = json.loads(shown)["samples"]
        if len(told) < int(count):
            sys.exit(f"the documents make {len(told)} samples, and {count} are asked for")
        return told

    def optimizer(self, model):
        decays = [], []
        for name, p in model.named_parameters():
            decays["bias" not in name and "LayerNorm" not in name].append(p)
        given = self.run["optimizer"]
        options = {k: given["params"][k] for k in ("lr", "betas", "eps")}
        groups = [{"params": decays[0], "weight_decay": 0.0},
                  {"params": decays[1], "weight_decay": given["params"]["weight_decay"]}]
        return (Lamb if given["type"] == "Lamb" else torch.optim.AdamW)(groups, **options)

    def rate(self, step):
        warm, total = self.run["scheduler"]["params"]["warmup_num_steps"], self.args.steps
        share = step / warm if step < warm else max(0, total - step) / (total - warm)
        return share * self.run["optimizer"]["params"]["lr"]

    def loss(self, model, part, targets, pairs):
        """The part of one micro-batch in the step's two means."""
        rows = {k: torch.tensor([s[k] for s in part])
                for k in ("input_ids", "token_type_ids", "labels")}
        used = torch.tensor([max(s["position_ids"]) + 1 for s in part])[:, None]
        out = model(attention_mask=(torch.arange(self.length) < used).long(),
                    input_ids=rows["input_ids"], token_type_ids=rows["token_type_ids"])
        entropy = torch.nn.functional.cross_entropy
        words = entropy(out.prediction_logits.flatten(0, 1), rows["labels"].flatten(),
                        reduction="sum")
        follows = torch.tensor([s["next_sentence_label"][0] for s in part])
        return words / targets + entropy(out.seq_relationship_logits, follows,
                                         reduction="sum") / pairs

    def theirs(self, told):
        model = transformers.BertForPreTraining.from_pretrained(self.model).train()
        optimizer, losses = self.optimizer(model), []
        for step in range(self.args.steps):
            batch = told[step * self.batch:(step + 1) * self.batch]
            targets = sum(label >= 0 for s in batch for label in s["labels"])
            total = 0.0
            optimizer.zero_grad()
            for at in range(0, self.batch, self.batch // 8):
                loss = self.loss(model, batch[at:at + self.batch // 8], targets, len(batch))
                loss.backward()
                total += float(loss.detach())
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            for group in optimizer.param_groups:
                group["lr"] = self.rate(step)
            optimizer.step()
            losses.append(total)
        return losses

    def compare(self):
        """The folder of the weights, and whether all is as asked."""
        ours, rates = self.ours()
        theirs = self.theirs(self.samples())
        far = max(abs(a / b - 1) for a, b in zip(ours, theirs))
        same = max(abs(r - self.rate(i)) for i, r in enumerate(rates)) < 1e-9
        out = self.folder / "out" / "checkpoints" / "latest"
        _, info = transformers.BertForPreTraining.from_pretrained(out, output_loading_info=True)
        wrong = {k: sorted(v) for k, v in info.items() if v}
        for i in sorted({0, len(ours) // 2, len(ours) - 1}):
            print(f"  step {i + 1}: {ours[i]:.5f}, transformers {theirs[i]:.5f}")
        print(f"  {len(ours)} of {self.args.steps} steps of {self.batch} x {self.length}: losses at "
              f"most {far:.2g} apart; rates {'equal' if same else 'DIFFER'}; "
              f"transformers loads all: {not wrong or wrong}", flush=True)
        return out, len(ours) == self.args.steps and far <= WITHIN and same and not wrong


def draw_model(args, folder):
    torch.manual_seed(SEED)
    words = len(transformers.AutoTokenizer.from_pretrained(args.tokenizer))
    transformers.BertForPreTraining(transformers.BertConfig(
        vocab_size=words, hidden_size=128, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=512, max_position_embeddings=2 * args.length, hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0)).save_pretrained(folder)


def main():
    args = read_options()
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as own:
        work = pathlib.Path(args.keep or own)
        work.mkdir(exist_ok=True)
        (work / "documents.txt").write_text("\n\n".join(documents()))
        draw_model(args, work / "initial")
        good = True
        for recipe in args.recipe or ["base", "lamb"]:
            print(recipe)
            if recipe == "base":
                phases = [("bert-base.json", args.length, args.batch)]
            else:
                phases = [("bert-large-128.json", args.length, args.batch),
                          ("bert-large-512.json", 2 * args.length, args.batch // 2)]
            model = work / "initial"
            for i, (example, length, batch) in enumerate(phases):
                phase = Phase(args, work, f"{recipe}-{i + 1}", example, model, length, batch)
                model, fine = phase.compare()
                good = good and fine
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
