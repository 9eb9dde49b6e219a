"""PyTorch modules on the ranks that have been started, each with its share of the rows,
beside what PyTorch has of all rows.

    ranks_of_modules.py NAME...
"""

from __future__ import annotations

import copy
import logging
import sys
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

import tranche

MICRO, STEPS = 2, 2
CLASSES = nn.CrossEntropyLoss()


class Images(nn.Module):
    """Batch norm takes its statistics of the rows of all ranks."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, 1, 1, bias=False)
        self.norm = nn.BatchNorm2d(4)
        self.head = nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        return self.head(F.relu(self.norm(self.conv(x))).mean((2, 3)))


class Text(nn.Module):
    """Returns its loss, and shares a table."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True)
        self.table = nn.Embedding(16, 8)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(8, 16, bias=False)
        self.head.weight = self.table.weight

    def forward(self, ids: Any, labels: Any) -> Any:
        logits = self.head(self.layers(self.table(ids)))
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


class Odd(nn.Module):
    """Of operators that run in PyTorch."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(6, 8), nn.Linear(8, 4)

    def forward(self, x: Any) -> Any:
        return self.second(self.first(x).sort(dim=1)[0])


def classifier() -> Any:
    body = (nn.Linear(6, 8), nn.Sigmoid(), nn.Linear(8, 8), nn.Tanh())
    return nn.Sequential(*body, nn.Linear(8, 4))


def deep_classifier() -> Any:
    body = (nn.Linear(6, 8), nn.Tanh())
    more = (nn.Sequential(nn.Linear(8, 8), nn.Tanh()) for _ in range(6))
    return nn.Sequential(*body, *more, nn.Linear(8, 4))


def vectors(rows: int) -> tuple[Any, Any]:
    return torch.randn(rows, 6), torch.randint(0, 4, (rows,))


def images(rows: int) -> tuple[Any, Any]:
    return torch.randn(rows, 3, 6, 6), torch.randint(0, 4, (rows,))


def texts(rows: int) -> tuple[Any, Any]:
    """The first half has fewer targets, and so has the first rank."""
    ids = torch.randint(0, 16, (rows, 5))
    labels = ids.clone()
    labels[: rows // 2, :3] = -100
    return ids, labels


class Both:
    """A module by the engine and by PyTorch."""

    def __init__(self, module: Any, loss: Any, parts: int = 1, **changes: Any) -> None:
        """parts: ranks that share a model."""
        self.data_ranks = tranche.rank_count() // parts
        self.mine = tranche.rank() % self.data_ranks
        config: dict[str, Any] = {
            "train_batch_size": MICRO * STEPS * self.data_ranks,
            "train_micro_batch_size_per_gpu": MICRO,
            "gradient_clipping": 1.0,
            "execution": {"threads": 1},
            "optimizer": {"type": "SGD", "params": {"lr": 0.3, "momentum": 0.9}},
            **changes,
        }
        by_calls = config.pop("by_calls", False)
        self.loss, self.plain = loss, copy.deepcopy(module)
        self.optimizer = torch.optim.SGD(self.plain.parameters(), lr=0.3, momentum=0.9)
        self.engine = tranche.initialize(
            model=module, config=config, loss=None if by_calls else loss
        )[0]

    def rows(self) -> int:
        return MICRO * STEPS * self.data_ranks

    def part(self, batch: Any, step: int, rank: int) -> Any:
        begin = (rank * STEPS + step) * MICRO
        return tuple(tensor[begin : begin + MICRO] for tensor in batch)

    def of_plain(self, batch: Any) -> Any:
        if self.loss is None:
            return self.plain(*batch)
        return self.loss(self.plain(batch[0]), batch[1])

    def update_plain(self) -> None:
        nn.utils.clip_grad_norm_(self.plain.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()

    def train(self, batch: Any) -> None:
        mine = [self.part(batch, step, self.mine) for step in range(STEPS)]
        found = float(self.engine.train_batch(iter(mine)))
        wanted = self.of_plain(batch)
        wanted.backward()
        self.update_plain()
        assert abs(found - wanted.item()) < 1e-5, (found, wanted)

    def train_by_calls(self, batch: Any) -> None:
        for step in range(STEPS):
            parts = [self.part(batch, step, rank) for rank in range(self.data_ranks)]
            wanted = [self.of_plain(part) for part in parts]
            (sum(wanted) / (STEPS * self.data_ranks)).backward()
            x, y = parts[self.mine]
            found = self.engine(x)
            loss = None if found is None else self.loss(found, y)
            self.engine.backward(loss)
            self.engine.step()
            if loss is not None:
                assert abs(loss.item() - wanted[self.mine].item()) < 1e-5
        self.update_plain()

    def alike(self) -> None:
        state = self.engine.module.state_dict()
        for name, values in self.plain.state_dict().items():
            torch.testing.assert_close(state[name], values, atol=1e-5, rtol=1e-4)


def train(
    module: Any, draw: Callable[[int], Any], loss: Any = CLASSES, **changes: Any
) -> None:
    both = Both(module, loss, **changes)
    for _ in range(3):
        both.train(draw(both.rows()))
    both.alike()
    both.engine.destroy()


def stages() -> None:
    for stage in range(4):
        train(classifier(), vectors, zero_optimization={"stage": stage})
    host = {"device": "cpu"}
    away = {"stage": 3, "offload_param": host, "offload_optimizer": host}
    train(classifier(), vectors, zero_optimization=away)


def modules() -> None:
    train(Images(), images, zero_optimization={"stage": 1})
    train(Text(), texts, None, zero_optimization={"stage": 2})
    train(Odd(), vectors, zero_optimization={"stage": 3})


def calls() -> None:
    for stage in (0, 2, 3):
        both = Both(
            classifier(), CLASSES, by_calls=True, zero_optimization={"stage": stage}
        )
        for _ in range(3):
            both.train_by_calls(vectors(both.rows()))
        both.alike()
        both.engine.destroy()


def pipelines() -> None:
    for module, draw, loss in ((Text(), texts, None), (classifier(), vectors, CLASSES)):
        both = Both(module, loss, 2, pipeline={"stages": 2})
        assert both.engine.dp_world_size == both.data_ranks
        assert both.engine.get_data_parallel_rank() == both.mine
        for _ in range(3):
            both.train(draw(both.rows()))
        both.alike()
        both.engine.destroy()


def outputs() -> None:
    """The stage of the module's end has the outputs, and all make the same calls."""
    twice = {"stages": 2, "virtual_stages": 2}
    for pipeline in (
        {"stages": 2},
        {**twice, "schedule": "interleaved"},
        {**twice, "schedule": "breadth_first"},
        {**twice, "schedule": "v"},
    ):
        both = Both(deep_classifier(), CLASSES, 2, by_calls=True, pipeline=pipeline)
        for _ in range(3):
            both.train_by_calls(vectors(both.rows()))
        both.alike()
        both.engine.destroy()


