"""Embeddings whose look-ups of one id give its row no gradient (padding_idx), in modules
and in the library's own models of transformers."""

from __future__ import annotations

import importlib.util
import unittest
from typing import Any

from common import HAS_TORCH, needs_torch
from modules import CUTS, ROWS, Modules

if HAS_TORCH:
    import torch
    from torch import nn

HAS_TRANSFORMERS = HAS_TORCH and importlib.util.find_spec("transformers") is not None
WORDS, LENGTH, WIDTH, PADDING = 9, 5, 8, 2

if HAS_TORCH:

    class Texts(nn.Module):
        """tied: the head trains the row that look-ups do not. made: ids are of the batch,
        and not in it."""

        def __init__(self, tied: bool, zeros: bool, made: bool = False) -> None:
            super().__init__()
            self.table = nn.Embedding(WORDS, WIDTH, padding_idx=PADDING)
            self.places = nn.Embedding(LENGTH, WIDTH, padding_idx=-1)
            self.head = nn.Linear(WIDTH, WORDS, bias=False)
            self.made = made
            with torch.no_grad():
                if not zeros:
                    self.table.weight.normal_()
                    self.places.weight.normal_()
            if tied:
                self.head.weight = self.table.weight

        def forward(self, ids: Any) -> Any:
            ids = (ids + 1) % WORDS if self.made else ids
            x = self.table(ids) + self.places(torch.arange(LENGTH))
            return self.head(torch.tanh(x)).transpose(1, 2)


def batch() -> tuple[Any, Any]:
    """The padding's token is in each text."""
    ids = torch.randint(0, WORDS, (ROWS, LENGTH))
    ids[:, 1] = PADDING
    labels = torch.randint(0, WORDS, (ROWS, LENGTH))
    labels[0, 2:] = -100
    return ids, labels


@needs_torch
class Padding(Modules):
    def test_modules(self) -> None:
        for number, module in enumerate(
            [
                Texts(tied=False, zeros=True),
                Texts(tied=False, zeros=False),
                Texts(tied=True, zeros=False),
                Texts(tied=False, zeros=False, made=True),
            ]
        ):
            for cut in CUTS:
                with self.subTest(number=number, cut=cut):
                    batches = [batch() for _ in range(3)]
                    loss = nn.CrossEntropyLoss()
                    engine = self.like_torch(module, batches, loss, cut, whole=True)
                    engine.destroy()

    def test_the_row_stays(self) -> None:
        module = Texts(tied=False, zeros=False)
        before = module.table.weight.detach().clone()
        last = module.places.weight.detach()[-1].clone()
        engine = self.like_torch(
            module, [batch() for _ in range(3)], nn.CrossEntropyLoss(), CUTS[0]
        )
        after = engine.module.state_dict()
        self.assertTrue(torch.equal(after["table.weight"][PADDING], before[PADDING]))
        self.assertFalse(torch.equal(after["table.weight"][0], before[0]))
        self.assertTrue(torch.equal(after["places.weight"][-1], last))

    @unittest.skipUnless(HAS_TRANSFORMERS, "transformers is not installed")
    def test_models_of_the_library(self) -> None:
        """Their pad_token_id is such a row, also where it is a token of the text."""
        import transformers

        for number, (kind, tied, padding) in enumerate(
            [
                ("Llama", False, PADDING),
                ("Llama", True, PADDING),
                ("Qwen2", True, PADDING),
                ("Qwen3", False, PADDING),
                ("Mistral", False, PADDING),
                ("Llama", False, None),
            ]
        ):
            config = getattr(transformers, f"{kind}Config")(
                vocab_size=WORDS,
                hidden_size=16,
                intermediate_size=24,
                num_hidden_layers=1,
                num_attention_heads=2,
                num_key_value_heads=2,
                head_dim=8,
                tie_word_embeddings=tied,
                pad_token_id=padding,
                use_cache=False,
            )
            module = getattr(transformers, f"{kind}ForCausalLM")(config).train()
            table = module.model.embed_tokens.weight
            with torch.no_grad():
                table.normal_(std=0.1)
            row = table.detach()[PADDING].clone()
            ids = [batch()[0] for _ in range(2)]
            batches = [{"input_ids": each, "labels": each} for each in ids]
            with self.subTest(kind=kind, tied=tied, padding=padding):
                engine = self.like_torch(
                    module, batches, None, CUTS[number % len(CUTS)], 1e-5, whole=True
                )
                self.assertIsNotNone(engine.native)
                name = "model.embed_tokens.weight"
                now = engine.module.state_dict()[name][PADDING]
                stays = not tied and padding is not None
                self.assertEqual(torch.equal(now, row), stays)
                engine.destroy()


if __name__ == "__main__":
    unittest.main()
