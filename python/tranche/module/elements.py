"""What is done to each element alone, and to two element by element."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from tranche.module.steps import Value
from tranche.module.table import Native, argument, is_op, row, rows_in, same_shape
from tranche.module.terms import Term, rows_of, term

if TYPE_CHECKING:
    from tranche.module.lower import Lowering
    from tranche.module.read import Reading


# ---- one tensor


@row("aten.relu.default")
def relu(reading: Reading, node: Any) -> Native | None:
    return same_shape(node.args[0], "relu") if rows_in(reading, node.args[0]) else None


@row("aten.gelu.default")
def gelu(reading: Reading, node: Any) -> Native | None:
    if not rows_in(reading, node.args[0]):
        return None
    form = argument(node, 1, "approximate", "none")
    return same_shape(node.args[0], "gelu", approximate=form)


@row("aten.tanh.default")
def tanh(reading: Reading, node: Any) -> Native | None:
    return same_shape(node.args[0], "tanh") if rows_in(reading, node.args[0]) else None


@row("aten.silu.default")
def silu(reading: Reading, node: Any) -> Native | None:
    return same_shape(node.args[0], "silu") if rows_in(reading, node.args[0]) else None


@row("aten.dropout.default")
def dropout(reading: Reading, node: Any) -> Native | None:
    x, p, training = node.args[:3]
    if not rows_in(reading, x) or not training or not 0 < p < 1:
        return None
    return same_shape(x, "dropout", p=p)


def _pointwise(reading: Reading, x: Any, function: str, a: Any, b: Any) -> Native | None:
    good = isinstance(a, int | float) and isinstance(b, int | float)
    if not good or not rows_in(reading, x) or not (math.isfinite(a) and math.isfinite(b)):
        return None
    return same_shape(x, "pointwise", function=function, a=float(a), b=float(b))


# Functions without numbers, and with two that stand behind the tensor.
_PLAIN = {
    "sigmoid": ("sigmoid", 0, 0),
    "hardsigmoid": ("hardsigmoid", 0, 0),
    "hardswish": ("hardswish", 0, 0),
    "exp": ("exp", 0, 0),
    "log": ("log", 0, 0),
    "sqrt": ("sqrt", 0, 0),
    "rsqrt": ("power", -0.5, 0),
    "reciprocal": ("power", -1, 0),
    "square": ("power", 2, 0),
    "neg": ("linear", -1, 0),
    "abs": ("abs", 0, 0),
}


@row(*(f"aten.{name}.default" for name in _PLAIN))
def plain_function(reading: Reading, node: Any) -> Native | None:
    name = str(node.target).removeprefix("aten.").removesuffix(".default")
    return _pointwise(reading, node.args[0], *_PLAIN[name])


@row("aten.hardtanh.default")
def hardtanh(reading: Reading, node: Any) -> Native | None:
    low, high = argument(node, 1, "min_val", -1.0), argument(node, 2, "max_val", 1.0)
    return _pointwise(reading, node.args[0], "hardtanh", low, high)


@row("aten.relu6.default")
def relu6(reading: Reading, node: Any) -> Native | None:
    return _pointwise(reading, node.args[0], "hardtanh", 0, 6)


@row("aten.clamp.default")
def clamp(reading: Reading, node: Any) -> Native | None:
    low, high = argument(node, 1, "min"), argument(node, 2, "max")
    most = torch.finfo(torch.float32).max
    low, high = -most if low is None else low, most if high is None else high
    return _pointwise(reading, node.args[0], "clamp", low, high)


@row("aten.leaky_relu.default")
def leaky_relu(reading: Reading, node: Any) -> Native | None:
    slope = argument(node, 1, "negative_slope", 0.01)
    return _pointwise(reading, node.args[0], "leaky_relu", slope, 0)


@row("aten.elu.default")
def elu(reading: Reading, node: Any) -> Native | None:
    alpha = argument(node, 1, "alpha", 1.0)
    if argument(node, 2, "scale", 1) != 1 or argument(node, 3, "input_scale", 1) != 1:
        return None
    return _pointwise(reading, node.args[0], "elu", alpha, 0)


@row("aten.softplus.default")
def softplus(reading: Reading, node: Any) -> Native | None:
    beta, threshold = argument(node, 1, "beta", 1), argument(node, 2, "threshold", 20)
    return _pointwise(reading, node.args[0], "softplus", beta, threshold)


@row("aten.pow.Tensor_Scalar")
def power(reading: Reading, node: Any) -> Native | None:
    return _pointwise(reading, node.args[0], "power", node.args[1], 0)


@row("aten.softmax.int", "aten._softmax.default")
def softmax(reading: Reading, node: Any) -> Native | None:
    x, dim = node.args[:2]
    if not rows_in(reading, x) or argument(node, 2, "dtype") not in (None, False):
        return None
    ndim = x.meta["val"].ndim
    if ndim < 2 or dim % ndim != ndim - 1:
        return None
    width = int(x.meta["val"].shape[-1])

    def build(to: Lowering) -> Value:
        given = to.rows_of(x, width)
        return Value(to.op("softmax", [given.index]), given.shape)

    return Native([x], build)


# ---- two


def _of_two(
    reading: Reading,
    node: Any,
    a: Any,
    b: Any,
    make: Callable[[Lowering, int, int], int],
) -> Native | None:
    sample = reading.shapes.sample(node)
    if sample is None:
        return None
    found = [term(reading, a, sample), term(reading, b, sample)]
    rows = rows_of(found)
    if any(each is None for each in found) or not rows:
        return None
    terms: list[Term] = [each for each in found if each is not None]

    def build(to: Lowering) -> Value:
        first, second = to.together(terms, sample)
        made = make(to, first.index, second.index)
        return Value(made, first.shape, first.channels_last)

    return Native(rows, build)


def _linear(to: Lowering, x: int, a: float, b: float) -> int:
    return to.op("pointwise", [x], function="linear", a=float(a), b=float(b))


def _scaled(to: Lowering, x: int, factor: float) -> int:
    return x if factor == 1 else _linear(to, x, factor, 0)


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def total(reading: Reading, node: Any, a: Any, b: Any, factor: float) -> Native | None:
    """a + factor b"""
    for one, other, of_one, of_other in ((a, b, 1.0, factor), (b, a, factor, 1.0)):
        number = _number(other)
        if number is not None:
            return _pointwise(reading, one, "linear", of_one, of_other * number)

    def make(to: Lowering, first: int, second: int) -> int:
        return to.op("residual", [first, _scaled(to, second, factor)])

    return _of_two(reading, node, a, b, make)


@row("aten.sub.Tensor", "aten.sub.Scalar")
def sub(reading: Reading, node: Any) -> Native | None:
    factor = _number(argument(node, 2, "alpha", 1))
    a, b = node.args[:2]
    return None if factor is None else total(reading, node, a, b, -factor)


@row("aten.rsub.Scalar", "aten.rsub.Tensor")
def rsub(reading: Reading, node: Any) -> Native | None:
    if argument(node, 2, "alpha", 1) != 1:
        return None
    return total(reading, node, node.args[1], node.args[0], -1.0)


@row("aten.mul.Tensor", "aten.mul.Scalar")
def mul(reading: Reading, node: Any) -> Native | None:
    from tranche.module.norms import rms_norm_by_hand

    found = gelu_by_hand(reading, node) or rms_norm_by_hand(reading, node)
    if found is not None:
        return found
    a, b = node.args[:2]
    for one, other in ((a, b), (b, a)):
        number = _number(other)
        if number is not None:
            return _pointwise(reading, one, "linear", number, 0)
    return _of_two(
        reading, node, a, b, lambda to, x, y: to.op("multiply", [x, y])
    )


@row("aten.div.Tensor", "aten.div.Scalar")
def div(reading: Reading, node: Any) -> Native | None:
    a, b = node.args[:2]
    if node.kwargs:  # rounding_mode
        return None
    number = _number(b)
    if number is not None:
        return _pointwise(reading, a, "linear", 1 / number, 0) if number else None

    def make(to: Lowering, first: int, second: int) -> int:
        inverse = to.op("pointwise", [second], function="power", a=-1.0)
        return to.op("multiply", [first, inverse])

    return _of_two(reading, node, a, b, make)


def gelu_by_hand(reading: Reading, node: Any) -> Native | None:
    """0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), as GPT-2 writes it."""
    half, one = node.args[:2]
    if not (is_op(half, "mul.Tensor") and half.args[1] == 0.5):
        return None
    x = half.args[0]
    if not (is_op(one, "add.Tensor") and one.args[1] == 1.0):
        return None
    tanh = one.args[0]
    inner: Any = tanh.args[0] if is_op(tanh, "tanh.default") else None
    if not (is_op(inner, "mul.Tensor") and isinstance(inner.args[1], float)):
        return None
    if abs(inner.args[1] - math.sqrt(2 / math.pi)) > 1e-9:
        return None
    total = inner.args[0]
    if not (is_op(total, "add.Tensor") and total.args[0] is x):
        return None
    cubic = total.args[1]
    if not (is_op(cubic, "mul.Tensor") and cubic.args[1] == 0.044715):
        return None
    power = cubic.args[0]
    if not (is_op(power, "pow.Tensor_Scalar") and tuple(power.args) == (x, 3.0)):
        return None
    return same_shape(x, "gelu", approximate="tanh") if rows_in(reading, x) else None
