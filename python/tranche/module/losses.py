"""What the graph ends with: the mean of a loss over all targets, which the plan takes over
the whole effective batch, or a sum of such means."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from tranche.error import Error, Status
from tranche.module.export import refuse
from tranche.module.read import Reading
from tranche.module.shapes import count
from tranche.module.table import argument

# Operators that are means over elements, and where they say how they reduce.
_MEANS = {
    "mse_loss.default": 2,
    "l1_loss.default": 2,
    "smooth_l1_loss.default": 2,
    "huber_loss.default": 2,
    "binary_cross_entropy_with_logits.default": 4,
    "binary_cross_entropy.default": 3,
}
_CLASSES = {"cross_entropy_loss.default", "nll_loss.default", "nll_loss_nd.default"}
_PASSED = {"to.dtype", "clone.default", "alias.default", "contiguous.default"}
_FACTORS = {"mul.Tensor", "div.Tensor"}
_SUMS = {"add.Tensor", "sub.Tensor", *_FACTORS}
_MEAN = 1  # of at::Reduction

_OTHERS = (
    "need a loss that is one mean: this one adds means of other numbers of targets, so "
    "that another cut would weight them anew"
)
Measure = Callable[[int, Sequence[Any]], tuple[float, float]]


class Mean(NamedTuple):
    """A mean over all targets. targets: the classes that it compares with."""

    node: Any
    targets: Any = None


class End(NamedTuple):
    """What the model ends with. product: the node whose product and cross-entropy are
    one op. targets: the node that the cross-entropy of an op compares with. means:
    what PyTorch computes is the sum of, each perhaps times a number."""

    node: Any
    product: Any
    targets: Any
    classes: int
    # A loss of numbers one by one that is an op: what is given, what is wanted, its kind.
    elements: tuple[Any, Any, str] | None = None
    logits: Any = None  # those of a cross-entropy that is an op
    means: tuple[Mean, ...] = ()

    @property
    def is_classes(self) -> bool:
        """Does an op of the library compare with classes?"""
        return self.product is not None or self.logits is not None


def _name(node: Any) -> str:
    return str(node.target).removeprefix("aten.")


def find(reading: Reading) -> End:
    outputs = reading.traced.outputs
    node = outputs[0]
    if len(outputs) != 1 or node.meta["val"].ndim != 0:
        raise refuse(
            node,
            "the model gives outputs and no loss: pass loss= to tranche.initialize, or "
            "call forward, backward and step",
        )
    while _name(node) in _PASSED:
        node = node.args[0]
    name = _name(node)
    if name in _CLASSES:
        return _of_classes(reading, node)
    elements = _of_elements(reading, node, name)
    if elements is not None:
        return End(node, None, None, 0, elements)
    means = _means(reading, node)
    if not means:
        raise refuse(
            node,
            "the loss has to end with a mean over all targets, or a sum of such means: "
            "cross_entropy, nll_loss, mse_loss, l1_loss, smooth_l1_loss, huber_loss, "
            "binary_cross_entropy, or mean()",
        )
    classes = [int(m.node.args[0].meta["val"].shape[1]) for m in means if m.targets]
    return End(node, None, None, max(classes, default=0), means=tuple(means))


def _means(reading: Reading, node: Any) -> list[Mean] | None:
    """The means that a node is the sum of; None: it is none. Numbers, and what no data
    are in, may be added and be factors."""
    if not isinstance(node, torch.fx.Node) or not reading.is_of_batch(node):
        return []
    name = _name(node)
    if name in _PASSED or name == "neg.default":
        return _means(reading, node.args[0])
    if name in _CLASSES and argument(node, 3, "reduction", _MEAN) == _MEAN:
        return [Mean(node, node.args[1])] if _has_classes(node) else None
    if name in _MEANS and argument(node, _MEANS[name], "reduction", _MEAN) == _MEAN:
        return [Mean(node)]
    if name == "mean.default" and reading.shapes.sample(node.args[0]) is not None:
        return [Mean(node)]
    if name not in _SUMS or any(not _is_scalar(part) for part in node.args[:2]):
        return None
    first, second = (_means(reading, part) for part in node.args[:2])
    if first is None or second is None or (name in _FACTORS and first and second):
        return None
    return None if name == "div.Tensor" and second else [*first, *second]


def _is_scalar(part: Any) -> bool:
    return not isinstance(part, torch.fx.Node) or part.meta["val"].numel() == 1


def _has_classes(node: Any) -> bool:
    shape = node.args[0].meta["val"].shape
    return len(shape) >= 2 and isinstance(shape[1], int)


def _of_classes(reading: Reading, node: Any) -> End:
    logits, targets = node.args[:2]
    if argument(node, 3, "reduction", _MEAN) != _MEAN:
        raise refuse(node, 'reduction="mean" is the one that the plan can take')
    shape = logits.meta["val"].shape
    if not _has_classes(node):
        raise refuse(node, "logits are [rows, classes, ...]")
    classes = int(shape[1])
    numbers = not targets.meta["val"].is_floating_point()
    if _name(node) != "cross_entropy_loss.default":
        inner = _normalized(logits)
        found = inner if numbers and inner is not None else None
        return _of_logits(reading, node, found)
    weight = argument(node, 2, "weight")
    weighted = weight is not None and reading.constant(weight) is None
    if not numbers or weighted:
        return _of_logits(reading, node, None)
    plain = weight is None and argument(node, 5, "label_smoothing", 0.0) == 0.0
    before = logits if len(shape) == 2 else _before_move(logits)
    base = reading.base(before) if before is not None else None
    if plain and base is not None and _is_product(reading, base, classes):
        return End(node, base, targets, classes)
    return _of_logits(reading, node, logits)


def _of_logits(reading: Reading, node: Any, logits: Any) -> End:
    """logits: what an op of the library takes, if it may."""
    targets, classes = node.args[1], int(node.args[0].meta["val"].shape[1])
    found = _may_lie(reading, logits)
    means = () if found is not None else (Mean(node, targets),)
    return End(node, None, targets, classes, logits=found, means=means)


def _before_move(node: Any) -> Any:
    """The tensor whose last dimension, the classes, has been brought behind the rows;
    None: nothing was."""
    count = node.meta["val"].ndim
    if _name(node) == "transpose.int":
        moved = {d % count for d in node.args[1:3]} == {1, 2} and count == 3
        return node.args[0] if moved else None
    if _name(node) == "permute.default":
        order = [d % count for d in node.args[1]]
        return node.args[0] if order == [0, count - 1, *range(1, count - 1)] else None
    return None


def _normalized(node: Any) -> Any:
    """The logits that a node is the log_softmax of."""
    if _name(node) not in ("log_softmax.int", "_log_softmax.default"):
        return None
    inner = node.args[0]
    over = node.args[1] % node.meta["val"].ndim == 1
    return inner if over and inner.meta["val"].dtype == node.meta["val"].dtype else None


def _may_lie(reading: Reading, logits: Any) -> Any:
    """Logits that an op may read: numbers of the plan's, [rows, classes, ...]."""
    if logits is None or not reading.has_rows(logits):
        return None
    return None if reading.base(logits) in reading.traced.inputs else logits


