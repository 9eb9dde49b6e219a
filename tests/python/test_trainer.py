"""tranche.hf.Trainer comes to the losses of transformers' own, resumes, and says what
it does not do."""

from __future__ import annotations

import copy
import importlib.util
import json
import logging
import os
import unittest
from typing import Any
from unittest import mock

from common import HAS_TORCH, InFolder

import tranche

HAS_TRAINER = HAS_TORCH and all(
    importlib.util.find_spec(name) for name in ("transformers", "accelerate")
)
if HAS_TRAINER:
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import torch
    import transformers
    from torch import nn

    from tranche import hf

    transformers.logging.set_verbosity_error()

USAGE, IO = tranche.Status.USAGE, tranche.Status.IO
needs_trainer = unittest.skipUnless(
    HAS_TRAINER, "transformers or accelerate is not installed"
)
VOCABULARY = 64


def texts(count: int, seed: int = 5) -> list[dict[str, Any]]:
    """Of 6 to 19 tokens."""
    drawn = torch.Generator().manual_seed(seed)
    found = []
    for _ in range(count):
        length = int(torch.randint(6, 20, (1,), generator=drawn))
        ids = torch.randint(3, VOCABULARY, (length,), generator=drawn)
        found.append({"input_ids": ids, "labels": ids.clone()})
    return found


def collated(samples: Any) -> dict[str, Any]:
    """Padded to the longest of the batch, as collators do."""
    most = max(len(sample["input_ids"]) for sample in samples)

    def padded(values: Any, value: int) -> Any:
        return torch.nn.functional.pad(values, (0, most - len(values)), value=value)

    ids = [sample["input_ids"] for sample in samples]
    labels = [sample["labels"] for sample in samples]
    return {
        "input_ids": torch.stack([padded(each, 0) for each in ids]),
        "labels": torch.stack([padded(each, -100) for each in labels]),
        "attention_mask": torch.stack([padded(torch.ones_like(i), 0) for i in ids]),
    }


def language_model() -> Any:
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        pad_token_id=0,
    )
    return transformers.LlamaForCausalLM(config)


def arguments(kind: Any, out: str, **changes: Any) -> Any:
    given = {
        "output_dir": out,
        "per_device_train_batch_size": 4,
        "gradient_accumulation_steps": 2,
        "max_steps": 8,
        "logging_steps": 1,
        "learning_rate": 1e-3,
        "weight_decay": 0.1,
        "report_to": "none",
        "save_strategy": "no",
        "disable_tqdm": True,
        "use_cpu": True,
        "dataloader_pin_memory": False,
        **changes,
    }
    return kind(**given)


def logged(trainer: Any, key: str = "loss") -> list[float]:
    return [told[key] for told in trainer.state.log_history if key in told]


if HAS_TRAINER:

    class Classifier(nn.Module):
        """Returns its loss, the mean over its rows."""

        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(6, 16), nn.Linear(16, 4)

        def forward(self, features: Any, labels: Any = None) -> Any:
            logits = self.second(torch.relu(self.first(features)))
            found = {"logits": logits}
            if labels is not None:
                found = {"loss": nn.functional.cross_entropy(logits, labels), **found}
            return found


def rows(count: int = 44) -> list[dict[str, Any]]:
    drawn = torch.Generator().manual_seed(1)
    features = torch.randn(count, 6, generator=drawn)
    return [{"features": x, "labels": i % 4} for i, x in enumerate(features)]


class Beside(InFolder):
    def setUp(self) -> None:
        super().setUp()
        logging.getLogger("tranche").setLevel(logging.ERROR)

    def trainer(self, kind: Any, model: Any, out: str = "out", **changes: Any) -> Any:
        """kind: transformers or tranche.hf."""
        told = ("train_dataset", "eval_dataset", "data_collator", "callbacks")
        told += ("compute_loss_func", "compute_metrics", "optimizers", "max_length")
        given = {name: changes.pop(name) for name in told if name in changes}
        of_class = changes.pop("trainer_class", kind.Trainer)
        if kind is transformers:
            given.pop("max_length", None)
        found = of_class(
            model=model,
            args=arguments(kind.TrainingArguments, out, **changes),
            **{"train_dataset": texts(60), "data_collator": collated, **given},
        )
        found.remove_callback(transformers.PrinterCallback)
        return found

    def beside(self, model: Any, **changes: Any) -> Any:
        """Both train, to the same losses, rates, norms and weights."""
        wanted = self.trainer(transformers, copy.deepcopy(model), "theirs", **changes)
        wanted.train()
        found = self.trainer(hf, model, "ours", **changes)
        found.train()
        for key in ("loss", "grad_norm", "learning_rate", "eval_loss", "eval_share"):
            ours, theirs = logged(found, key), logged(wanted, key)
            self.assertEqual(len(ours), len(theirs), key)
            for a, b in zip(ours, theirs, strict=True):
                self.assertAlmostEqual(a, b, delta=1e-4, msg=key)
        self.assertGreater(len(logged(found)), 5)
        state = wanted.model.state_dict()
        for name, values in found.model.state_dict().items():
            torch.testing.assert_close(values, state[name], atol=1e-4, rtol=1e-3)
        return found

