"""PyTorch modules as they are: losses and weights of PyTorch's, in several cuts and
stages, and what is refused."""

from __future__ import annotations

import copy
import unittest
from typing import Any

from common import HAS_TORCH, needs_torch
from modules import CUTS, ROWS, Modules, config

import tranche

if HAS_TORCH:
    import torch
    import torch.nn.functional as F
    from torch import nn

USAGE, DATA = tranche.Status.USAGE, tranche.Status.DATA
if HAS_TORCH:

    class Block(nn.Module):
        """Of a residual network."""

        def __init__(self, wide: int, out: int, stride: int) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(wide, out, 3, stride, 1, bias=False)
            self.norm1 = nn.BatchNorm2d(out)
            self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
            self.norm2 = nn.BatchNorm2d(out)
            self.down = nn.Conv2d(wide, out, 1, stride, bias=False)

        def forward(self, x: Any) -> Any:
            y = F.relu(self.norm1(self.conv1(x)), inplace=True)
            y = self.norm2(self.conv2(y))
            y += self.down(x)
            return F.relu(y)

    class Images(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3, 1, 1)
            self.pool = nn.MaxPool2d(2)
            self.blocks = nn.Sequential(Block(4, 4, 1), Block(4, 8, 2))
            self.head = nn.Linear(8, 5)

        def forward(self, x: Any) -> Any:
            x = self.blocks(self.pool(F.relu(self.conv(x))))
            return self.head(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))

    class Decoder(nn.Module):
        """A layer of GPT-2, as it is often written."""

        def __init__(self, width: int, heads: int) -> None:
            super().__init__()
            self.heads = heads
            self.norm1 = nn.LayerNorm(width)
            self.qkv = nn.Linear(width, 3 * width)
            self.out = nn.Linear(width, width)
            self.norm2 = nn.LayerNorm(width)
            self.mlp = nn.Sequential(
                nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
            )

        def forward(self, x: Any) -> Any:
            rows, length, width = x.shape
            q, k, v = (
                part.view(rows, length, self.heads, width // self.heads).transpose(1, 2)
                for part in self.qkv(self.norm1(x)).split(width, dim=2)
            )
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).contiguous().view(rows, length, width))
            return x + self.mlp(self.norm2(x))

    class Text(nn.Module):
        """Returns its loss; the table of tokens is the head, too."""

        def __init__(self, words: int = 32, length: int = 6, width: int = 16) -> None:
            super().__init__()
            self.wte = nn.Embedding(words, width)
            self.wpe = nn.Embedding(length, width)
            self.layers = nn.ModuleList([Decoder(width, 2) for _ in range(2)])
            self.norm = nn.LayerNorm(width)
            self.head = nn.Linear(width, words, bias=False)
            self.head.weight = self.wte.weight

        def forward(self, ids: Any, labels: Any) -> Any:
            x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1]))
            for layer in self.layers:
                x = layer(x)
            logits = self.head(self.norm(x))
            return F.cross_entropy(logits.view(-1, logits.shape[-1]), labels.view(-1))

    class Gated(nn.Module):
        """A gate and a pooler, of operators that have ops of their own."""

        def __init__(self) -> None:
            super().__init__()
            self.gate, self.up = nn.Linear(6, 20), nn.Linear(6, 20)
            self.down, self.head = nn.Linear(20, 6), nn.Linear(6, 4)

        def forward(self, x: Any) -> Any:
            y = self.down(F.silu(self.gate(x)) * self.up(x))
            return self.head(torch.tanh(x * y))

    class Odd(nn.Module):
        """Of operators that the library lacks, and a parameter that is none of a
        layer's."""

        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(6, 8)
            self.second = nn.Linear(8, 4)
            self.scale = nn.Parameter(torch.rand(8))

        def forward(self, x: Any) -> Any:
            h = torch.sin(self.first(x)) * self.scale
            return F.log_softmax(self.second(h.sort(dim=1)[0] + h), dim=1)

    class Places(nn.Module):
        """Rows of a table of positions are added to those of ids."""

        def __init__(self, longest: int) -> None:
            super().__init__()
            self.token = nn.Embedding(11, 6)
            self.position = nn.Embedding(longest, 6)
            self.head = nn.Linear(5 * 6, 4)

        def forward(self, ids: Any) -> Any:
            x = self.token(ids) + self.position.weight[: ids.shape[1]]
            return self.head(x.flatten(1))

    def images() -> tuple[Any, Any]:
        return torch.randn(ROWS, 3, 8, 8), torch.randint(0, 5, (ROWS,))

    def text() -> tuple[Any, Any]:
        ids = torch.randint(0, 32, (ROWS, 7))
        labels = ids[:, 1:].clone()
        labels[0, :3] = -100
        return ids[:, :-1], labels

    def rows() -> tuple[Any, Any]:
        return torch.randn(ROWS, 6), torch.randint(0, 4, (ROWS,))


