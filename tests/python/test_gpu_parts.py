"""A step in parts on a GPU: outputs, gradients and parameters are PyTorch's tensors in its
memory, and steps are those of PyTorch alone on the same GPU. Skipped where PyTorch has no
GPU, or the library has no device."""

from __future__ import annotations

import copy
import ctypes
import gc
import unittest
from collections.abc import Callable, Sequence
from typing import Any

from common import HAS_TORCH, InFolder, needs_torch

import tranche

if HAS_TORCH:
    import torch
    import torch.nn.functional as F
    from torch import nn

STEPS = 3


def _why_not() -> str:
    """Why there is no GPU for both; "": there is."""
    if not HAS_TORCH:
        return "torch is not installed"
    if not torch.cuda.is_available():
        return "PyTorch has no GPU"
    try:
        run = tranche.Run(
            {
                "model": {"model_type": "mlp", "layer_sizes": [4, 2]},
                "data": {"format": "random", "samples": 8, "features": 4, "classes": 2},
                "steps": 1,
                "train_batch_size": 4,
                "device": "cuda",
            }
        )
        run.plan()
    except tranche.Error as error:
        return str(error)
    return ""


WHY_NOT = _why_not()
needs_gpu = unittest.skipIf(bool(WHY_NOT), WHY_NOT)

if HAS_TORCH:

    class Block(nn.Module):
        """Of a transformer, with attention that sees what is before it, or all."""

        def __init__(self, width: int, heads: int, causal: bool) -> None:
            super().__init__()
            self.heads, self.causal = heads, causal
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            rows, length, width = x.shape
            q, k, v = (
                part.view(rows, length, self.heads, width // self.heads).transpose(1, 2)
                for part in self.qkv(self.norm1(x)).split(width, dim=2)
            )
            y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
            x = x + self.out(y.transpose(1, 2).contiguous().view(rows, length, width))
            return x + self.down(F.gelu(self.up(self.norm2(x))))

    class Texts(nn.Module):
        """Logits of the words that follow; its table of words is its head, too."""

        def __init__(self, words: int = 96, length: int = 16, width: int = 64) -> None:
            super().__init__()
            self.words = nn.Embedding(words, width)
            self.places = nn.Embedding(length, width)
            self.blocks = nn.ModuleList([Block(width, 4, True) for _ in range(2)])
            self.norm = nn.LayerNorm(width)
            self.head = nn.Linear(width, words, bias=False)
            self.head.weight = self.words.weight
            nn.init.normal_(self.words.weight, std=0.1)

        def forward(self, ids: Any) -> Any:
            at = torch.arange(ids.shape[1], device=ids.device)
            x = self.words(ids) + self.places(at)
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x))

    class Classifier(nn.Module):
        """An encoder, and the class of its first token."""

        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(50, 64)
            self.blocks = nn.ModuleList([Block(64, 4, False) for _ in range(2)])
            self.head = nn.Linear(64, 5)

        def forward(self, ids: Any) -> Any:
            x = self.words(ids)
            for block in self.blocks:
                x = block(x)
            return self.head(x[:, 0])

    class Odd(nn.Module):
        """Operators that the library has not run in PyTorch: one with a constant, one
        that makes a tensor, one with a weight of its own."""

        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(12, 32), nn.Linear(32, 5)
            self.bent = nn.Parameter(torch.linspace(0.5, 1.5, 32))
            self.register_buffer("shift", torch.linspace(-1, 1, 32))

        def forward(self, x: Any) -> Any:
            h = self.first(x)
            h = torch.special.erfcx(h * h + 0.1) + self.shift
            h = torch.asinh(h * self.bent) + torch.arange(32, device=h.device) * 0.01
            return self.last(torch.cumsum(h, 1))


def mlp() -> Any:
    bends = (nn.GELU(), nn.Linear(64, 64), nn.ReLU())
    return nn.Sequential(nn.Linear(12, 64), *bends, nn.Linear(64, 5))


def rows_and_classes(count: int) -> list[Any]:
    return [(torch.randn(8, 12), torch.randint(0, 5, (8,))) for _ in range(count)]


def ids_and_next(count: int) -> list[Any]:
    found = [torch.randint(0, 96, (4, 17)) for _ in range(count)]
    return [(ids[:, :-1].contiguous(), ids[:, 1:].contiguous()) for ids in found]


def ids_and_classes(count: int) -> list[Any]:
    return [(torch.randint(0, 50, (8, 16)), torch.randint(0, 5, (8,))) for _ in range(count)]


