"""Convolutions, batch norm and pooling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tranche.module.norms import may_be_absent, scale_and_shift
from tranche.module.steps import Value
from tranche.module.table import Native, argument, one_size, row, rows_in

if TYPE_CHECKING:
    from tranche.module.lower import Lowering
    from tranche.module.read import Reading

# ---- images


def _image(reading: Reading, node: Any) -> bool:
    return rows_in(reading, node) and node.meta["val"].ndim == 4


@row("aten.conv2d.default")
def conv2d(reading: Reading, node: Any) -> Native | None:
    x, weight = node.args[:2]
    bias = argument(node, 2, "bias")
    padding = argument(node, 4, "padding", 0)
    sizes = [argument(node, 3, "stride", 1), padding, argument(node, 5, "dilation", 1)]
    good = _image(reading, x) and reading.is_parameter(weight)
    if not good or (bias is not None and not reading.is_parameter(bias)):
        return None
    if isinstance(padding, str):
        return None
    channels, height, width = (int(size) for size in node.meta["val"].shape[1:])
    attributes: dict[str, int] = {"groups": int(argument(node, 6, "groups", 1))}
    for name, pair in zip(("stride", "padding", "dilation"), sizes, strict=True):
        both = [pair] * 2 if isinstance(pair, int) else list(pair) * (2 // len(pair))
        attributes[name], attributes[f"{name}_width"] = int(both[0]), int(both[1])

    def build(to: Lowering) -> Value:
        inputs = [to.image(x).index, to.parameter(weight)]
        inputs += [to.parameter(bias)] if bias is not None else []
        made = to.op("conv2d", inputs, **attributes)
        return Value(made, (height, width, channels), True)

    return Native([x], build)


@row("aten.batch_norm.default")
def batch_norm(reading: Reading, node: Any) -> Native | None:
    x, weight, bias, mean, variance, training, momentum, epsilon = node.args[:8]
    sample = reading.shapes.sample(x) if rows_in(reading, x) else None
    if not training or momentum is None or not may_be_absent(reading, weight, bias):
        return None
    if not sample or len(sample) > 3 or x.meta["val"].ndim != len(sample) + 1:
        return None
    states = [reading.buffer(each) or "" for each in (mean, variance)]
    if mean is not None and "" in states:
        return None

    def build(to: Lowering) -> Value:
        given, wide = _channels_last(to, x, sample), sample[0]
        inputs = [given.index, *scale_and_shift(to, weight, bias, wide)]
        if mean is not None:
            name = states[0].rpartition(".")[0]
            counter = f"{name}.num_batches_tracked" if name else "num_batches_tracked"
            inputs += [-1, to.state(states[0], (wide,), 0.0)]
            inputs += [to.state(states[1], (wide,), 1.0), to.state(counter, (), 0.0)]
        made = to.op("batch_norm", inputs, epsilon=epsilon, momentum=momentum)
        if len(sample) == 3:
            return Value(made, given.shape, True)
        return _channels_first(to, Value(made, given.shape))

    return Native([x], build)


# ---- sequences: [channels, length] a sample, in whose place stands [length, channels]


def _channels_last(to: Lowering, x: Any, sample: Sequence[int]) -> Value:
    if len(sample) == 3:
        return to.image(x)
    given = to.shaped(x, sample)
    if len(sample) == 1:
        return given
    channels, length = sample
    return to.reshape(to.transposed(given, 1, channels, length), (length, channels))


def _channels_first(to: Lowering, value: Value) -> Value:
    if len(value.shape) == 1:
        return value
    length, channels = value.shape
    made = to.transposed(value, 1, length, channels)
    return to.reshape(made, (channels, length))


@row("aten.conv1d.default")
def conv1d(reading: Reading, node: Any) -> Native | None:
    """A convolution of images that are one row high."""
    x, weight = node.args[:2]
    bias = argument(node, 2, "bias")
    names = (("stride", 1), ("padding", 0), ("dilation", 1))
    sizes = {
        name: one_size(argument(node, at, name, usual))
        for at, (name, usual) in enumerate(names, 3)
    }
    sample = reading.shapes.sample(x) if rows_in(reading, x) else None
    good = sample is not None and x.meta["val"].ndim == 3
    if not good or not reading.is_parameter(weight) or None in sizes.values():
        return None
    if bias is not None and not reading.is_parameter(bias):
        return None
    out, length = (int(size) for size in node.meta["val"].shape[1:])
    each, kernel = (int(size) for size in weight.meta["val"].shape[1:])
    widths = {f"{name}_width": size for name, size in sizes.items()}
    groups = int(argument(node, 6, "groups", 1))

    def build(to: Lowering) -> Value:
        assert sample is not None
        channels, before = sample
        given = to.reshape(_channels_last(to, x, sample), (1, before, channels))
        flat = to.op("reshape", [to.parameter(weight)], dim1=each, dim2=1, dim3=kernel)
        inputs = [given.index, flat]
        inputs += [to.parameter(bias)] if bias is not None else []
        made = to.op(
            "conv2d", inputs, groups=groups, stride=1, padding=0, dilation=1, **widths
        )
        rows = to.reshape(Value(made, (1, length, out)), (length, out))
        return _channels_first(to, rows)

    return Native([x], build)


# ---- pooling


def _pool(
    reading: Reading, node: Any, name: str, dilation: Any, ceil: Any
) -> Native | None:
    x = node.args[0]
    kernel = one_size(node.args[1])
    stride = one_size(argument(node, 2, "stride") or node.args[1])
    padding = one_size(argument(node, 3, "padding", 0))
    if not _image(reading, x) or one_size(dilation) != 1 or ceil:
        return None
    if kernel is None or stride is None or padding is None:
        return None
    if name == "average_pool" and padding:
        return None
    channels, height, width = (int(size) for size in node.meta["val"].shape[1:])

    def build(to: Lowering) -> Value:
        inputs = [to.image(x).index]
        made = to.op(name, inputs, kernel=kernel, stride=stride, padding=padding)
        return Value(made, (height, width, channels), True)

    return Native([x], build)


@row("aten.max_pool2d.default")
def max_pool(reading: Reading, node: Any) -> Native | None:
    dilation = argument(node, 4, "dilation", 1)
    return _pool(
        reading, node, "max_pool", dilation, argument(node, 5, "ceil_mode", False)
    )


@row("aten.avg_pool2d.default")
def average_pool(reading: Reading, node: Any) -> Native | None:
    if argument(node, 6, "divisor_override") is not None:
        return None
    return _pool(
        reading, node, "average_pool", 1, argument(node, 4, "ceil_mode", False)
    )


def whole_image(x: Any) -> Native:
    def build(to: Lowering) -> Value:
        given = to.image(x)
        return Value(to.op("average_pool", [given.index]), (given.shape[-1],))

    return Native([x], build)


@row("aten.adaptive_avg_pool2d.default")
def adaptive_average_pool(reading: Reading, node: Any) -> Native | None:
    x, size = node.args[:2]
    whole = one_size(size) == 1 and _image(reading, x)
    return whole_image(x) if whole else None