@needs_torch
class Families(Modules):
    def test_images(self) -> None:
        for cut in CUTS:
            with self.subTest(cut):
                engine = self.like_torch(
                    Images(), [images() for _ in range(3)], nn.CrossEntropyLoss(), cut
                )
                self.assertEqual(engine.in_torch, [])

    def test_text(self) -> None:
        for cut in CUTS:
            with self.subTest(cut):
                engine = self.like_torch(Text(), [text() for _ in range(3)], None, cut)
                self.assertEqual(engine.in_torch, [])

    def test_gates(self) -> None:
        for cut in CUTS:
            with self.subTest(cut):
                engine = self.like_torch(
                    Gated(), [rows() for _ in range(3)], nn.CrossEntropyLoss(), cut
                )
                self.assertEqual(engine.in_torch, [])

    def test_rows_of_a_table(self) -> None:
        for longest in (5, 8):
            for cut in CUTS:
                with self.subTest(longest=longest, cut=cut):
                    batches = [
                        (torch.randint(0, 11, (ROWS, 5)), torch.randint(0, 4, (ROWS,)))
                        for _ in range(3)
                    ]
                    module = Places(longest)
                    engine = self.like_torch(module, batches, nn.CrossEntropyLoss(), cut)
                    self.assertEqual(engine.in_torch, [])

    def test_other_operators_run_in_torch(self) -> None:
        for cut in CUTS:
            with self.subTest(cut):
                engine = self.like_torch(
                    Odd(), [rows() for _ in range(3)], nn.NLLLoss(), cut
                )
                told = " ".join(each.operators for each in engine.in_torch)
                self.assertIn("sin", told)
                self.assertIn("test_module.py", engine.in_torch[0].line)

    def test_dropout(self) -> None:
        module = nn.Sequential(nn.Linear(6, 64), nn.Dropout(0.5), nn.Linear(64, 4))
        batch = rows()
        engine, *_ = tranche.initialize(
            model=module, config=config(), loss=nn.CrossEntropyLoss()
        )
        losses = [float(engine.train_batch(iter([batch]))) for _ in range(30)]
        self.assertLess(losses[-1], losses[0] / 2)
        self.assertEqual(engine.in_torch, [])

    def test_losses_of_numbers(self) -> None:
        for loss in (nn.MSELoss(), nn.L1Loss(), lambda y, t: (y - t).square().mean()):
            module = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2))
            batch = [(torch.randn(ROWS, 6), torch.randn(ROWS, 2)) for _ in range(3)]
            self.like_torch(module, batch, loss, CUTS[0])

    def test_losses_of_classes(self) -> None:
        """Logits that are no layer's product, and other ways to count."""
        weights = torch.tensor([1.0, 2.0, 0.5, 1.0])
        short = tuple(tensor[:5] for tensor in rows())
        for body, loss in (
            ([], nn.CrossEntropyLoss(weights, label_smoothing=0.1)),
            ([nn.Tanh()], nn.CrossEntropyLoss(label_smoothing=0.2)),
            ([nn.Softsign()], nn.CrossEntropyLoss()),
            ([nn.LogSoftmax(1)], nn.NLLLoss(weights)),
            ([], lambda y, t: F.cross_entropy(y / 2, t, ignore_index=3)),
        ):
            module = nn.Sequential(nn.Linear(6, 4), *body)
            for cut in CUTS[:2]:
                with self.subTest(str(loss)):
                    given = [rows(), rows(), short]
                    fresh = copy.deepcopy(module)
                    self.like_torch(fresh, given, loss, cut, whole=True)

    def test_classes_of_pixels_and_tokens(self) -> None:
        labels = torch.randint(0, 4, (2, ROWS, 3, 5))
        labels[:, :, 0] = -100
        pixels = nn.Sequential(nn.Conv2d(3, 6, 1), nn.ReLU(), nn.Conv2d(6, 4, 1))
        batches = [(torch.randn(ROWS, 3, 3, 5), each) for each in labels]
        self.like_torch(pixels, batches, nn.CrossEntropyLoss(), CUTS[0], whole=True)
        tokens = nn.Sequential(nn.Linear(6, 4), nn.Tanh())
        batches = [(torch.randn(ROWS, 5, 6), each[:, 1]) for each in labels]
        for loss in (
            lambda y, t: F.cross_entropy(y.transpose(1, 2), t),
            lambda y, t: F.cross_entropy(y.reshape(-1, 4), t.reshape(-1)),
        ):
            fresh = copy.deepcopy(tokens)
            self.like_torch(fresh, batches, loss, CUTS[1], whole=True)

    def test_frozen_parameters_stay(self) -> None:
        module = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4))
        module[0].weight.requires_grad_(False)
        before = module[0].weight.clone()
        engine = self.like_torch(
            module, [rows() for _ in range(2)], nn.CrossEntropyLoss(), {}
        )
        self.assertTrue(torch.equal(engine.module.state_dict()["0.weight"], before))

    def test_a_short_batch(self) -> None:
        module = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4))
        short = tuple(tensor[:5] for tensor in rows())
        self.like_torch(module, [rows(), short, rows()], nn.CrossEntropyLoss(), CUTS[0])


