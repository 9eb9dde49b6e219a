"""What tests of PyTorch modules share: a module is trained by PyTorch and by Tranche, and
losses and weights are compared."""

from __future__ import annotations

import copy
import logging
from typing import Any

from common import HAS_TORCH, InFolder

import tranche

if HAS_TORCH:
    import torch

ROWS = 8
CUTS: list[dict[str, Any]] = [
    {"train_micro_batch_size_per_gpu": 3},
    {"train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": 2}},
    {"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}}},
]


def config(**changes: Any) -> dict[str, Any]:
    return {
        "train_batch_size": ROWS,
        "gradient_clipping": 1.0,
        "execution": {"threads": 2},
        "optimizer": {"type": "SGD", "params": {"lr": 0.1, "momentum": 0.9}},
        **changes,
    }


class Modules(InFolder):
    def setUp(self) -> None:
        super().setUp()
        if HAS_TORCH:
            torch.manual_seed(1)
        logging.getLogger("tranche").setLevel(logging.ERROR)

    def like_torch(
        self,
        module: Any,
        batches: list[Any],
        loss: Any,
        cut: dict[str, Any],
        tolerance: float = 1e-4,
        whole: bool = False,
    ) -> Any:
        """Trains both ways, and compares each loss and all weights. whole: no operator
        may run in PyTorch."""
        plain = copy.deepcopy(module)
        engine, *_ = tranche.initialize(
            model=module,
            config=config(**cut),
            loss=loss,
            fallback="refuse" if whole else "torch",
        )
        optimizer = torch.optim.SGD(plain.parameters(), lr=0.1, momentum=0.9)
        given = iter(batches)
        for batch in batches:
            found = engine.train_batch(given)
            wanted = _loss(plain, batch, loss)
            optimizer.zero_grad()
            wanted.backward()
            torch.nn.utils.clip_grad_norm_(plain.parameters(), 1.0)
            optimizer.step()
            self.assertAlmostEqual(float(found), float(wanted.detach()), delta=1e-5)
        state = engine.module.state_dict()
        self.assertEqual(list(state), list(plain.state_dict()))
        for name, values in plain.state_dict().items():
            torch.testing.assert_close(
                state[name],
                values,
                atol=tolerance,
                rtol=tolerance,
                msg=lambda m, n=name: f"{n}: {m}",  # type: ignore[misc]
            )
        return engine


def _loss(module: Any, batch: Any, loss: Any) -> Any:
    if isinstance(batch, dict):
        found = module(**batch)
        return found if isinstance(found, torch.Tensor) else found.loss
    return loss(module(*batch[:-1]), batch[-1]) if loss else module(*batch)
