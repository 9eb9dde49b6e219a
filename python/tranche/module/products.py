"""Products with a weight, and of tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tranche.module.shapes import count
from tranche.module.steps import Value
from tranche.module.table import Native, argument, is_op, row, rows_in

if TYPE_CHECKING:
    from tranche.module.lower import Lowering
    from tranche.module.read import Reading


def _product(
    reading: Reading, x: Any, weight: Any, bias: Any, form: str
) -> Native | None:
    good = (
        rows_in(reading, x)
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
    turned = _turned(reading, weight)
    if turned is not None:
        return _product(reading, x, turned, bias, "out_in")
    return _product(reading, x, weight, bias, "in_out")


def _turned(reading: Reading, node: Any) -> Any:
    """The parameter of two dimensions that a node has the transpose of."""
    names = ("t.default", "permute.default", "transpose.int")
    if not any(is_op(node, name) for name in names) or node.meta["val"].ndim != 2:
        return None
    same = is_op(node, "permute.default") and list(node.args[1]) == [0, 1]
    inner = node.args[0]
    return inner if reading.is_parameter(inner) and not same else None


def matmul(reading: Reading, node: Any) -> Native | None:
    """Attention asks for it where a product is none of its own."""
    x, weight = node.args[:2]
    turned = _turned(reading, weight)
    if turned is not None:
        return _product(reading, x, turned, None, "out_in")
    return _product(reading, x, weight, None, "in_out") or _of_tensors(
        reading, node, x, weight
    )


def _of_tensors(reading: Reading, node: Any, a: Any, b: Any) -> Native | None:
    """Both have rows, and as many matrices for each."""
    if not rows_in(reading, a, b):
        return None
    first, second = reading.shapes.sample(a), reading.shapes.sample(b)
    out = reading.shapes.sample(node)
    if first is None or second is None or out is None or len(first) < 2:
        return None
    # [k * rows, M, K], of bmm, has k matrices a sample, too.
    if len(second) != len(first) or first[:-2] != second[:-2]:
        return None
    many = count(first[:-2])

    def build(to: Lowering) -> Value:
        left = to.shaped(a, (many, *first[-2:]))
        right = to.shaped(b, (many, *second[-2:]))
        return product(to, left, right, out)

    return Native([a, b], build)


def product(
    to: Lowering, a: Value, b: Value, out: tuple[int, ...], b_transposed: bool = False
) -> Value:
    made = to.op("product", [a.index, b.index], b_transposed=b_transposed)
    whole = Value(made, (a.shape[0], a.shape[1], b.shape[1 if b_transposed else 2]))
    return to.reshape(whole, out if len(out) < 4 else (count(out),))
