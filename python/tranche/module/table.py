"""PyTorch's operators that are ops of the library: a row for each. A row looks at a node
and says which tensors it takes and which steps it becomes, or None where this use of it
is none of the library's; it then runs in PyTorch."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from tranche.module.shapes import is_float
from tranche.module.steps import Value

if TYPE_CHECKING:
    from tranche.module.lower import Lowering
    from tranche.module.read import Reading


class Native(NamedTuple):
    """What a node becomes. operands: the tensors with rows that it takes. takes: nodes
    between them and it, which the steps do, too."""

    operands: Sequence[Any]
    build: Callable[[Lowering], Value]


Row = Callable[["Reading", Any], "Native | None"]
ROWS: dict[str, Row] = {}


def row(*names: str) -> Callable[[Row], Row]:
    def take(function: Row) -> Row:
        for name in names:
            ROWS[name] = function
        return function

    return take


def find(reading: Reading, node: Any) -> Native | None:
    known = ROWS.get(str(node.target))
    if known is None or not is_float(node) or not reading.has_rows(node):
        return None
    return known(reading, node)


def argument(node: Any, index: int, name: str, otherwise: Any = None) -> Any:
    """An argument, given by position or by name."""
    if index < len(node.args):
        return node.args[index]
    return node.kwargs.get(name, otherwise)


def _one(sizes: Any, otherwise: int = 0) -> int | None:
    """The size of all sides; None where they differ."""
    if isinstance(sizes, int):
        return sizes
    if not sizes:
        return otherwise
    return int(sizes[0]) if len(set(sizes)) == 1 else None


def _rows_in(reading: Reading, *nodes: Any) -> bool:
    return all(
        isinstance(n, torch.fx.Node)
        and is_float(n)
        and reading.has_rows(n)
        for n in nodes
    )


# ---- products


def _product(
    reading: Reading, x: Any, weight: Any, bias: Any, form: str
) -> Native | None:
    good = (
        _rows_in(reading, x)
        and reading.is_parameter(weight)
        and (bias is None or reading.is_parameter(bias))
        and weight.meta["val"].ndim == 2
        and x.meta["val"].ndim >= 2
        and (bias is None or bias.meta["val"].ndim == 1)
    )
    if not good:
        return None
    shape = tuple(weight.meta["val"].shape)
    wide, out = shape if form == "in_out" else shape[::-1]

    def build(to: Lowering) -> Value:
        given = to.rows_of(x, wide)
        inputs = [given.index, to.parameter(weight)]
        inputs += [to.parameter(bias)] if bias is not None else []
        made = to.op("linear", inputs, form=form)
        return Value(made, (*given.shape[:-1], out))

    return Native([x], build)


@row("aten.linear.default")
def linear(reading: Reading, node: Any) -> Native | None:
    return _product(
        reading, node.args[0], node.args[1], argument(node, 2, "bias"), "out_in"
    )


@row("aten.addmm.default")
def addmm(reading: Reading, node: Any) -> Native | None:
    bias, x, weight = node.args[:3]
    if node.kwargs:  # beta, alpha
        return None
    if str(getattr(weight, "target", "")) == "aten.t.default":
        return _product(reading, x, weight.args[0], bias, "out_in")
    return _product(reading, x, weight, bias, "in_out")


@row("aten.mm.default", "aten.matmul.default")
def matmul(reading: Reading, node: Any) -> Native | None:
    x, weight = node.args[:2]
    if str(getattr(weight, "target", "")) == "aten.t.default":
        return _product(reading, x, weight.args[0], None, "out_in")
    return _product(reading, x, weight, None, "in_out")


# ---- tokens


def _ids(reading: Reading, node: Any) -> Any:
    """The tensor of the batch that these ids are; None: they are made of it."""
    base = reading.base(node)
    return base if base in reading.traced.inputs else None


def _table_of(reading: Reading, node: Any) -> tuple[Any, Any] | None:
    """Table and ids of a plain embedding."""
    if str(getattr(node, "target", "")) != "aten.embedding.default":
        return None
    plain = argument(node, 2, "padding_idx", -1) == -1 and not any(node.args[3:])
    if not plain or not reading.is_parameter(node.args[0]):
        return None
    return node.args[0], node.args[1]


def _embedding(
    reading: Reading, table: Any, ids: Any, positions: Any = None
) -> Native | None:
    data = _ids(reading, ids)
    if data is None or len(reading.shapes.sample(data) or ()) != 1:
        return None
    width = int(table.meta["val"].shape[1])
    reading.limit_ids(data, int(table.meta["val"].shape[0]))

    def build(to: Lowering) -> Value:
        given = to.data(data)
        inputs = [given.index, to.parameter(table)]
        inputs += [to.parameter(positions)] if positions is not None else []
        return Value(to.op("embedding", inputs), (*given.shape, width))

    return Native([], build)


@row("aten.embedding.default")
def embedding(reading: Reading, node: Any) -> Native | None:
    found = _table_of(reading, node)
    return _embedding(reading, *found) if found else None


def _positions(reading: Reading, node: Any, length: int) -> Any:
    """The table of learnt positions that a node looks up whole: 0, 1, 2, ..."""
    known = ("to.dtype", "to.dtype_layout", "clone.default", "contiguous.default")
    while any(_is(node, name) for name in known):
        node = node.args[0]
    found = _table_of(reading, node)
    if found is None:
        return None
    ids = reading.constant(found[1])
    if ids is None or ids.numel() != length:
        return None
    good = torch.equal(ids.reshape(-1), torch.arange(length))
    return found[0] if good else None


def _of_two(reading: Reading, name: str, a: Any, b: Any) -> Native | None:
    """An op of two tensors of one shape that have rows, element by element."""
    if not _rows_in(reading, a, b):
        return None
    same = reading.shapes.sample(a) == reading.shapes.sample(b)
    if not same or a.meta["val"].ndim != b.meta["val"].ndim:
        return None

    def build(to: Lowering) -> Value:
        first, second = to.alike(a, b)
        made = to.op(name, [first.index, second.index])
        return Value(made, first.shape, first.channels_last)

    return Native([a, b], build)


@row("aten.add.Tensor")
def add(reading: Reading, node: Any) -> Native | None:
    a, b = node.args[:2]
    if argument(node, 2, "alpha", 1) != 1:
        return None
    for one, other in ((a, b), (b, a)):
        if not isinstance(one, torch.fx.Node) or not isinstance(other, torch.fx.Node):
            return None
        found = _table_of(reading, reading.base(one))
        sample = reading.shapes.sample(one)
        if found and sample and len(sample) == 2:
            table = _positions(reading, other, sample[0])
            if table is not None:
                return _embedding(reading, *found, table)
    return _of_two(reading, "residual", a, b)


# ---- elementwise, norms


def _same(x: Any, name: str, **attributes: Any) -> Native:
    def build(to: Lowering) -> Value:
        given = to.value(x)
        made = to.op(name, [given.index], **attributes)
        return Value(made, given.shape, given.channels_last)

    return Native([x], build)


@row("aten.relu.default")
def relu(reading: Reading, node: Any) -> Native | None:
    return _same(node.args[0], "relu") if _rows_in(reading, node.args[0]) else None


@row("aten.gelu.default")
def gelu(reading: Reading, node: Any) -> Native | None:
    if not _rows_in(reading, node.args[0]):
        return None
    form = argument(node, 1, "approximate", "none")
    return _same(node.args[0], "gelu", approximate=form)


@row("aten.tanh.default")
def tanh(reading: Reading, node: Any) -> Native | None:
    return _same(node.args[0], "tanh") if _rows_in(reading, node.args[0]) else None


@row("aten.silu.default")
def silu(reading: Reading, node: Any) -> Native | None:
    return _same(node.args[0], "silu") if _rows_in(reading, node.args[0]) else None


@row("aten.dropout.default")
def dropout(reading: Reading, node: Any) -> Native | None:
    x, p, training = node.args[:3]
    if not _rows_in(reading, x) or not training or not 0 < p < 1:
        return None
    return _same(x, "dropout", p=p)


def _is(node: Any, name: str) -> Any:
    return str(getattr(node, "target", "")) == f"aten.{name}"


@row("aten.mul.Tensor")
def mul(reading: Reading, node: Any) -> Native | None:
    return gelu_by_hand(reading, node) or _of_two(
        reading, "multiply", *node.args[:2]
    )


def gelu_by_hand(reading: Reading, node: Any) -> Native | None:
    """0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), as GPT-2 writes it."""
    half, one = node.args[:2]
    if not (_is(half, "mul.Tensor") and half.args[1] == 0.5):
        return None
    x = half.args[0]
    if not (_is(one, "add.Tensor") and one.args[1] == 1.0):
        return None
    tanh = one.args[0]
    inner: Any = tanh.args[0] if _is(tanh, "tanh.default") else None
    if not (_is(inner, "mul.Tensor") and isinstance(inner.args[1], float)):
        return None
    if abs(inner.args[1] - math.sqrt(2 / math.pi)) > 1e-9:
        return None
    total = inner.args[0]
    if not (_is(total, "add.Tensor") and total.args[0] is x):
        return None
    cubic = total.args[1]
    if not (_is(cubic, "mul.Tensor") and cubic.args[1] == 0.044715):
        return None
    power = cubic.args[0]
    if not (_is(power, "pow.Tensor_Scalar") and tuple(power.args) == (x, 3.0)):
        return None
    return _same(x, "gelu", approximate="tanh") if _rows_in(reading, x) else None


@row("aten.layer_norm.default")
def layer_norm(reading: Reading, node: Any) -> Native | None:
    x, shape = node.args[:2]
    weight, bias = argument(node, 2, "weight"), argument(node, 3, "bias")
    epsilon = argument(node, 4, "eps", 1e-5)
    if len(shape) != 1 or not _rows_in(reading, x) or x.meta["val"].ndim < 2:
        return None
    if not reading.is_parameter(weight) or not reading.is_parameter(bias):
        return None

    def build(to: Lowering) -> Value:
        given = to.rows_of(x, shape[0])
        inputs = [given.index, to.parameter(weight), to.parameter(bias)]
        return Value(to.op("layer_norm", inputs, epsilon=epsilon), given.shape)

    return Native([x], build)


@row("aten.rms_norm.default")
def rms_norm(reading: Reading, node: Any) -> Native | None:
    x, shape = node.args[:2]
    weight, epsilon = argument(node, 2, "weight"), argument(node, 3, "eps")
    if len(shape) != 1 or not _rows_in(reading, x) or epsilon is None:
        return None
    if not reading.is_parameter(weight) or x.meta["val"].ndim < 2:
        return None

    def build(to: Lowering) -> Value:
        given = to.rows_of(x, shape[0])
        inputs = [given.index, to.parameter(weight)]
        return Value(to.op("rms_norm", inputs, epsilon=epsilon), given.shape)

    return Native([x], build)


# ---- images


def _image(reading: Reading, node: Any) -> bool:
    return _rows_in(reading, node) and node.meta["val"].ndim == 4


@row("aten.conv2d.default")
def conv2d(reading: Reading, node: Any) -> Native | None:
    x, weight = node.args[:2]
    bias = argument(node, 2, "bias")
    stride = _one(argument(node, 3, "stride", 1), 1)
    padding = _one(argument(node, 4, "padding", 0))
    dilation = _one(argument(node, 5, "dilation", 1), 1)
    groups = argument(node, 6, "groups", 1)
    good = _image(reading, x) and reading.is_parameter(weight)
    if not good or (bias is not None and not reading.is_parameter(bias)):
        return None
    if stride is None or padding is None or dilation != 1 or groups != 1:
        return None
    channels, height, width = (int(size) for size in node.meta["val"].shape[1:])

    def build(to: Lowering) -> Value:
        inputs = [to.image(x).index, to.parameter(weight)]
        inputs += [to.parameter(bias)] if bias is not None else []
        made = to.op("conv2d", inputs, stride=stride, padding=padding)
        return Value(made, (height, width, channels), True)

    return Native([x], build)


@row("aten.batch_norm.default")
def batch_norm(reading: Reading, node: Any) -> Native | None:
    x, weight, bias, mean, variance, training, momentum, epsilon = node.args[:8]
    good = training and reading.is_parameter(weight) and reading.is_parameter(bias)
    if not good or not _image(reading, x) or momentum is None:
        return None
    states = [reading.buffer(each) or "" for each in (mean, variance)]
    if mean is not None and "" in states:
        return None

    def build(to: Lowering) -> Value:
        given = to.image(x)
        inputs = [given.index, to.parameter(weight), to.parameter(bias)]
        if mean is not None:
            wide = given.shape[-1]
            name = states[0].rpartition(".")[0]
            counter = f"{name}.num_batches_tracked" if name else "num_batches_tracked"
            inputs += [-1, to.state(states[0], (wide,), 0.0)]
            inputs += [to.state(states[1], (wide,), 1.0), to.state(counter, (), 0.0)]
        made = to.op("batch_norm", inputs, epsilon=epsilon, momentum=momentum)
        return Value(made, given.shape, True)

    return Native([x], build)


def _pool(
    reading: Reading, node: Any, name: str, dilation: Any, ceil: Any
) -> Native | None:
    x = node.args[0]
    kernel = _one(node.args[1])
    stride = _one(argument(node, 2, "stride") or node.args[1])
    padding = _one(argument(node, 3, "padding", 0))
    if not _image(reading, x) or _one(dilation) != 1 or ceil:
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


def _whole_image(x: Any) -> Native:
    def build(to: Lowering) -> Value:
        given = to.image(x)
        return Value(to.op("average_pool", [given.index]), (given.shape[-1],))

    return Native([x], build)


@row("aten.adaptive_avg_pool2d.default")
def adaptive_average_pool(reading: Reading, node: Any) -> Native | None:
    x, size = node.args[:2]
    whole = _one(size) == 1 and _image(reading, x)
    return _whole_image(x) if whole else None


@row("aten.mean.dim")
def mean_of_image(reading: Reading, node: Any) -> Native | None:
    x, dims = node.args[:2]
    if not _image(reading, x) or {d % 4 for d in dims or []} != {2, 3}:
        return None
    return _whole_image(x)


# ---- attention


def _heads(reading: Reading, node: Any) -> tuple[Any, int] | None:
    """[B, T, C] and the number of heads, of [B, heads, T, C / heads]."""
    if not (_is(node, "transpose.int") and {d % 4 for d in node.args[1:3]} == {1, 2}):
        if not (_is(node, "permute.default") and list(node.args[1]) == [0, 2, 1, 3]):
            return None
    split = node.args[0]
    known = ("view.default", "reshape.default", "unflatten.int")
    if not any(_is(split, name) for name in known):
        return None
    flat = split.args[0]
    if split.meta["val"].ndim != 4 or flat.meta["val"].ndim != 3:
        return None
    return flat, int(split.meta["val"].shape[2])


def _thirds(reading: Reading, parts: Sequence[Any]) -> Any:
    """The tensor whose last dimension holds these three in their order."""
    whole = None
    for i, part in enumerate(parts):
        if getattr(part, "target", None) is not operator.getitem:
            return None
        split, index = part.args
        if index != i or split.meta["val"][0].ndim != 3 or len(split.meta["val"]) != 3:
            return None
        known = ("split.Tensor", "chunk.default", "split_with_sizes.default")
        if not any(_is(split, name) for name in known):
            return None
        if argument(split, 2, "dim", 0) % 3 != 2 or whole not in (None, split.args[0]):
            return None
        whole = split.args[0]
    return whole


def _causal(reading: Reading, node: Any, length: int) -> str | None:
    """The op for what each position sees: all before it, or all; None: neither."""
    mask = argument(node, 3, "attn_mask")
    if argument(node, 5, "is_causal", False):
        return "attention" if mask is None else None
    if mask is None:
        return "bidirectional_attention"
    found = reading.constant(mask)
    if found is None or found.dtype != torch.bool:
        return None
    below = torch.ones(length, length, dtype=torch.bool).tril()
    if tuple(found.shape[-2:]) != (length, length):
        return None
    return "attention" if bool((found == below).all()) else None


@row("aten.view.default", "aten.reshape.default", "aten.flatten.using_ints")
def attention(reading: Reading, node: Any) -> Native | None:
    """softmax(q k^T) v of one product, from heads back to [B, T, C]."""
    back = node.args[0]
    while _is(back, "contiguous.default") or _is(back, "clone.default"):
        back = back.args[0]
    if not (_is(back, "transpose.int") and {d % 4 for d in back.args[1:3]} == {1, 2}):
        return None
    core = back.args[0]
    while _is(core, "reshape.default") or _is(core, "view.default"):
        if core.meta["val"].shape != core.args[0].meta["val"].shape:
            return None
        core = core.args[0]
    if not _is(core, "scaled_dot_product_attention.default"):
        return None
    found = [_heads(reading, part) for part in core.args[:3]]
    if any(each is None for each in found) or len({each[1] for each in found if each}) > 1:
        return None
    flat = [each[0] for each in found if each]
    heads = next(each[1] for each in found if each)
    length, width = (int(size) for size in flat[0].meta["val"].shape[1:])
    scale = argument(core, 6, "scale")
    usual = scale is None or abs(scale - (width // heads) ** -0.5) < 1e-6
    whole = _thirds(reading, flat)
    op = _causal(reading, core, length)
    if whole is None or op is None or not usual or argument(core, 7, "enable_gqa", False):
        return None
    if reading.shapes.sample(node) != (length, width):
        return None
    drop = float(argument(core, 4, "dropout_p", 0.0))

    def build(to: Lowering) -> Value:
        given = to.shaped(whole, (length, 3 * width))
        made = to.op(op, [given.index], heads=heads, dropout=drop)
        return Value(made, (length, width))

    return Native([whole], build)