_ELEMENTS = {
    "mse_loss.default": "square",
    "binary_cross_entropy_with_logits.default": "binary",
}


def _of_elements(reading: Reading, node: Any, name: str) -> tuple[Any, Any, str] | None:
    """The same shape on both sides, the targets being a tensor of the batch."""
    if name not in _ELEMENTS or argument(node, _MEANS[name], "reduction", _MEAN) != _MEAN:
        return None
    if name.startswith("binary") and any(
        argument(node, at, key) is not None for at, key in ((2, "weight"), (3, "pos_weight"))
    ):
        return None
    x, targets = (reading.base(each) for each in node.args[:2])
    if targets not in reading.traced.inputs or not reading.has_rows(x):
        return None
    if node.args[0].meta["val"].shape != node.args[1].meta["val"].shape:
        return None
    if not targets.meta["val"].is_floating_point() or x in reading.traced.inputs:
        return None
    same = len(reading.shapes.sample(targets) or ()) < 4
    return (x, targets, _ELEMENTS[name]) if same else None


def _is_product(reading: Reading, node: Any, classes: int) -> bool:
    """Does a product give so many numbers a row?"""
    known = ("linear.default", "addmm.default", "mm.default", "matmul.default")
    native = reading.natives.get(node)
    found = native is not None and _name(node) in known
    return found and node.meta["val"].shape[-1] == classes


def measure(reading: Reading, mean: Mean, parts: dict[str, Any]) -> Measure:
    """How many targets so many rows have, and how many of them the best guess gets
    right. parts: regions of the loss's operands, "logits" and "targets", where it
    compares with classes."""
    if mean.targets is None:
        each = _of_a_row(reading, mean)
        return lambda rows, values: (float(rows * each), 0.0)
    ignored = argument(mean.node, 4, "ignore_index", -100)
    weight = argument(mean.node, 2, "weight")
    weights = reading.traced.constants[weight].detach() if weight is not None else None

    def of_classes(rows: int, values: Sequence[Any]) -> tuple[float, float]:
        with torch.no_grad():
            targets = parts["targets"].run(rows, values)
            if targets.is_floating_point():  # probabilities
                return float(targets.shape[0]), 0.0
            there = targets != ignored
            right = parts["logits"].run(rows, values).argmax(1) == targets
            counted = there.sum()
            if weights is not None:
                counted = weights.to(targets.device)[targets[there]].sum()
            return float(counted), float((right & there).sum())

    return of_classes


def _of_a_row(reading: Reading, mean: Mean) -> int:
    """Targets that a row has, where each is one."""
    if mean.targets is None:
        return count(reading.shapes.sample(mean.node.args[0]) or ())
    if mean.targets.meta["val"].is_floating_point():  # probabilities
        return 1
    return count(reading.shapes.sample(mean.targets) or ())


def together(
    reading: Reading, means: Sequence[Mean], measured: Sequence[Measure]
) -> Measure:
    """Of a sum of means: all count the same targets, or each as many of every row."""
    counted = {
        (reading.base(m.targets), *(argument(m.node, at, "") for at in (2, 4)))
        for m in means
        if m.targets is not None
    }
    if len(means) == 1 or not counted:
        return measured[0]
    if len(counted) == 1 and all(m.targets is not None for m in means):
        return measured[0]
    for mean in means:
        if mean.targets is not None and argument(mean.node, 2, "weight") is not None:
            raise refuse(mean.node, f"weights of classes {_OTHERS}")
    sizes = [_of_a_row(reading, mean) for mean in means]

    def of_rows(rows: int, values: Sequence[Any]) -> tuple[float, float]:
        for measure, each in zip(measured, sizes, strict=True):
            if measure(rows, values)[0] != rows * each:
                raise Error(Status.DATA, f"labels: those that are no targets {_OTHERS}")
        return float(rows), 0.0

    return of_rows
