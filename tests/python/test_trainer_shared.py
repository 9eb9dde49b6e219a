"""tranche.hf.Trainer on ranks that share a model: stages of a pipeline, and tensor
ranks."""

from __future__ import annotations

import unittest
from typing import Any, ClassVar

import test_trainer_ranks as of_ranks
from test_trainer import needs_trainer

STAGES = {"pipeline": {"stages": 2}}


@needs_trainer
class SharedModels(of_ranks.OnRanks):
    """Ranks that share a model train on the same rows; a pipeline's last stage has the
    outputs."""

    EPOCHS: ClassVar[dict[str, Any]] = {
        "max_steps": -1,
        "num_train_epochs": 2,
        "eval_strategy": "epoch",
        "include_num_input_tokens_seen": "all",
        "even": True,
    }

    def both(self, config: Any, data_ranks: int = 1, **more: Any) -> list[float]:
        """Two ranks that share a model come to the losses of one."""
        wanted = self.told("theirs", ranks=data_ranks, **self.EPOCHS, **more)
        more = {**self.EPOCHS, **more, "deepspeed": config}
        found = self.told("hf", ranks=2 * data_ranks, **more)
        self.alike(found, wanted)
        self.same_models()
        return found

    def both_and_again(self, config: Any, **more: Any) -> None:
        more.update(save_strategy="steps", save_steps=5)
        found = self.both(config, **more)
        more = {**self.EPOCHS, **more, "deepspeed": config}
        again = self.told("hf", **more, resume="hf/checkpoint-5")
        self.assertEqual(again, found)

    def test_the_plan_has_the_loss(self) -> None:
        self.both_and_again(STAGES)

    def test_the_loss_is_the_trainer_s(self) -> None:
        """An epoch's last batch is short, and so is its last step."""
        self.both_and_again(STAGES, label_smoothing_factor=0.1)

    def test_data_ranks_of_two_stages(self) -> None:
        self.both(STAGES, 2, label_smoothing_factor=0.1, logging_steps=3)

    def test_ranks_that_share_layers(self) -> None:
        self.both({"tensor_parallel": {"size": 2}})

    def test_what_cannot_be_shared_out(self) -> None:
        """All ranks end before a step."""
        for config, more, said in (
            ({"pipeline": {"stages": 3}}, {}, "2 ranks are no multiple"),
            (STAGES, {"stream": True}, "train_dataset is a stream"),
        ):
            done = self.start("hf", deepspeed=config, **more)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(f"Error: {said}", done.stderr)


if __name__ == "__main__":
    unittest.main()