def of_words(out: Any, target: Any) -> Any:
    return F.cross_entropy(out.flatten(0, 1).float(), target.flatten())


def of_classes(out: Any, target: Any) -> Any:
    return F.cross_entropy(out.float(), target)


def config(micro: int, steps: int = 1, **changes: Any) -> dict[str, Any]:
    return {
        "train_micro_batch_size_per_gpu": micro,
        "gradient_accumulation_steps": steps,
        "gradient_clipping": 1.0,
        "device": "cuda",
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "eps": 1e-6}},
        **changes,
    }


def adamw(module: Any) -> Any:
    """That of config()."""
    return torch.optim.AdamW(module.parameters(), lr=1e-3, eps=1e-6, weight_decay=0.01)


@needs_torch
@needs_gpu
class OnGpu(InFolder):
    def setUp(self) -> None:
        super().setUp()
        torch.manual_seed(1)
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False

    def like_torch(
        self,
        module: Any,
        batches: Sequence[Any],
        loss: Callable[[Any, Any], Any],
        cut: dict[str, Any],
        within: float = 1e-4,
        engine_does: Callable[[Any, Any], None] | None = None,
    ) -> Any:
        """Both train by the caller's loss on the GPU; each loss and all weights are
        compared."""
        plain = copy.deepcopy(module).cuda()
        optimizer = adamw(plain)
        engine, *_ = tranche.initialize(model=module, config=cut)
        steps = engine.gradient_accumulation_steps()
        self.assertEqual(engine.device.type, "cuda")
        half = cut.get("bf16", {}).get("enabled", False)
        for s in range(STEPS):
            optimizer.zero_grad()
            for x, y in batches[s * steps : (s + 1) * steps]:
                x, y = x.to(engine.device), y.to(engine.device)
                out = engine(x)
                self.assertEqual(out.device, engine.device)
                found = loss(out, y)
                engine.backward(found)
                engine.step()
                with torch.autocast("cuda", torch.bfloat16, enabled=half):
                    wanted = loss(plain(x), y)
                (wanted / steps).backward()
                away = abs(float(found.detach()) - float(wanted.detach()))
                self.assertLessEqual(away, 200 * within if half else 1e-4)
            torch.nn.utils.clip_grad_norm_(plain.parameters(), 1.0)
            optimizer.step()
        self.compare(engine, plain, within)
        if engine_does:
            engine_does(engine, plain)
        engine.destroy()
        return plain

    def plain_step(self, plain: Any, optimizer: Any, wanted: Any, found: Any) -> None:
        """PyTorch's step by its loss, beside which the engine's is."""
        optimizer.zero_grad()
        wanted.backward()
        torch.nn.utils.clip_grad_norm_(plain.parameters(), 1.0)
        optimizer.step()
        self.assertAlmostEqual(float(found.detach()), float(wanted.detach()), delta=1e-4)

    def compare(self, engine: Any, plain: Any, within: float) -> None:
        """Distances of all weights from PyTorch's."""
        state = engine.module.state_dict()
        for name, values in plain.state_dict().items():
            away = float((state[name].to(values.device) - values).abs().max())
            self.assertLessEqual(away, 10 * within, f"{name} is off by {away}")

    def test_mlp(self) -> None:
        self.like_torch(mlp(), rows_and_classes(3), of_classes, config(8))

    def test_accumulation(self) -> None:
        self.like_torch(mlp(), rows_and_classes(6), of_classes, config(8, 2))

    def test_texts(self) -> None:
        self.like_torch(Texts(), ids_and_next(3), of_words, config(4))

    def test_classifier(self) -> None:
        self.like_torch(Classifier(), ids_and_classes(3), of_classes, config(8))

    def test_in_bf16(self) -> None:
        half = {"bf16": {"enabled": True}}
        self.like_torch(Texts(), ids_and_next(3), of_words, config(4, **half), 5e-4)

    def test_operators_of_torch(self) -> None:
        def told(engine: Any, _: Any) -> None:
            self.assertTrue(engine.in_torch)

        self.like_torch(Odd(), rows_and_classes(3), of_classes, config(8), engine_does=told)

    def test_operators_of_torch_in_bf16(self) -> None:
        cut = config(8, bf16={"enabled": True})
        self.like_torch(Odd(), rows_and_classes(3), of_classes, cut, 5e-4)

    def test_optimizer_on_the_host(self) -> None:
        away = {"zero_optimization": {"stage": 0, "offload_optimizer": {"device": "cpu"}}}
        self.like_torch(mlp(), rows_and_classes(3), of_classes, config(8, **away))

    def test_module_on_the_gpu(self) -> None:
        """It says where, where the config does not, and is there afterwards."""
        cut = config(8)
        del cut["device"]
        module = mlp().cuda()
        self.like_torch(module, rows_and_classes(3), of_classes, cut)
        self.assertTrue(all(p.is_cuda for p in module.parameters()))

    def test_evaluation_and_views(self) -> None:
        """After eval() the module answers in PyTorch, on the engine's own weights."""

        def asked(engine: Any, plain: Any) -> None:
            x = torch.randn(8, 12, device="cuda")
            weight = engine.module[0].weight
            lent = engine._working().tensors["0.weight"].borrow()
            self.assertEqual(lent.device, "cuda:0")
            self.assertEqual(weight.data_ptr(), lent.address)
            engine.eval()
            with torch.no_grad():
                torch.testing.assert_close(engine(x), plain(x), atol=1e-3, rtol=1e-3)
            engine.train()

        self.like_torch(mlp(), rows_and_classes(3), of_classes, config(8), engine_does=asked)

    def test_short_batches_and_steps(self) -> None:
        """Rows that are missing have no gradient, nor have micro-batches."""
        engine, *_ = tranche.initialize(model=mlp(), config=config(8, 2))
        for rows in (8, 3, 5, 8):
            x = torch.randn(rows, 12, device="cuda")
            engine.backward(engine(x).square().mean())
            engine.step()
        self.assertEqual(engine.global_steps, 2)
        engine.backward(engine(torch.randn(8, 12, device="cuda")).square().mean())
        engine.set_gradient_accumulation_boundary(True)
        engine.step()
        self.assertEqual(engine.global_steps, 3)
        engine.destroy()

    def test_other_streams(self) -> None:
        """What PyTorch does in its current stream comes before the engine's next work,
        and behind the work before."""
        plain = copy.deepcopy(mod := mlp()).cuda()
        optimizer = adamw(plain)
        engine, *_ = tranche.initialize(model=mod, config=config(8))
        own = torch.cuda.Stream()
        for x, y in rows_and_classes(3):
            with torch.cuda.stream(own):
                x, y = x.cuda(), y.cuda()
                out = engine(x)
                torch.cuda._sleep(20_000_000)  # cycles, some 10 ms
                found = of_classes(out, y)
                engine.backward(found)
                engine.step()
                wanted = of_classes(plain(x), y)
                self.plain_step(plain, optimizer, wanted, found)
        self.compare(engine, plain, 1e-4)
        engine.destroy()

    def test_loss_inside(self) -> None:
        """train_batch takes batches on the GPU, too."""
        plain = copy.deepcopy(mod := Texts()).cuda()
        optimizer = adamw(plain)
        engine, *_ = tranche.initialize(model=mod, config=config(4), loss=of_words)
        for x, y in ids_and_next(3):
            x, y = x.cuda(), y.cuda()
            found = engine.train_batch(iter([(x, y)]))
            wanted = of_words(plain(x), y)
            self.plain_step(plain, optimizer, wanted, found)
        self.compare(engine, plain, 1e-4)
        engine.destroy()

    def test_loss_in_torch(self) -> None:
        """A loss that the library has no op for, of what is on the GPU."""

        def loss(out: Any, target: Any) -> Any:
            return F.huber_loss(torch.asinh(out), target)

        plain = copy.deepcopy(mod := mlp()).cuda()
        optimizer = adamw(plain)
        engine, *_ = tranche.initialize(model=mod, config=config(8), loss=loss)
        for _ in range(STEPS):
            x, y = torch.randn(8, 12).cuda(), torch.randn(8, 5).cuda()
            found = engine.train_batch(iter([(x, y)]))
            wanted = loss(plain(x), y)
            self.plain_step(plain, optimizer, wanted, found)
        self.compare(engine, plain, 1e-4)
        engine.destroy()

    def test_views_end_with_the_engine_or_before(self) -> None:
        """Memory comes back when all is let go."""
        before = torch.cuda.mem_get_info()[0]
        for _ in range(3):
            engine, *_ = tranche.initialize(model=mlp(), config=config(8))
            engine.backward(engine(torch.randn(8, 12, device="cuda")).square().mean())
            engine.step()
            engine.destroy()
            del engine
            gc.collect()
        after = torch.cuda.mem_get_info()[0]
        self.assertLess(before - after, 512 << 20)


if __name__ == "__main__":
    unittest.main()
