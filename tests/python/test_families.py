"""Families of models that become ops of the library whole: each is trained beside
PyTorch, and no operator may run there."""

from __future__ import annotations

import importlib.util
import unittest
from typing import Any

from common import HAS_TORCH, needs_torch
from modules import CUTS, ROWS, Modules

import tranche

if HAS_TORCH:
    import torch
    import torch.nn.functional as F
    from torch import nn

HAS_TRANSFORMERS = HAS_TORCH and importlib.util.find_spec("transformers") is not None
needs_transformers = unittest.skipUnless(HAS_TRANSFORMERS, "transformers is not installed")
WORDS, LENGTH = 32, 7
SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


def language() -> dict[str, Any]:
    ids = torch.randint(0, WORDS, (ROWS, LENGTH))
    labels = ids.clone()
    labels[0, :3] = -100
    return {"input_ids": ids, "labels": labels}


def gpt2(**changes: Any) -> Any:
    from transformers import GPT2Config, GPT2LMHeadModel

    sizes = {"n_positions": 16, "n_embd": 16, "n_layer": 2, "n_head": 2}
    rates = {"resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0}
    more = {"bos_token_id": 0, "eos_token_id": 0, **changes}
    return GPT2LMHeadModel(GPT2Config(vocab_size=WORDS, **sizes, **rates, **more))


def right_padded() -> dict[str, Any]:
    """Texts of several lengths; padding has no labels."""
    ids = torch.randint(1, WORDS, (ROWS, LENGTH))
    lengths = torch.randint(2, LENGTH + 1, (ROWS, 1))
    there = torch.arange(LENGTH) < lengths
    return {
        "input_ids": ids * there,
        "attention_mask": there.long(),
        "labels": torch.where(there, ids, -100),
    }


def joined() -> dict[str, Any]:
    """Texts that share rows, whose first tokens are no targets."""
    found = language()
    starts = torch.rand(ROWS, LENGTH) < 0.3
    starts[:, 0] = True
    counted = torch.arange(LENGTH).expand(ROWS, LENGTH)
    first = torch.where(starts, counted, 0).cummax(1).values
    found["labels"] = torch.where(starts, -100, found["labels"])
    return {**found, "position_ids": counted - first}


def masked() -> dict[str, Any]:
    """Padded texts of two types, of which some tokens are to be told."""
    found = right_padded()
    told = torch.rand(ROWS, LENGTH) < 0.4
    told[:, 0] = True
    found["labels"] = torch.where(told, found["labels"], -100)
    found["token_type_ids"] = torch.randint(0, 2, (ROWS, LENGTH))
    return found


def padded() -> dict[str, Any]:
    mask = torch.ones(ROWS, LENGTH, dtype=torch.long)
    mask[0, 4:] = 0
    return {
        "input_ids": torch.randint(1, WORDS, (ROWS, LENGTH)),
        "attention_mask": mask,
        "token_type_ids": torch.randint(0, 2, (ROWS, LENGTH)),
        "labels": torch.randint(0, 3, (ROWS,)),
    }


def pictures() -> dict[str, Any]:
    return {
        "pixel_values": torch.randn(ROWS, 3, 8, 8),
        "labels": torch.randint(0, 3, (ROWS,)),
    }


@needs_torch
@needs_transformers
class Transformers(Modules):
    def whole(self, module: Any, batch: Any, cut: int, native: bool = False) -> Any:
        """native: the library's own model is taken."""
        module.train()
        batches = [batch() for _ in range(2)]
        engine = self.like_torch(module, batches, None, CUTS[cut], whole=True)
        self.assertEqual(engine.native is not None, native)
        return engine

    def test_gpt2(self) -> None:
        self.whole(gpt2(), language, 0, native=True)

    def test_llama_with_shared_keys(self) -> None:
        from transformers import LlamaConfig, LlamaForCausalLM

        sizes = LlamaConfig(
            vocab_size=WORDS,
            intermediate_size=24,
            num_key_value_heads=1,
            use_cache=False,
            **SIZES,
        )
        self.whole(LlamaForCausalLM(sizes), language, 1, native=True)

    def test_qwen3_with_norms_of_heads(self) -> None:
        from transformers import Qwen3Config, Qwen3ForCausalLM

        sizes = Qwen3Config(
            vocab_size=WORDS,
            intermediate_size=24,
            num_key_value_heads=2,
            head_dim=8,
            use_cache=False,
            **SIZES,
        )
        self.whole(Qwen3ForCausalLM(sizes), language, 2, native=True)

    def test_bert_with_a_mask_of_the_batch(self) -> None:
        from transformers import BertConfig, BertForSequenceClassification

        sizes = BertConfig(
            vocab_size=WORDS, intermediate_size=32, num_labels=3, **SIZES, **NO_DROPOUT
        )
        self.whole(BertForSequenceClassification(sizes), padded, 0)

    def test_roberta_whose_places_are_counted(self) -> None:
        from transformers import RobertaConfig, RobertaForSequenceClassification

        sizes = RobertaConfig(
            vocab_size=WORDS,
            intermediate_size=32,
            num_labels=3,
            max_position_embeddings=16,
            **SIZES,
            **NO_DROPOUT,
        )

        def texts() -> dict[str, Any]:
            return {n: t for n, t in padded().items() if n != "token_type_ids"}

        self.whole(RobertaForSequenceClassification(sizes), texts, 2)

    def test_bert_that_fills_in(self) -> None:
        from transformers import BertConfig, BertForMaskedLM

        sizes = BertConfig(
            vocab_size=WORDS, intermediate_size=32, **SIZES, **NO_DROPOUT
        )
        self.whole(BertForMaskedLM(sizes), masked, 1, native=True)

    def test_texts_that_share_rows(self) -> None:
        from transformers import LlamaConfig, LlamaForCausalLM

        sizes = LlamaConfig(
            vocab_size=WORDS, intermediate_size=24, use_cache=False, **SIZES
        )
        self.whole(LlamaForCausalLM(sizes), joined, 1, native=True)
        self.whole(gpt2(), joined, 2)  # its cache lets texts of a row see each other
        engine = self.whole(gpt2(use_cache=False), joined, 0, native=True)
        batch = joined()
        batch["position_ids"] = batch["position_ids"] + 1
        with self.refused(tranche.Status.USAGE, "position_ids", "begin at 0"):
            engine.train_batch(iter([batch]))

    def test_a_padded_text_and_what_is_refused(self) -> None:
        engine = self.whole(gpt2(), right_padded, 0, native=True)
        left = right_padded()
        left["attention_mask"] = left["attention_mask"].flip(1)
        for batch, words in (
            (left, ["attention_mask", "padding_side"]),
            ({**right_padded(), "labels": language()["input_ids"]}, ["labels", "-100"]),
            ({**language(), "position_ids": left["input_ids"]}, ["position_ids"]),
            ({n: t[:, 1:] for n, t in language().items()}, ["[8, 6]", "[rows, 7]"]),
        ):
            with self.refused(tranche.Status.USAGE, *words):
                engine.train_batch(iter([batch]))
        wrong = {**language(), "input_ids": language()["input_ids"] + WORDS}
        with self.refused(tranche.Status.DATA, "is not in [0, 32)"):
            engine.train_batch(iter([wrong]))
        engine.save_checkpoint("saved")
        batch = right_padded()
        once = float(engine.train_batch(iter([batch])))
        engine.load_checkpoint("saved")
        self.assertIsNotNone(engine.native)
        self.assertEqual(float(engine.train_batch(iter([batch]))), once)

    def test_a_changed_forward_is_exported(self) -> None:
        class Halved(nn.LayerNorm):
            def forward(self, x: Any) -> Any:
                return super().forward(x) * 0.5

        module = gpt2()
        module.transformer.ln_f = Halved(16)
        self.whole(module, language, 0)

    def test_padding_in_front_is_exported(self) -> None:
        def left() -> dict[str, Any]:
            found = {name: t.flip(1) for name, t in right_padded().items()}
            first = found["attention_mask"].argmax(1, keepdim=True)
            found["labels"].scatter_(1, first, -100)  # padding comes before it
            return found

        self.like_torch(gpt2(), [left(), left()], None, CUTS[0])

    def test_vit(self) -> None:
        from transformers import ViTConfig, ViTForImageClassification

        sizes = ViTConfig(
            intermediate_size=32,
            image_size=8,
            patch_size=4,
            num_labels=3,
            **SIZES,
            **NO_DROPOUT,
        )
        self.whole(ViTForImageClassification(sizes), pictures, 1)


if HAS_TORCH:

    class Inverted(nn.Module):
        """A block of MobileNetV3: a filter for each channel, and a gate for it."""

        def __init__(self, wide: int) -> None:
            super().__init__()
            self.grow = nn.Conv2d(wide, 3 * wide, 1, bias=False)
            self.norm = nn.BatchNorm2d(3 * wide)
            self.each = nn.Conv2d(3 * wide, 3 * wide, 5, 1, 2, groups=3 * wide)
            self.gate = nn.Conv2d(3 * wide, 3 * wide, 1)
            self.shrink = nn.Conv2d(3 * wide, wide, 1)

        def forward(self, x: Any) -> Any:
            y = F.relu6(self.each(F.hardswish(self.norm(self.grow(x)))))
            y = y * F.hardsigmoid(self.gate(F.adaptive_avg_pool2d(y, 1)))
            return x + self.shrink(y)

    class Mobile(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stem = nn.Conv2d(3, 8, (3, 5), (2, 1), (1, 2))
            self.blocks = nn.Sequential(Inverted(8), Inverted(8))
            self.norm = nn.GroupNorm(2, 8)
            self.wide = nn.Conv2d(8, 8, 3, padding=2, dilation=2, groups=2)
            self.head = nn.Linear(8, 5)

        def forward(self, x: Any) -> Any:
            x = F.leaky_relu(self.stem(F.pad(x, [0, 1, 0, 1])))
            x = F.elu(self.wide(self.norm(self.blocks(x))))
            return self.head(x.mean([2, 3]))

    class Mixed(nn.Module):
        """What modules do with tensors between layers."""

        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(6, 12), nn.Linear(12, 6, bias=False)
            self.scale = nn.Parameter(torch.rand(6) + 0.5)
            self.token = nn.Parameter(torch.rand(1, 1, 6))
            self.norm = nn.LayerNorm(6, elementwise_affine=False)
            self.head = nn.Linear(6, 4)

        def forward(self, x: Any) -> Any:
            x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1)
            gate, value = self.first(x).chunk(2, -1)
            y = torch.sigmoid(gate) * value * self.scale + x / (1 + x.square())
            y = torch.softmax(y @ y.transpose(1, 2) * 0.3, -1) @ y
            y = y - y.mean(1, keepdim=True)
            y = self.norm(y.permute(0, 2, 1).reshape(y.shape[0], -1, 6))
            z = torch.exp(-y.abs()) + torch.sqrt(F.softplus(y[:, 1:3].sum(1, keepdim=True)))
            return self.head(torch.tanh(z.clamp(-1, 1.5)).mean(1))

    class Encoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            layer = nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True)
            self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.head = nn.Linear(16, 4)

        def forward(self, x: Any) -> Any:
            mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
            return self.head(self.layers(x, mask, is_causal=True)[:, -1])


