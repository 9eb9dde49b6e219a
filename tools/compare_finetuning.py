#!/usr/bin/env python3
"""compare_finetuning.py FOLDER [--steps N] [--batch T] [--length L] [--dora]
                      [--program FILE] [--keep FOLDER]

Fine-tunes the model of a Hugging Face folder with a chat template on chats, with
Tranche and with PEFT and transformers, and compares the two. The chats ask what a
function of Python does; its documentation on this machine answers. Both begin from one
adapter that PEFT draws, take the same samples in the same order, and count the loss on
the same tokens (those that `tranche inspect --samples` shows). Tranche is killed
(SIGKILL) in the middle and resumes. Then PEFT loads Tranche's last checkpoint, and so
does Tranche; both are asked for the loss of the first samples. Ends with 1 where losses
of a step are over 1% apart, where resuming lost or repeated a step, or where the two
differ about the checkpoint. Needs torch, transformers and peft.
"""
import argparse
import importlib
import inspect
import json
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODULES = ("os", "shutil", "json", "random", "math", "statistics", "textwrap", "re",
           "subprocess", "socket", "datetime", "tempfile", "itertools", "functools",
           "heapq", "bisect", "collections", "pathlib", "string", "logging")
WITHIN = 0.01


def read_options():
    options = argparse.ArgumentParser(description=__doc__.split("\n\n")[1])
    options.add_argument("folder")
    options.add_argument("--steps", type=int, default=12)
    options.add_argument("--batch", type=int, default=4)
    options.add_argument("--length", type=int, default=128)
    options.add_argument("--dora", action="store_true")
    options.add_argument("--program", default=str(ROOT / "build" / "tranche"))
    options.add_argument("--keep", help="a folder for all files, in place of one that goes")
    return options.parse_args()


def chats():
    found = []
    for name in MODULES:
        for member, value in sorted(vars(importlib.import_module(name)).items()):
            text = inspect.getdoc(value) if inspect.isroutine(value) else None
            if text and not member.startswith("_"):
                answer = " ".join(text.split("\n\n")[0].split())
                question = f"What does {name}.{member} of Python do?"
                found.append([{"role": "user", "content": question},
                              {"role": "assistant", "content": answer}])
    random.Random(1).shuffle(found)
    return found


def write_run(args, work):
    records = chats()
    (work / "chats.jsonl").write_text(
        "".join(json.dumps({"messages": chat}) + "\n" for chat in records))
    print(f"{len(records)} chats")
    run = {"model": args.folder, "adapter": {"path": str(work / "first")},
           "data": {"format": "jsonl", "train": [str(work / "chats.jsonl")],
                    "max_length": args.length, "loss_on": "assistant",
                    "order": "sequential"},
           "steps": args.steps, "train_batch_size": args.batch,
           "checkpoint": {"every": 2}, "out": str(work / "out"),
           "optimizer": {"type": "AdamW", "params": {
               "lr": 2e-4, "betas": [0.9, 0.999], "eps": 1e-8, "weight_decay": 0.01}},
           "gradient_clipping": 1.0}
    (work / "run.json").write_text(json.dumps(run, indent=1))


def losses_of(work):
    lines = (work / "out" / "metrics.jsonl").read_text().splitlines()
    return [json.loads(line)["loss"] for line in lines if '"loss"' in line]


def train(args, work):
    """Tranche's losses; it is killed once half of the steps are done."""
    command = [args.program, "train", str(work / "run.json")]
    half = args.steps // 2
    with open(work / "killed.log", "w") as log:
        running = subprocess.Popen(command, stdout=log, stderr=log)
        metrics = work / "out" / "metrics.jsonl"
        while running.poll() is None:
            if metrics.exists() and len(losses_of(work)) > half:
                running.send_signal(signal.SIGKILL)
                break
            time.sleep(0.05)
        status = running.wait()
    if status != -signal.SIGKILL:
        sys.exit(f"the first run was not killed: it ended with {status}\n"
                 + (work / "killed.log").read_text())
    print(f"killed after step {len(losses_of(work))} of {args.steps}")
    again = subprocess.run(command, capture_output=True, text=True)
    if again.returncode:
        sys.exit(again.stderr)
    return losses_of(work)


