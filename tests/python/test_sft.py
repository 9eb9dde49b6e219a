"""tranche.hf.SFTTrainer comes to the losses of TRL's own, and says what it does not do."""

from __future__ import annotations

import importlib.util
import logging
import os
import sys
import unittest
from typing import Any

from common import InFolder, run_python
from test_trainer import HAS_TRAINER, arguments, logged

import tranche

HAS_TRL = HAS_TRAINER and all(map(importlib.util.find_spec, ("trl", "datasets")))
HAS_PEFT = importlib.util.find_spec("peft") is not None
if HAS_TRL:
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import chats
    import datasets
    import torch
    import transformers
    import trl

    from tranche import hf

    datasets.disable_progress_bars()

USAGE = tranche.Status.USAGE
needs_trl = unittest.skipUnless(HAS_TRL, "trl or datasets is not installed")


@needs_trl
class OneRank(InFolder):
    def setUp(self) -> None:
        super().setUp()
        logging.getLogger("tranche").setLevel(logging.ERROR)

    def trainer(self, kind: Any, out: str, data: Any = None, **changes: Any) -> Any:
        """kind: trl or tranche.hf."""
        told = ("eval_dataset", "peft_config", "callbacks")
        given = {name: changes.pop(name) for name in told if name in changes}
        if "row_length" in changes:  # SFTConfig has a max_length, too
            given["max_length"] = changes.pop("row_length")
        of_class = changes.pop("trainer_class", kind.SFTTrainer)
        config = changes.pop("config_class", kind.SFTConfig)
        small = {"per_device_train_batch_size": 2, "max_steps": 5, "bf16": False}
        found = of_class(
            model=chats.model(),
            args=arguments(config, out, **{**small, **changes}),
            train_dataset=datasets.Dataset.from_list(chats.messages())
            if data is None
            else data,
            processing_class=chats.tokenizer(),
            **given,
        )
        found.remove_callback(transformers.PrinterCallback)
        return found

    def beside(self, **changes: Any) -> Any:
        """Both train, to the same losses, rates and weights."""
        wanted = self.trainer(trl, "theirs", **changes)
        wanted.train()
        found = self.trainer(hf, "ours", **changes)
        found.train()
        keys = ("loss", "learning_rate", "num_tokens", "eval_loss")
        for key in (*keys, "eval_mean_token_accuracy"):
            ours, theirs = logged(found, key), logged(wanted, key)
            self.assertEqual(len(ours), len(theirs), key)
            for a, b in zip(ours, theirs, strict=True):
                self.assertAlmostEqual(a, b, delta=1e-4, msg=key)
        self.assertEqual(len(logged(found)), wanted.state.global_step)
        state = wanted.model.state_dict()
        for name, values in found.model.state_dict().items():
            torch.testing.assert_close(values, state[name], atol=1e-4, rtol=1e-3)
        return found

    def test_chats_by_the_library_s_own_model(self) -> None:
        data = datasets.Dataset.from_list(chats.messages(9, 7))
        found = self.beside(
            **{"eval_dataset": data, "eval_strategy": "steps", "eval_steps": 2}
        )
        self.assertEqual(len(logged(found, "eval_loss")), 3)
        self.assertEqual(logged(self.native()), logged(found))

    def test_epochs_that_end_short(self) -> None:
        data = datasets.Dataset.from_list(chats.messages(21))
        self.beside(data=data, max_steps=-1, num_train_epochs=2, warmup_steps=3)

    def test_what_counts_in_the_loss(self) -> None:
        self.beside(data=datasets.Dataset.from_list(chats.completions()))
        self.beside(assistant_only_loss=True)

    def test_pieces_of_one_length(self) -> None:
        packed = {"packing": True, "packing_strategy": "wrapped"}
        args = {"max_steps": 4, "gradient_accumulation_steps": 1}
        self.beside(**packed, **args)

    def native(self, **changes: Any) -> Any:
        """Every step is the library's own model's."""

        class Native(transformers.TrainerCallback):  # type: ignore[misc]
            def on_step_end(this, *_: Any, **__: Any) -> None:
                self.assertIsNotNone(trainer.engine.native)

        trainer = self.trainer(hf, "again", callbacks=[Native()], **changes)
        trainer.train()
        return trainer

    def test_texts_that_share_rows(self) -> None:
        data = datasets.Dataset.from_list(chats.messages(9, 7))
        packed = {"packing": True, "max_length": 48, "assistant_only_loss": True}
        args = {"gradient_accumulation_steps": 1, "max_steps": 6, "save_steps": 1000}
        evaluated = {"eval_dataset": data, "eval_strategy": "steps", "eval_steps": 3}
        self.beside(**packed, **args, **evaluated)
        self.native(**packed, **args)

    def test_rows_without_padding(self) -> None:
        free = {"padding_free": True, "max_length": None}
        self.beside(**free, pad_to_multiple_of=8)
        self.beside(**free, per_device_train_batch_size=1)
        self.native(**free)

    def test_rows_of_texts_in_parts(self) -> None:
        """The module itself, of which PyTorch gives the graph, reads such rows, too."""
        packed = {"packing": True, "max_length": 48, "gradient_accumulation_steps": 1}
        self.beside(**packed, loss_type="dft", learning_rate=1e-2)
        self.beside(**packed, label_smoothing_factor=0.1)

    @unittest.skipUnless(HAS_PEFT, "peft is not installed")
    def test_an_adapter_on_rows_of_texts(self) -> None:
        import peft

        config = peft.LoraConfig(r=4, target_modules="all-linear", task_type="CAUSAL_LM")
        packed = {"packing": True, "max_length": 48}
        self.beside(**packed, peft_config=config, learning_rate=1e-2)

    def test_a_stream(self) -> None:
        def stream() -> Any:
            yield from chats.messages()

        self.beside(data=datasets.IterableDataset.from_generator(stream))

    def test_other_losses(self) -> None:
        self.beside(loss_type="dft", learning_rate=1e-2)
        self.beside(label_smoothing_factor=0.1)

    def test_a_compute_loss_of_a_subclass(self) -> None:
        def of(base: Any) -> Any:
            class Half(base):  # type: ignore[misc]
                def compute_loss(self, *given: Any, **named: Any) -> Any:
                    return super().compute_loss(*given, **named) / 2

            return Half

        found = [
            self.trainer(kind, "out", trainer_class=of(kind.SFTTrainer))
            for kind in (trl, hf)
        ]
        for trainer in found:
            trainer.train()
        for a, b in zip(*map(logged, found), strict=True):
            self.assertAlmostEqual(a, b, delta=1e-4)

    @unittest.skipUnless(HAS_PEFT, "peft is not installed")
    def test_an_adapter(self) -> None:
        import peft

        config = peft.LoraConfig(r=4, target_modules="all-linear", task_type="CAUSAL_LM")
        self.beside(peft_config=config, learning_rate=1e-2)

    def test_a_config_of_deepspeed_s(self) -> None:
        config = {
            "zero_optimization": {"stage": 2, "reduce_bucket_size": "auto"},
            "gradient_clipping": "auto",
            "train_batch_size": "auto",
        }
        wanted = self.trainer(trl, "theirs")
        wanted.train()
        found = self.trainer(hf, "ours", deepspeed=config)
        found.train()
        for a, b in zip(logged(found), logged(wanted), strict=True):
            self.assertAlmostEqual(a, b, delta=1e-4)
        other = self.trainer(
            hf, "other", deepspeed=config, config_class=hf.TrainingArguments
        )
        self.assertIsInstance(other.args, hf.SFTConfig)
        self.assertEqual(other.args.engine_config, config)

    def test_resumes_to_the_same_bits(self) -> None:
        saving = {"save_strategy": "steps", "save_steps": 3}
        whole = self.trainer(hf, "whole", **saving)
        whole.train()
        again = self.trainer(hf, "whole", **saving)
        again.train(resume_from_checkpoint="whole/checkpoint-3")
        self.assertEqual(logged(again), logged(whole))

    def test_arguments_without_effect_are_named(self) -> None:
        with self.assertLogs("tranche", logging.WARNING) as told:
            self.trainer(hf, "out", activation_offloading=True)
        self.assertIn("without effect: activation_offloading", told.output[0])
        self.assertNotIn("checkpointing", told.output[0])  # TRL's default

    def test_what_is_refused(self) -> None:
        with self.refused(USAGE, "texts of", "max_length"):
            self.trainer(hf, "out", row_length=7).train()


class WithoutTrl(unittest.TestCase):
    @unittest.skipUnless(HAS_TRAINER, "transformers or accelerate is not installed")
    def test_an_import_says_what_is_missing(self) -> None:
        code = "import sys; sys.modules['trl'] = None\nfrom tranche.hf import SFTTrainer"
        done = run_python(code)
        self.assertEqual(done.returncode, 1, sys.version)
        self.assertIn("tranche.hf.SFTTrainer needs TRL", done.stderr)


if __name__ == "__main__":
    unittest.main()
