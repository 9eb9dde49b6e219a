"""Normalizations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tranche.module.shapes import count
from tranche.module.steps import Value
from tranche.module.table import Native, argument, is_op, row, rows_in
from tranche.module.terms import Term, parameter_of

if TYPE_CHECKING:
    from tranche.module.lower import Lowering
    from tranche.module.read import Reading


def may_be_absent(reading: Reading, *parameters: Any) -> bool:
    return all(p is None or reading.is_parameter(p) for p in parameters)


@row("aten.layer_norm.default")
def layer_norm(reading: Reading, node: Any) -> Native | None:
    x, shape = node.args[:2]
    weight, bias = argument(node, 2, "weight"), argument(node, 3, "bias")
    epsilon = argument(node, 4, "eps", 1e-5)
    if len(shape) != 1 or not rows_in(reading, x) or x.meta["val"].ndim < 2:
        return None
    if not may_be_absent(reading, weight, bias):
        return None

    def build(to: Lowering) -> Value:
        given = to.rows_of(x, shape[0])
        inputs = [given.index, *scale_and_shift(to, weight, bias, shape[0])]
        return Value(to.op("layer_norm", inputs, epsilon=epsilon), given.shape)

    return Native([x], build)


def scale_and_shift(to: Lowering, weight: Any, bias: Any, width: int) -> list[int]:
    """Parameters, or ones and zeros in their place."""
    return [
        to.vector(width, 1.0) if weight is None else to.parameter(weight),
        to.vector(width, 0.0) if bias is None else to.parameter(bias),
    ]


@row("aten.group_norm.default")
def group_norm(reading: Reading, node: Any) -> Native | None:
    """A layer norm of each group's elements, then a factor for each channel."""
    x, groups = node.args[:2]
    weight, bias = argument(node, 2, "weight"), argument(node, 3, "bias")
    epsilon = argument(node, 4, "eps", 1e-5)
    sample = reading.shapes.sample(x) if rows_in(reading, x) else None
    if sample is None or x.meta["val"].ndim != len(sample) + 1:
        return None
    if not may_be_absent(reading, weight, bias):
        return None
    channels, wide = sample[0], count(sample) // groups
    each = (channels, *(1,) * (len(sample) - 1))

    def build(to: Lowering) -> Value:
        given = to.shaped(x, (groups, wide))
        inputs = [given.index, *scale_and_shift(to, None, None, wide)]
        made = Value(to.op("layer_norm", inputs, epsilon=epsilon), (groups, wide))
        shape = sample if len(sample) < 4 else (count(sample),)
        made = to.reshape(made, shape)
        for parameter, name in ((weight, "multiply"), (bias, "residual")):
            if parameter is not None:
                factor = to.spread(Term("parameter", parameter, each), sample)
                made = Value(to.op(name, [made.index, factor.index]), shape)
        return made

    return Native([x], build)


def _rms(
    reading: Reading, x: Any, weight: Any, width: int, epsilon: float
) -> Native | None:
    if not rows_in(reading, x) or not reading.is_parameter(weight):
        return None
    if x.meta["val"].ndim < 2 or tuple(weight.meta["val"].shape) != (width,):
        return None

    def build(to: Lowering) -> Value:
        given = to.rows_of(x, width)
        inputs = [given.index, to.parameter(weight)]
        return Value(to.op("rms_norm", inputs, epsilon=epsilon), given.shape)

    return Native([x], build)


@row("aten.rms_norm.default")
def rms_norm(reading: Reading, node: Any) -> Native | None:
    x, shape = node.args[:2]
    weight, epsilon = argument(node, 2, "weight"), argument(node, 3, "eps")
    if len(shape) != 1 or epsilon is None or weight is None:
        return None
    return _rms(reading, x, weight, shape[0], epsilon)


def rms_norm_by_hand(reading: Reading, node: Any) -> Native | None:
    """weight x rsqrt(mean(x^2) + epsilon), as Llama writes it."""
    for weight, product in (node.args[:2], node.args[1::-1]):
        product = _uncast(reading, product)
        if not is_op(product, "mul.Tensor"):
            continue
        found = parameter_of(reading, weight)
        if found is None:
            continue
        for x, inverse in (product.args[:2], product.args[1::-1]):
            epsilon = _inverse_root(reading, inverse, x)
            if epsilon is not None:
                width = int(x.meta["val"].shape[-1])
                base = _uncast(reading, x)
                return _rms(reading, base, found[0], width, epsilon)
    return None


def _uncast(reading: Reading, node: Any) -> Any:
    """Without casts to the type that it has."""
    while is_op(node, "to.dtype") or is_op(node, "to.dtype_layout"):
        if node.meta["val"].dtype != node.args[0].meta["val"].dtype:
            break
        node = node.args[0]
    return node


def _inverse_root(reading: Reading, node: Any, x: Any) -> float | None:
    """The epsilon where a node is rsqrt(mean(x^2, -1) + epsilon)."""
    if not is_op(node, "rsqrt.default"):
        return None
    shifted = node.args[0]
    if not is_op(shifted, "add.Tensor") or not isinstance(shifted.args[1], float):
        return None
    mean = shifted.args[0]
    if not is_op(mean, "mean.dim") or list(mean.args[1]) != [-1]:
        return None
    if not argument(mean, 2, "keepdim", False):
        return None
    square = mean.args[0]
    is_square = is_op(square, "pow.Tensor_Scalar") and square.args[1] == 2
    if not is_square or _uncast(reading, square.args[0]) is not _uncast(reading, x):
        return None
    return float(shifted.args[1])
