"""Functions that are written as arithmetic: the words of activations, statistics and
sums of products."""

from __future__ import annotations

from typing import Any

import torch

from tranche.module.shapes import is_float
from tranche.module.words import Table, Writer, argument, ndim, size

aten = torch.ops.aten
WORDS = Table()

# ---- activations


@WORDS.of("glu.default")
def glu(write: Writer, node: Any) -> Any:
    x, dim = node.args[0], argument(node, 1, "dim", -1)
    whole = size(x, dim)
    if whole is None:
        return None
    value, gate = (
        write.slice(x, dim, first, first + whole // 2) for first in (0, whole // 2)
    )
    return write(aten.mul.Tensor, value, write(aten.sigmoid.default, gate))


@WORDS.of("mish.default")
def mish(write: Writer, node: Any) -> Any:
    x = node.args[0]
    return write(
        aten.mul.Tensor, x, write(aten.tanh.default, write(aten.softplus.default, x))
    )


@WORDS.of("selu.default")
def selu(write: Writer, node: Any) -> Any:
    alpha, scale = 1.6732632423543772, 1.0507009873554805
    return write(aten.mul.Tensor, write(aten.elu.default, node.args[0], alpha), scale)


@WORDS.of("celu.default")
def celu(write: Writer, node: Any) -> Any:
    x, alpha = node.args[0], float(argument(node, 1, "alpha", 1.0))
    small = write(aten.elu.default, write(aten.mul.Tensor, x, 1 / alpha))
    return write(aten.mul.Tensor, small, alpha)


@WORDS.of("log_sigmoid.default")
def log_sigmoid(write: Writer, node: Any) -> Any:
    """-log(1 + e^-x)"""
    turned = write(aten.neg.default, node.args[0])
    return write(aten.neg.default, write(aten.softplus.default, turned))


# ---- statistics


def _mean(write: Writer, x: Any, dims: Any, keep: bool) -> Any:
    return write(aten.mean.dim, x, dims, keep)


def _variance(write: Writer, node: Any, correction: Any) -> Any:
    x, dims = node.args[0], argument(node, 1, "dim")
    keep = bool(argument(node, 3, "keepdim", node.kwargs.get("keepdim", False)))
    if not is_float(x) or not dims or not isinstance(correction, int | float):
        return None
    count = 1
    for dim in dims:
        found = size(x, dim)
        if found is None or dim % ndim(x) == 0:
            return None
        count *= found
    if count <= correction:
        return None
    off = write(aten.sub.Tensor, x, _mean(write, x, dims, True))
    made = _mean(write, write(aten.square.default, off), dims, keep)
    if correction:
        made = write(aten.mul.Tensor, made, count / (count - correction))
    return made


def _corrected(node: Any) -> Any:
    if str(node.target).endswith(".correction"):
        return node.kwargs.get("correction", 1)
    return 1 if argument(node, 2, "unbiased", True) else 0


@WORDS.of("var.dim", "var.correction")
def variance(write: Writer, node: Any) -> Any:
    return _variance(write, node, _corrected(node))


@WORDS.of("std.dim", "std.correction")
def deviation(write: Writer, node: Any) -> Any:
    found = _variance(write, node, _corrected(node))
    return None if found is None else write(aten.sqrt.default, found)


@WORDS.of("clamp_min.default")
def clamp_min(write: Writer, node: Any) -> Any:
    return write(aten.clamp.default, node.args[0], float(node.args[1]))


@WORDS.of("clamp_max.default")
def clamp_max(write: Writer, node: Any) -> Any:
    return write(aten.clamp.default, node.args[0], None, float(node.args[1]))


# ---- sums and products


@WORDS.of("addcmul.default")
def addcmul(write: Writer, node: Any) -> Any:
    x, a, b = node.args
    made = write(aten.mul.Tensor, a, b)
    value = node.kwargs.get("value", 1)
    if value != 1:
        made = write(aten.mul.Tensor, made, float(value))
    return write(aten.add.Tensor, x, made)


@WORDS.of("lerp.Scalar")
def lerp(write: Writer, node: Any) -> Any:
    start, end, weight = node.args
    if not isinstance(weight, int | float):
        return None
    parts = [
        write(aten.mul.Tensor, x, float(factor))
        for x, factor in ((start, 1 - weight), (end, weight))
    ]
    return write(aten.add.Tensor, *parts)


@WORDS.of("baddbmm.default")
def baddbmm(write: Writer, node: Any) -> Any:
    x, a, b = node.args
    made = write(aten.bmm.default, a, b)
    beta, alpha = (float(node.kwargs.get(name, 1)) for name in ("beta", "alpha"))
    if alpha != 1:
        made = write(aten.mul.Tensor, made, alpha)
    if beta == 0:
        return made
    return write(aten.add.Tensor, write(aten.mul.Tensor, x, beta) if beta != 1 else x, made)


@WORDS.of("einsum.default")
def einsum(write: Writer, node: Any) -> Any:
    """Of two tensors: one product of matrices."""
    text, operands = node.args[:2]
    given, _, out = text.replace(" ", "").partition("->")
    parts = given.split(",")
    plain = [*parts, out]
    if len(operands) != 2 or len(parts) != 2 or "->" not in text or "." in text:
        return None
    if any(len(set(each)) != len(each) for each in plain):
        return None
    left, right = parts
    both = [d for d in out if d in left and d in right]
    summed = [d for d in left if d in right and d not in out]
    mine = [d for d in out if d in left and d not in right]
    theirs = [d for d in out if d in right and d not in left]
    if len(summed) != 1 or len(mine) > 1 or len(theirs) > 1:
        return _weighted(write, parts, out, operands) if not both else None
    if len(left) != len(both) + len(mine) + 1 or len(right) != len(both) + len(theirs) + 1:
        return None
    return _product(write, (left, right, out), operands, (both, mine, summed, theirs))


def _product(write: Writer, labels: Any, operands: Any, parts: Any) -> Any:
    left, right, out = labels
    both, mine, summed, theirs = parts
    if not mine or not theirs:
        return None
    a = write.permuted(operands[0], [left.index(d) for d in (*both, *mine, *summed)])
    # What is last stays last, so that heads are seen as heads.
    last = bool(theirs) and right.endswith(theirs[0])
    order = (*both, *summed, *theirs) if last else (*both, *theirs, *summed)
    b = write.permuted(operands[1], [right.index(d) for d in order])
    made = write(aten.matmul.default, a, b if last else write.transposed(b))
    found = [*both, *mine, *theirs]
    return write.permuted(made, [found.index(d) for d in out])


def _weighted(write: Writer, labels: Any, out: str, operands: Any) -> Any:
    """Rows with a matrix: x[..., i] w[i, j]."""
    left, right = labels
    x, w = operands
    if len(right) != 2 or w.op != "placeholder" or out[:-1] != left[:-1]:
        return None
    if right == left[-1] + out[-1]:
        return write(aten.matmul.default, x, w)
    if right == out[-1] + left[-1]:
        return write(aten.linear.default, x, w)
    return None
