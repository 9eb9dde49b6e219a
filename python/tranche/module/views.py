"""Views, parts and images in other words."""

from __future__ import annotations

import operator
from typing import Any

import torch

from tranche.module.shapes import is_float
from tranche.module.words import Table, Writer, argument, ndim, size

aten = torch.ops.aten
WORDS = Table()

# ---- other names


@WORDS.of("swapaxes.default", "swapdims.default")
def swapaxes(write: Writer, node: Any) -> Any:
    return write(aten.transpose.int, *node.args[:3])


@WORDS.of("mT.default", "adjoint.default")
def of_matrices(write: Writer, node: Any) -> Any:
    return write.transposed(node.args[0])


@WORDS.of("numpy_T.default", "t.default")
def all_turned(write: Writer, node: Any) -> Any:
    return write(aten.permute.default, node.args[0], list(range(ndim(node)))[::-1])


@WORDS.of("permute.default")
def keys_turned(write: Writer, node: Any) -> Any:
    """Keys as heads and turned for their product with queries, in two steps."""
    x, order = node.args
    names = ("aten.matmul.default", "aten.bmm.default")
    to_products = [str(user.target) in names and user.args[1] is node for user in node.users]
    if [int(d) % len(order) for d in order] != [0, 2, 3, 1] or not all(to_products):
        return None
    return write.transposed(write.permuted(x, [0, 2, 1, 3]))


@WORDS.of("movedim.int", "movedim.intlist", "moveaxis.int", "moveaxis.intlist")
def movedim(write: Writer, node: Any) -> Any:
    x, source, target = node.args
    count = ndim(node)
    source, target = (
        [d % count for d in (at if isinstance(at, list | tuple) else [at])]
        for at in (source, target)
    )
    order: list[int] = [-1] * count
    for begin, end in zip(source, target, strict=True):
        order[end] = begin
    rest = iter(d for d in range(count) if d not in source)
    return write.permuted(x, [d if d >= 0 else next(rest) for d in order])


@WORDS.of("type_as.default")
def type_as(write: Writer, node: Any) -> Any:
    return write(aten.to.dtype, node.args[0], node.meta["val"].dtype)


@WORDS.of("narrow.default")
def narrow(write: Writer, node: Any) -> Any:
    x, dim, first, count = node.args
    if not isinstance(first, int) or not isinstance(count, int) or first < 0:
        return None
    return write.slice(x, dim, first, first + count)


@WORDS.of("softmax.int")
def softmax(write: Writer, node: Any) -> Any:
    """Over the last dimension, and of the type that it has."""
    x, dim = node.args[:2]
    if not is_float(x) or argument(node, 2, "dtype") not in (None, x.meta["val"].dtype):
        return None
    if dim % ndim(x) == 0:  # of rows
        return None
    last = ndim(x) - 1
    if len(node.args) == 2 and not node.kwargs and dim % ndim(x) == last:
        return None
    moved = x if dim % ndim(x) == last else write(aten.transpose.int, x, dim, last)
    made = write(aten.softmax.int, moved, last)
    return made if moved is x else write(aten.transpose.int, made, dim, last)


# ---- parts


def _order(node: Any) -> list[int] | None:
    """Of the dimensions, where a node exchanges some."""
    count = ndim(node) if isinstance(node.meta.get("val"), torch.Tensor) else 0
    if str(node.target) == "aten.permute.default":
        return [int(d) % count for d in node.args[1]]
    if str(node.target) == "aten.transpose.int":
        order = list(range(count))
        first, second = (d % count for d in node.args[1:3])
        order[first], order[second] = second, first
        return order
    return None


def _without(order: list[int], at: int) -> list[int]:
    """The order of the dimensions that are left."""
    gone = order[at]
    rest = [d for d in order if d != gone]
    return [d - (d > gone) for d in rest]


@WORDS.of("select.int")
def select(write: Writer, node: Any) -> Any:
    """One of a permutation is a permutation of one."""
    x, dim, index = node.args
    return _one_of(write, x, dim, index)


def _one_of(write: Writer, x: Any, dim: int, index: Any) -> Any:
    order = _order(x)
    if order is None:
        return None
    inner, at = x.args[0], dim % len(order)
    if order[at] == 0:
        return None  # of rows
    one = write(aten.select.int, inner, order[at], index)
    return write.permuted(one, _without(order, at))


def piece(write: Writer, node: Any) -> Any:
    """One of those that unbind gives."""
    whole, index = node.args
    if str(getattr(whole, "target", "")) != "aten.unbind.int":
        return None
    return _one_of(write, whole.args[0], argument(whole, 1, "dim", 0), index)


WORDS[str(operator.getitem)] = piece


@WORDS.of("stack.default")
def stack(write: Writer, node: Any) -> Any:
    dim = argument(node, 1, "dim", 0) % ndim(node)
    parts = [write(aten.unsqueeze.default, part, dim) for part in node.args[0]]
    return write(aten.cat.default, parts, dim)


@WORDS.of("roll.default")
def roll(write: Writer, node: Any) -> Any:
    x, shifts, dims = node.args[0], node.args[1], argument(node, 2, "dims", [])
    sizes = [size(x, d) for d in dims]
    if not dims or None in sizes or not all(isinstance(s, int) for s in shifts):
        return None
    for shift, dim, whole in zip(shifts, dims, sizes, strict=True):
        assert whole is not None
        at = (whole - shift % whole) % whole
        if at:
            parts = [write.slice(x, dim, at, whole), write.slice(x, dim, 0, at)]
            x = write(aten.cat.default, parts, dim)
    return x