@needs_torch
class Layers(Modules):
    def test_mobile_net(self) -> None:
        for cut in CUTS[:2]:
            batches = [
                (torch.randn(ROWS, 3, 7, 7), torch.randint(0, 5, (ROWS,)))
                for _ in range(2)
            ]
            with self.subTest(cut):
                loss = nn.CrossEntropyLoss()
                self.like_torch(Mobile(), batches, loss, cut, 1e-3, whole=True)

    def test_between_layers(self) -> None:
        for cut in CUTS:
            batches = [
                (torch.randn(ROWS, 5, 6), torch.randint(0, 4, (ROWS,))) for _ in range(3)
            ]
            with self.subTest(cut):
                self.like_torch(
                    Mixed(), batches, nn.CrossEntropyLoss(), cut, whole=True
                )

    def test_torch_s_transformer(self) -> None:
        batches = [
            (torch.randn(ROWS, 5, 16), torch.randint(0, 4, (ROWS,))) for _ in range(2)
        ]
        for cut in CUTS[:2]:
            with self.subTest(cut):
                self.like_torch(
                    Encoder(), batches, nn.CrossEntropyLoss(), cut, whole=True
                )

    def test_losses_of_elements(self) -> None:
        for loss in (nn.MSELoss(), nn.BCEWithLogitsLoss()):
            module = nn.Sequential(nn.Linear(6, 8), nn.Sigmoid(), nn.Linear(8, 2))
            batches = [(torch.randn(ROWS, 6), torch.rand(ROWS, 2)) for _ in range(3)]
            short = tuple(tensor[:5] for tensor in batches[0])
            with self.subTest(str(loss)):
                self.like_torch(module, [*batches, short], loss, CUTS[0], whole=True)

    def test_targets_that_do_not_count(self) -> None:
        class Ignoring(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.table, self.head = nn.Embedding(9, 8), nn.Linear(8, 9)

            def forward(self, ids: Any, labels: Any) -> Any:
                logits = self.head(self.table(ids)).flatten(0, 1)
                return F.cross_entropy(logits, labels.flatten(), ignore_index=-1)

        ids, labels = torch.randint(0, 9, (2, ROWS, 5))
        labels[0, :3] = -1
        self.like_torch(Ignoring(), [(ids, labels)] * 2, None, CUTS[0], whole=True)


if __name__ == "__main__":
    unittest.main()