def samples(args, work):
    """Token ids and labels, [samples][length], as Tranche trains on them."""
    shown = subprocess.run(
        [args.program, "inspect", str(work / "run.json"), "--json", "--samples",
         str(args.steps * args.batch)], capture_output=True, text=True, check=True)
    told = json.loads(shown.stdout)["samples"]
    return [s["input_ids"] for s in told], [s["labels"] for s in told]


def loss_of(model, ids, labels):
    import torch
    logits = model(input_ids=ids).logits.float()
    return torch.nn.functional.cross_entropy(
        logits.reshape(-1, logits.shape[-1]), labels.reshape(-1), ignore_index=-100)


def base_of(args):
    import torch
    import transformers
    return transformers.AutoModelForCausalLM.from_pretrained(
        args.folder, dtype=torch.float32)


def draw_adapter(args, work):
    import torch
    from peft import LoraConfig, get_peft_model
    torch.manual_seed(1)
    get_peft_model(base_of(args), LoraConfig(
        r=8, lora_alpha=16, target_modules="all-linear", use_dora=args.dora,
        task_type="CAUSAL_LM")).save_pretrained(work / "first")


def train_peft(args, work, ids, labels):
    import torch
    from peft import PeftModel
    model = PeftModel.from_pretrained(base_of(args), work / "first", is_trainable=True)
    model.train()
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=2e-4, betas=(0.9, 0.999), eps=1e-8,
                                  weight_decay=0.01)
    told = []
    for at in range(0, args.steps * args.batch, args.batch):
        loss = loss_of(model, ids[at : at + args.batch], labels[at : at + args.batch])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        told.append(loss.item())
    return told


def loaded_by_both(args, work, ids, labels):
    """The loss of the first samples by the last checkpoint: PEFT's, Tranche's."""
    import torch
    from peft import PeftModel
    last = work / "out" / "checkpoints" / "latest"
    model = PeftModel.from_pretrained(base_of(args), last).eval()
    with torch.no_grad():
        theirs = loss_of(model, ids[: args.batch], labels[: args.batch]).item()
    lines = (work / "chats.jsonl").read_text().splitlines()[: args.batch]
    (work / "few.jsonl").write_text("\n".join(lines) + "\n")
    told = subprocess.run(
        [args.program, "evaluate", str(work / "out"), "--data", str(work / "few.jsonl"),
         "--json"], capture_output=True, text=True, check=True)
    return theirs, json.loads(told.stdout)["loss"]


def compare(args, work):
    import torch
    draw_adapter(args, work)
    write_run(args, work)
    ids, labels = (torch.tensor(each) for each in samples(args, work))
    ours = train(args, work)
    theirs = train_peft(args, work, ids, labels)
    if len(ours) != len(theirs):
        sys.exit(f"{len(ours)} steps in metrics.jsonl, not {len(theirs)}")
    apart = [abs(a - b) / b for a, b in zip(ours, theirs)]
    print("step   Tranche     PEFT    apart")
    for step, (a, b, d) in enumerate(zip(ours, theirs, apart), 1):
        print(f"{step:4d}  {a:8.5f} {b:8.5f}  {d:7.1e}")
    loaded, own = loaded_by_both(args, work, ids, labels)
    print(f"the last checkpoint: loss {loaded:.5f} by PEFT, {own:.5f} by Tranche")
    good = max(apart) < WITHIN and abs(loaded - own) < WITHIN * loaded
    print(f"the largest difference of a step: {max(apart):.1e}")
    return 0 if good else 1


def main():
    args = read_options()
    if args.keep:
        work = pathlib.Path(args.keep).resolve()
        work.mkdir(parents=True)
        return compare(args, work)
    with tempfile.TemporaryDirectory() as work:
        return compare(args, pathlib.Path(work))


if __name__ == "__main__":
    sys.exit(main())