@WORDS.of("repeat_interleave.self_int")
def repeat_interleave(write: Writer, node: Any) -> Any:
    x, times, dim = node.args[0], node.args[1], argument(node, 2, "dim")
    if dim is None or dim % ndim(x) == 0 or not isinstance(times, int):
        return None
    dim = dim % ndim(x)
    apart = write(aten.unsqueeze.default, x, dim + 1)
    sizes = [-1] * (ndim(x) + 1)
    sizes[dim + 1] = times
    many = write(aten.expand.default, apart, sizes)
    return write(aten.flatten.using_ints, many, dim, dim + 1)


@WORDS.of("repeat.default")
def tiles(write: Writer, node: Any) -> Any:
    """Of dimensions that are wider than one: each tile stands behind the other."""
    x, times = node.args
    wide = [d for d in range(1, ndim(x)) if times[d] != 1 and size(x, d) != 1]
    if len(times) != ndim(x) or times[0] != 1 or not wide:
        return None
    for dim in wide:
        apart = write(aten.unsqueeze.default, x, dim)
        sizes = [-1] * (ndim(x) + 1)
        sizes[dim] = times[dim]
        many = write(aten.expand.default, apart, sizes)
        x = write(aten.flatten.using_ints, many, dim, dim + 1)
    left = [1 if d in wide else n for d, n in enumerate(times)]
    return x if all(n == 1 for n in left) else write(aten.repeat.default, x, left)


@WORDS.of("tril.default", "triu.default")
def triangle(write: Writer, node: Any) -> Any:
    x, diagonal = node.args[0], argument(node, 1, "diagonal", 0)
    rows, columns = size(x, -2), size(x, -1)
    if not is_float(x) or rows is None or columns is None or ndim(x) < 3:
        return None
    ones = write(aten.ones.default, [rows, columns])
    return write(aten.mul.Tensor, x, write(node.target, ones, diagonal))


# ---- images


@WORDS.of("upsample_nearest2d.vec")
def upsample(write: Writer, node: Any) -> Any:
    """Whole times as many: each pixel stands several times."""
    x = node.args[0]
    times = []
    for dim in (2, 3):
        before, after = size(x, dim), size(node, dim)
        if before is None or after is None or after % before:
            return None
        times.append(after // before)
    apart = write(aten.unsqueeze.default, write(aten.unsqueeze.default, x, 3), 5)
    many = write(aten.expand.default, apart, [-1, -1, -1, times[0], -1, times[1]])
    high = write(aten.flatten.using_ints, many, 2, 3)
    return write(aten.flatten.using_ints, high, 3, 4)


@WORDS.of("adaptive_avg_pool2d.default")
def adaptive(write: Writer, node: Any) -> Any:
    """Windows of one size, where the sides are multiples."""
    x = node.args[0]
    sides = [(size(x, dim), size(node, dim)) for dim in (2, 3)]
    if any(before is None or after is None for before, after in sides):
        return None
    if all(before == after for before, after in sides):
        return write(aten.alias.default, x)
    if all(after == 1 for _, after in sides):
        return None
    kernel = [0 if before % after else before // after for before, after in sides]  # type: ignore[operator]
    if 0 in kernel:
        return None
    return write(aten.avg_pool2d.default, x, kernel, kernel)


def _each(sizes: Any, count: int) -> list[int]:
    given = [sizes] if isinstance(sizes, int) else list(sizes)
    return given * (count // len(given))


def _windows(write: Writer, x: Any, kernel: int) -> Any:
    """The means of as many places as the last dimension has windows."""
    whole = size(x, -1) or 0
    count = whole // kernel
    x = x if count * kernel == whole else write.slice(x, ndim(x) - 1, 0, count * kernel)
    apart = write(aten.unflatten.int, x, ndim(x) - 1, [count, kernel])
    return write(aten.mean.dim, apart, [-1])


@WORDS.of("adaptive_avg_pool1d.default")
def adaptive_of_sequences(write: Writer, node: Any) -> Any:
    before, after = size(node.args[0], -1), size(node, -1)
    if before is None or after is None or before % after:
        return None
    return _windows(write, node.args[0], before // after)


@WORDS.of("avg_pool1d.default")
def average_of_sequences(write: Writer, node: Any) -> Any:
    """Of windows that stand side by side, none of them beyond the end."""
    x, kernel = node.args[0], list(node.args[1])
    stride = argument(node, 2, "stride") or kernel
    padding, beyond = argument(node, 3, "padding", [0]), argument(node, 4, "ceil_mode")
    if list(stride) != kernel or any(padding) or beyond or not size(x, -1):
        return None
    return _windows(write, x, kernel[0])


@WORDS.of("conv1d.padding", "conv2d.padding")
def padded(write: Writer, node: Any) -> Any:
    """Of a size that padding keeps, and none."""
    x, weight = node.args[:2]
    stride, padding = argument(node, 3, "stride", 1), argument(node, 4, "padding", "valid")
    dilation, groups = argument(node, 5, "dilation", 1), argument(node, 6, "groups", 1)
    kernel = weight.meta["val"].shape[2:]
    both = _each(dilation, len(kernel))
    whole = [d * (int(k) - 1) for d, k in zip(both, kernel, strict=True)]
    if padding == "same" and any(each % 2 for each in whole):
        return None
    sides = [each // 2 if padding == "same" else 0 for each in whole]
    bias = argument(node, 2, "bias")
    given = (_each(stride, len(kernel)), sides, both, groups)
    plain = aten.conv1d.default if len(kernel) == 1 else aten.conv2d.default
    return write(plain, x, weight, bias, *given)
