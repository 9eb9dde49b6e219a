"""A program for transformers' Trainer with another import: a language model goes on with
a text, in blocks of equal length.

    python examples/python/language_model.py --model FOLDER --text FILE --output_dir OUT \
        --do_train --do_eval --max_steps 20 --use_cpu

Further options are those of TrainingArguments; --deepspeed takes DeepSpeed's config.
"""

import math
from dataclasses import dataclass
from itertools import chain

import transformers
from datasets import load_dataset

from tranche.hf import Trainer, TrainingArguments


@dataclass
class Options:
    model: str
    text: str
    block_size: int = 128
    validation_percentage: int = 10


parser = transformers.HfArgumentParser((Options, TrainingArguments))
options, training = parser.parse_args_into_dataclasses()
transformers.set_seed(training.seed)

tokenizer = transformers.AutoTokenizer.from_pretrained(options.model)
model = transformers.AutoModelForCausalLM.from_pretrained(options.model)


def tokens_of(texts):
    return tokenizer(texts["text"])


def blocks_of(texts):
    size = options.block_size
    found = {}
    for name, rows in texts.items():
        every = list(chain(*rows))
        ends = range(size, len(every) + 1, size)
        found[name] = [every[end - size : end] for end in ends]
    return {**found, "labels": found["input_ids"]}


def part(percentages):
    lines = load_dataset(
        "text", data_files={"train": options.text}, split=f"train[{percentages}]"
    )
    tokens = lines.map(tokens_of, batched=True, remove_columns=["text"])
    return tokens.map(blocks_of, batched=True)


with training.main_process_first():
    train = part(f"{options.validation_percentage}%:")
    validation = part(f":{options.validation_percentage}%")


def chosen(logits, labels):
    return (logits[0] if isinstance(logits, tuple) else logits).argmax(-1)


def accuracy(found):
    ids, labels = found
    return {"accuracy": float((ids[:, :-1] == labels[:, 1:]).mean())}


trainer = Trainer(
    model=model,
    args=training,
    train_dataset=train,
    eval_dataset=validation,
    processing_class=tokenizer,
    data_collator=transformers.default_data_collator,
    compute_metrics=accuracy,
    preprocess_logits_for_metrics=chosen,
)
if training.do_train:
    result = trainer.train(resume_from_checkpoint=training.resume_from_checkpoint)
    trainer.save_model()
    trainer.log_metrics("train", result.metrics)
    trainer.save_state()
if training.do_eval:
    metrics = trainer.evaluate()
    metrics["perplexity"] = math.exp(metrics["eval_loss"])
    trainer.log_metrics("eval", metrics)
    trainer.save_metrics("eval", metrics)