@needs_trainer
class OneRank(Beside):
    def test_twenty_steps_of_a_language_model(self) -> None:
        self.beside(language_model(), max_steps=20, lr_scheduler_type="cosine")

    def test_epochs_that_end_short(self) -> None:
        # 11 micro-batches of 4: the last step has one, of 2 rows.
        data = {"train_dataset": texts(42), "eval_dataset": texts(9, 7)}
        self.beside(
            language_model(),
            **data,
            max_steps=-1,
            num_train_epochs=2,
            warmup_steps=3,
            eval_strategy="epoch",
        )

    def test_a_mean_of_micro_batches(self) -> None:
        changes = {"train_dataset": rows(), "data_collator": None}
        self.beside(Classifier(), **changes)  # as the Trainer has it: each counts once
        self.beside(Classifier(), **changes, gradient_accumulation_steps=1)

    def test_other_losses(self) -> None:
        def twice(outputs: Any, labels: Any, num_items_in_batch: Any = None) -> Any:
            logits = outputs["logits"][:, :-1].flatten(0, 1)
            loss = nn.functional.cross_entropy(
                logits, labels[:, 1:].flatten(), reduction="sum"
            )
            return 2 * loss / num_items_in_batch

        same_length = [text for text in texts(400) if len(text["input_ids"]) == 12]
        changes = {"train_dataset": same_length, "max_steps": 6}
        self.beside(language_model(), **changes, compute_loss_func=twice)
        self.beside(language_model(), **changes, label_smoothing_factor=0.1)

    def test_a_compute_loss_of_a_subclass(self) -> None:
        def of(base: Any) -> Any:
            class Half(base):  # type: ignore[misc]
                def compute_loss(self, *given: Any, **named: Any) -> Any:
                    return super().compute_loss(*given, **named) / 2

            return Half

        for kind in (transformers, hf):
            half = of(kind.Trainer)
            trainer = self.trainer(kind, language_model(), trainer_class=half)
            trainer.train()
            if kind is transformers:
                wanted = logged(trainer)
        for a, b in zip(logged(trainer), wanted, strict=True):
            self.assertAlmostEqual(a, b, delta=1e-4)

    def test_rows_of_several_texts(self) -> None:
        """One row of all texts comes from the collator; each sees itself alone."""
        given = [{k: ids.tolist() for k, ids in text.items()} for text in texts(60)]
        told = {"return_flash_attn_kwargs": True, "return_seq_idx": True}
        collator = transformers.DataCollatorWithFlattening(**told)
        data = {"train_dataset": given, "data_collator": collator, "max_length": 24}
        self.beside(language_model(), **data)
        self.beside(language_model(), **data, label_smoothing_factor=0.1)

    def test_orders_of_texts(self) -> None:
        for name in ("group_by_length", "batch_rebalance", "sequential"):
            self.beside(language_model(), max_steps=6, train_sampling_strategy=name)

    def test_a_config_of_deepspeed_s(self) -> None:
        zero = {
            "stage": 2,
            "offload_optimizer": {"device": "cpu"},
            "reduce_bucket_size": "auto",
        }
        params = {"lr": "auto", "betas": "auto", "eps": "auto", "weight_decay": "auto"}
        config = {
            "zero_optimization": zero,
            "optimizer": {"type": "AdamW", "params": params},
            "gradient_clipping": "auto",
            "train_batch_size": "auto",
            "train_micro_batch_size_per_gpu": "auto",
            "gradient_accumulation_steps": "auto",
            "bf16": {"enabled": "auto"},
        }
        model = language_model()
        # DeepSpeed's optimizer decays all parameters.
        decayed = torch.optim.AdamW(model.parameters(), 1e-3, weight_decay=0.1)
        rates = torch.optim.lr_scheduler.LambdaLR(decayed, lambda i: 1 - i / 8)
        wanted = self.trainer(transformers, model, optimizers=(decayed, rates))
        wanted.train()
        for given in (config, json.dumps(config)):
            found = self.trainer(hf, language_model(), deepspeed=given)
            found.train()
            for key in ("loss", "learning_rate"):
                for a, b in zip(logged(found, key), logged(wanted, key), strict=True):
                    self.assertAlmostEqual(a, b, delta=1e-4)

    def test_a_scheduler_of_the_config(self) -> None:
        warmup = {"warmup_min_lr": "auto", "warmup_max_lr": "auto"}
        numbers = {"warmup_num_steps": "auto", "total_num_steps": "auto"}
        params = {**warmup, **numbers, "warmup_type": "linear"}
        scheduler = {"type": "WarmupDecayLR", "params": params}
        trainer = self.trainer(
            hf, language_model(), deepspeed={"scheduler": scheduler}, warmup_steps=2
        )
        trainer.train()
        rates = logged(trainer, "learning_rate")
        self.assertEqual(max(rates), 1e-3)
        self.assertLess(rates[-1], 4e-4)

    def test_resumes_to_the_same_bits(self) -> None:
        changes = {"save_strategy": "steps", "save_steps": 3}
        whole = self.trainer(hf, language_model(), "whole", **changes)
        whole.train()
        again = self.trainer(hf, language_model(), "whole", **changes)
        again.train(resume_from_checkpoint="whole/checkpoint-3")
        self.assertEqual(logged(again), logged(whole))
        for key in ("learning_rate", "grad_norm"):
            self.assertEqual(logged(again, key), logged(whole, key))
        state = whole.model.state_dict()
        for name, values in again.model.state_dict().items():
            self.assertTrue(torch.equal(values, state[name]), name)
        saved = transformers.LlamaForCausalLM.from_pretrained("whole/checkpoint-8")
        for name, values in saved.state_dict().items():
            self.assertTrue(torch.equal(values, state[name]), name)

    def test_the_best_model_comes_back(self) -> None:
        trainer = self.trainer(
            hf,
            language_model(),
            eval_dataset=texts(9, 7),
            learning_rate=0.1,
            load_best_model_at_end=True,
            **{"eval_strategy": "steps", "eval_steps": 1, "save_steps": 1},
            save_strategy="steps",
        )
        trainer.train()
        best = min(logged(trainer, "eval_loss"))
        self.assertAlmostEqual(trainer.evaluate()["eval_loss"], best, delta=1e-5)
        self.assertIsNone(trainer.engine)

    def test_a_checkpoint_of_transformers_own(self) -> None:
        changes = {"save_strategy": "steps", "save_steps": 4}
        self.trainer(transformers, language_model(), **changes).train()
        trainer = self.trainer(hf, language_model(), **changes)
        with self.refused(IO, "checkpoint-4", "optimizer that transformers"):
            trainer.train(resume_from_checkpoint="out/checkpoint-4")

    def test_a_callback_that_raises(self) -> None:
        class Raises(transformers.TrainerCallback):  # type: ignore[misc]
            def on_step_end(self, args: Any, state: Any, *_: Any, **__: Any) -> None:
                if state.global_step == 2:
                    raise ValueError("of a callback")

        model = language_model()
        trainer = self.trainer(hf, model, callbacks=[Raises()])
        with self.assertRaisesRegex(ValueError, "of a callback"):
            trainer.train()
        self.assertIsNone(trainer.engine)
        self.assertTrue(all(p.isfinite().all() for p in model.parameters()))

    def test_arguments_without_effect_are_named(self) -> None:
        trainer = self.trainer(
            hf,
            language_model(),
            **{"gradient_checkpointing": True, "torch_empty_cache_steps": 4},
            max_steps=1,
        )
        with self.assertLogs("tranche", logging.WARNING) as told:
            trainer.train()
        self.assertIn("gradient_checkpointing", told.output[0])
        self.assertIn("torch_empty_cache_steps", told.output[0])

    def test_what_is_refused(self) -> None:
        model = language_model()
        with self.refused(USAGE, "neftune_noise_alpha"):
            self.trainer(hf, model, neftune_noise_alpha=5.0)
        other = {"optimizer": {"type": "AdamW", "params": {"lr": 5.0}}}
        with self.refused(USAGE, "optimizer.params.lr is 5.0", "learning_rate says"):
            self.trainer(hf, model, deepspeed=other).train()
        unknown = {"zero_optimization": {"stage": "auto"}}
        with self.refused(USAGE, "zero_optimization.stage", "auto"):
            self.trainer(hf, model, deepspeed=unknown).train()
        with self.refused(USAGE, "there.json"):
            self.trainer(hf, model, deepspeed="there.json").train()
        with self.refused(USAGE, "optimizer", "Adam"):
            self.trainer(hf, model, optim="adafactor").train()
        with mock.patch.object(hf.TrainingArguments, "n_gpu", 2):
            with self.refused(USAGE, "2 GPUs", "torchrun"):
                self.trainer(hf, model)
        with self.refused(USAGE, "texts of", "max_length"):
            self.trainer(hf, model, max_length=7).train()
        with mock.patch.object(hf.TrainingArguments, "world_size", 2):
            with self.refused(USAGE, 'train_sampling_strategy="batch_rebalance"'):
                self.trainer(hf, model, train_sampling_strategy="batch_rebalance")


if __name__ == "__main__":
    unittest.main()