def short() -> None:
    """The last rank has fewer rows than its share."""
    both = Both(classifier(), CLASSES)
    batch = vectors(both.rows() - 1)
    share = both.rows() // both.data_ranks
    begin = share * both.mine
    part = tuple(tensor[begin : begin + share] for tensor in batch)
    found = float(both.engine.train_batch(iter([part])))
    assert abs(found - both.of_plain(batch).item()) < 1e-5


def drawn() -> None:
    """A module of zero.Init: all ranks draw the same, whatever random numbers each has."""
    torch.manual_seed(tranche.rank())
    for stage in (1, 3):
        with tranche.zero.Init():
            module = nn.Sequential(nn.Linear(6, 160), nn.Linear(160, 160), nn.Linear(160, 4))
        for small in (module[0], module[2]):
            nn.init.constant_(small.weight, 0.1)
            nn.init.zeros_(small.bias)
        nn.init.zeros_(module[1].bias)
        zero = {"stage": stage}
        config = {"train_batch_size": 2 * MICRO, "zero_optimization": zero}
        engine = tranche.initialize(model=module, config=config, loss=CLASSES)[0]
        engine.train_batch(iter([vectors(MICRO)]))
        whole = engine.module.state_dict()["1.weight"]
        told = int(whole.double().sum() * 1e9)
        assert tranche.ranks.most(told) == -tranche.ranks.most(-told) == told
        engine.destroy()
    torch.manual_seed(1)


def checkpoints() -> None:
    again = classifier()
    both = Both(copy.deepcopy(again), CLASSES, zero_optimization={"stage": 3})
    other = Both(again, CLASSES, zero_optimization={"stage": 3})
    batches = [vectors(both.rows()) for _ in range(4)]
    for each in batches[:2]:
        both.train(each)
    both.engine.save_checkpoint("saved")
    other.engine.load_checkpoint("saved")
    told = []
    for engine in (both.engine, other.engine):
        for batch in batches[2:]:
            mine = [both.part(batch, step, both.mine) for step in range(STEPS)]
            engine.train_batch(iter(mine))
        told.append(engine.module.state_dict())
    for name, values in told[0].items():
        assert torch.equal(values, told[1][name]), name


def refused() -> None:
    def told(**changes: Any) -> str:
        try:
            Both(classifier(), CLASSES, **changes).train(vectors(8))
        except tranche.Error as error:
            return str(error)
        return "not refused"

    assert "equal shares" in told(train_micro_batch_size_per_gpu=3)
    assert "multiple" in told(pipeline={"stages": 3})
    assert '"auto"' in told(pipeline={"stages": "auto"})


if __name__ == "__main__":
    logging.getLogger("tranche").setLevel(logging.ERROR)
    tranche.init_distributed()
    torch.manual_seed(1)
    for name in sys.argv[1:]:
        globals()[name]()
        print(f"{name} as PyTorch on {tranche.rank()}", flush=True)
