"""A model of transformers learns chats by transformers' Trainer on several ranks of this
machine, with a config of DeepSpeed's: its steps are DeepSpeed's, or Tranche's. Prints
tokens a second of all ranks together, the largest peak of memory of one, and each step's
loss, as the peers report them.

    trainer.py FOLDER TEXT --steps-by tranche|deepspeed [--stage 2] [--ranks 2]
               [--launcher torchrun|mpirun] [--length 256] [--micro-batch 2]
               [--accumulation 2] [--steps 20] [--threads 1] [--memory BYTES]

--memory is the budget of a rank's process, within which Tranche plans.

It starts its ranks itself. Chats are pieces of TEXT, of many lengths: a question of 8 to
24 words, and an answer of up to 160. Tokens that are padding are not counted.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import statistics
import sys
import tempfile
import time
from typing import Any


def read_options() -> argparse.Namespace:
    options = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    options.add_argument("folder")
    options.add_argument("text")
    options.add_argument("--steps-by", choices=["tranche", "deepspeed"], required=True)
    options.add_argument("--launcher", choices=["torchrun", "mpirun"], default="torchrun")
    for name, value in (("stage", 2), ("ranks", 2), ("length", 256), ("threads", 1)):
        options.add_argument(f"--{name}", type=int, default=value)
    for name, value in (("micro-batch", 2), ("accumulation", 2), ("steps", 20)):
        options.add_argument(f"--{name}", type=int, default=value)
    options.add_argument("--memory", type=int)
    return options.parse_args()


def launch(args: argparse.Namespace) -> None:
    """Becomes the launcher of this script on so many ranks."""
    os.environ["OMP_NUM_THREADS"] = str(args.threads)
    if args.steps_by == "deepspeed":
        os.environ["DS_ACCELERATOR"] = "cpu"
    ranks = str(args.ranks)
    words = ["tranche", "launch", "-n", ranks]
    if args.launcher == "torchrun":
        words = ["torch.distributed.run", "--standalone", "--nproc-per-node", ranks]
    os.execv(sys.executable, [sys.executable, "-m", *words, *sys.argv])


def is_rank() -> bool:
    return "LOCAL_RANK" in os.environ or "OMPI_COMM_WORLD_RANK" in os.environ


# ---- what is trained on


class Chats:
    """Samples of input_ids and labels: answers are learnt."""

    def __init__(self, path: str, tokenizer: Any, count: int, length: int) -> None:
        with open(path, errors="replace") as file:
            words = [word for word in file.read(4_000_000).split() if word.isalpha()]
        drawn = random.Random(1)
        self.samples = []
        for _ in range(count):
            asked, told = drawn.randint(8, 24), drawn.randint(10, 160)
            at = drawn.randrange(len(words) - 200)
            question = {"role": "user", "content": " ".join(words[at : at + asked])}
            at += asked
            answer = {"role": "assistant", "content": " ".join(words[at : at + told])}
            ids = _tokens(tokenizer, [question, answer], False)[:length]
            begun = len(_tokens(tokenizer, [question], True))
            labels = [-100] * min(begun, len(ids)) + ids[begun:]
            self.samples.append({"input_ids": ids, "labels": labels})

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return self.samples[index]


def _tokens(tokenizer: Any, chat: Any, asks: bool) -> list[int]:
    text = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=asks)
    found: list[int] = tokenizer(text)["input_ids"]
    return found


# ---- the run


def config_of(args: argparse.Namespace) -> dict[str, Any]:
    auto = ("lr", "betas", "eps", "weight_decay")
    config: dict[str, Any] = {
        "zero_optimization": {"stage": args.stage},
        "optimizer": {"type": "AdamW", "params": {name: "auto" for name in auto}},
        "gradient_clipping": "auto",
        "train_batch_size": "auto",
        "train_micro_batch_size_per_gpu": "auto",
        "gradient_accumulation_steps": "auto",
    }
    if args.steps_by == "deepspeed":  # its own one for CPUs has to be compiled
        config["optimizer"]["params"]["torch_adam"] = True
    if args.memory:
        config["memory"] = {"total": args.memory}
    return config


def arguments_of(args: argparse.Namespace, kind: Any, out: str) -> Any:
    return kind(
        output_dir=out,
        deepspeed=config_of(args),
        per_device_train_batch_size=args.micro_batch,
        gradient_accumulation_steps=args.accumulation,
        max_steps=args.steps,
        learning_rate=1e-5,
        weight_decay=0.1,
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
        dataloader_pin_memory=False,
    )


def clock_of(transformers: Any) -> Any:
    class Clock(transformers.TrainerCallback):  # type: ignore[misc]
        """Seconds of each step."""

        def __init__(self) -> None:
            self.seconds: list[float] = []
            self.begin = 0.0

        def on_step_begin(self, *_: Any, **__: Any) -> None:
            self.begin = time.perf_counter()

        def on_step_end(self, *_: Any, **__: Any) -> None:
            self.seconds.append(time.perf_counter() - self.begin)

    return Clock()


def run(args: argparse.Namespace, out: str) -> None:
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    if args.steps_by == "tranche":
        from tranche.hf import Trainer, TrainingArguments
    else:
        from transformers import Trainer, TrainingArguments
    torch.set_num_threads(args.threads)
    # DeepSpeed's integration cuts the model as it is read, so it has to know first.
    training = arguments_of(args, TrainingArguments, out)
    if args.steps_by == "deepspeed":
        import deepspeed

        deepspeed.init_distributed("gloo")
    tokenizer = transformers.AutoTokenizer.from_pretrained(args.folder)
    samples = args.micro_batch * args.accumulation * args.ranks * args.steps
    chats = Chats(args.text, tokenizer, samples, args.length)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        args.folder, dtype=torch.float32
    )
    clock = clock_of(transformers)
    trainer = Trainer(
        model=model,
        args=training,
        train_dataset=chats,
        data_collator=transformers.DataCollatorForSeq2Seq(tokenizer),
        callbacks=[clock],
    )
    trainer.remove_callback(transformers.PrinterCallback)
    trainer.train()
    report(args, trainer, chats, clock.seconds)


def report(
    args: argparse.Namespace, trainer: Any, chats: Chats, seconds: list[float]
) -> None:
    import torch

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    peaks = [peak] * trainer.args.world_size
    torch.distributed.all_gather_object(peaks, peak)
    if trainer.args.process_index:
        return
    tokens = sum(len(sample["input_ids"]) for sample in chats.samples) / args.steps
    rate = tokens / statistics.median(seconds[1:] or seconds)
    told = trainer.state.log_history
    figures = {
        "tokens_per_second": round(rate, 2),
        "peak_bytes": max(peaks),
        "tokens_a_step": round(tokens, 1),
        "losses": [each["loss"] for each in told if "loss" in each],
    }
    print(json.dumps(figures))


def main() -> None:
    args = read_options()
    if not is_rank():
        launch(args)
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    out = tempfile.mkdtemp()
    try:
        run(args, out)
    finally:
        shutil.rmtree(out, ignore_errors=True)


if __name__ == "__main__":
    main()