@needs_torch
class Refused(Modules):
    def train(self, module: Any, batch: Any, loss: Any = None, **more: Any) -> Any:
        engine, *_ = tranche.initialize(model=module, config=config(), loss=loss, **more)
        engine.train_batch(iter([batch]))
        return engine

    def test_operators_that_mix_rows(self) -> None:
        class Centered(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.layer = nn.Linear(6, 4)

            def forward(self, x: Any) -> Any:
                return self.layer(self.mix(x))

        for name, mix in (
            ("mean", lambda x: x - x.mean(0)),
            ("sort", lambda x: torch.sort(x, dim=0)[0] + 1),
            ("softmax", lambda x: torch.softmax(x, 0)),
            ("cumsum", lambda x: x.cumsum(0)),
            ("einsum", lambda x: torch.einsum("bi,bj->ij", x, x)[:1] + x),
            ("flip", lambda x: x.flip(0)),
            ("roll", lambda x: torch.roll(x, 1)),
        ):
            module = Centered()
            module.mix = mix
            with self.subTest(name), self.refused(USAGE, name, "test_module.py", "mix"):
                self.train(module, rows(), nn.CrossEntropyLoss())

    def test_fallback_refuse(self) -> None:
        with self.refused(USAGE, "sin", "test_module.py", "fallback"):
            self.train(Odd(), rows(), nn.NLLLoss(), fallback="refuse")

    def test_a_loss_that_is_no_mean(self) -> None:
        with self.refused(USAGE, "sum", "mean over all targets"):
            self.train(nn.Linear(6, 4), rows(), lambda y, t: y.sum())

    def test_what_export_cannot_follow(self) -> None:
        class Branch(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.layer = nn.Linear(6, 4)

            def forward(self, x: Any) -> Any:
                return self.layer(x) if x.sum() > 0 else self.layer(-x)

        with self.refused(USAGE, "torch.export cannot follow", "test_module.py"):
            self.train(Branch(), rows(), nn.CrossEntropyLoss())

    def test_a_module_on_meta(self) -> None:
        with self.refused(USAGE, "weight", "meta"):
            self.train(nn.Linear(6, 4, device="meta"), rows(), nn.CrossEntropyLoss())

    def test_configs(self) -> None:
        module = nn.Linear(6, 4)
        with self.refused(USAGE, "two configs"):
            tranche.initialize(model=module, config=config(), config_params=config())
        with self.refused(USAGE, "no config"):
            tranche.initialize(model=module)
        with self.refused(USAGE, "train_batch_size"):
            tranche.initialize(model=module, config={})
        with self.assertRaises(TypeError):
            tranche.initialize(model=module, config=config(), lossy=1)  # type: ignore[call-arg]
        with self.refused(USAGE, "fallback"):
            tranche.initialize(model=module, config=config(), fallback="numpy")

    def test_batches(self) -> None:
        engine = self.train(nn.Linear(6, 4), rows(), nn.CrossEntropyLoss())
        x, y = rows()
        for batch, words in (
            ((torch.cat([x, x]), torch.cat([y, y])), ["16 rows in a batch of 8"]),
            ((x[:, :5], y), ["input", "[8, 5]", "6"]),
            ((x.long(), y), ["input", "int64"]),
            ((x, y[:5]), ["equally many rows"]),
        ):
            with self.refused(USAGE, *words):
                engine.train_batch(iter([batch]))
        with self.refused(DATA, "7 is not in [0, 4)"):
            engine.train_batch(iter([(x, y * 0 + 7)]))
        engine.train_batch(iter([(x, y)]))  # and it is usable
        self.assertEqual(engine.global_steps, 2)

    def test_a_short_batch_under_batch_norm(self) -> None:
        engine = self.train(Images(), images(), nn.CrossEntropyLoss())
        short = tuple(tensor[:5] for tensor in images())
        with self.refused(USAGE, "5 rows of 8", "drop_last"):
            engine.train_batch(iter([short]))

    def test_an_iterator_that_raises(self) -> None:
        class Broken:
            def __getitem__(self, index: int) -> Any:
                raise ZeroDivisionError("row 3")

        engine = self.train(nn.Linear(6, 4), rows(), nn.CrossEntropyLoss())
        with self.assertRaisesRegex(ZeroDivisionError, "row 3"):
            engine.train_batch(iter(Broken()))

    def test_optimizers_that_are_not_taken_over(self) -> None:
        module = nn.Linear(6, 4)
        optimizer = torch.optim.RMSprop(module.parameters())
        with self.refused(USAGE, "RMSprop"):
            self.train(module, rows(), nn.CrossEntropyLoss(), optimizer=optimizer)

    def test_what_deepspeed_has_and_ours_has_not(self) -> None:
        engine, *_ = tranche.initialize(model=nn.Linear(6, 4), config=config())
        with self.refused(USAGE, "offload_states"):
            engine.offload_states()
        with self.assertRaises(AttributeError):
            engine.nothing_of_the_kind  # noqa: B018


if __name__ == "__main__":
    unittest.main()
