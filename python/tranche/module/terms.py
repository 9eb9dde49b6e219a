"""Operands of an operator that PyTorch repeats to match each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from tranche.module.shapes import is_float

if TYPE_CHECKING:
    from tranche.module.read import Reading

# What leaves the elements of a parameter as they are.
_VIEWS = {
    *("view.default", "reshape.default", "unsqueeze.default", "squeeze.default"),
    *("squeeze.dim", "squeeze.dims", "contiguous.default", "clone.default"),
    *("alias.default", "slice.Tensor", "to.dtype", "to.dtype_layout", "to.device"),
    *("detach.default", "flatten.using_ints"),
}


class Term(NamedTuple):
    """kind: "rows", "parameter", "constant", "batch" (made of the batch before it comes
    to the library) or "value" (one of the unit's, in the place of a node). shape: of a
    sample, where 1 may stand for more. values: of a constant."""

    kind: str
    node: Any
    shape: tuple[int, ...]
    values: Any = None


def _is_prepared(reading: Reading, node: Any) -> bool:
    """Is it made of the batch alone, by an operator that the library has no op for? It
    is then computed before the batch comes to the library."""
    return reading.needs_torch(node) and reading.is_of_batch_alone(node)


def _plain_name(node: Any) -> str:
    return str(getattr(node, "target", "")).removeprefix("aten.")


def parameter_of(reading: Reading, node: Any) -> tuple[Any, tuple[int, ...]] | None:
    """The parameter whose elements a node has, all of them and in their order, and the
    shape in which it has them before they are repeated."""
    shape: tuple[int, ...] | None = None
    while not reading.is_parameter(node):
        if not isinstance(node, torch.fx.Node) or node.op != "call_function":
            return None
        name = _plain_name(node)
        if name == "expand.default" and shape is None:
            node = node.args[0]
            given = node.meta["val"].shape
            shape = tuple(int(s) if isinstance(s, int) else -1 for s in given)
            continue
        source = node.args[0] if node.args else None
        if name not in _VIEWS or not isinstance(source, torch.fx.Node):
            return None
        value, given = node.meta["val"], source.meta.get("val")
        if not isinstance(given, torch.Tensor) or value.dtype != given.dtype:
            return None
        if not all(isinstance(s, int) for s in (*value.shape, *given.shape)):
            return None
        if value.numel() != given.numel() or name == "detach.default":
            return None
        if shape is None:
            shape = tuple(value.shape)
        node = source
    own = tuple(int(s) for s in node.meta["val"].shape)
    return (node, own) if shape is None else (node, shape)


def term(reading: Reading, node: Any, sample: tuple[int, ...]) -> Term | None:
    """An operand of a result of this shape a sample; None: it is none of these."""
    if not isinstance(node, torch.fx.Node):
        return None
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor):
        return None
    if reading.has_rows(node):
        shape = reading.shapes.sample(node)
        if shape is None or not is_float(node) or value.ndim != len(sample) + 1:
            return None
        if not _fits(shape, sample):
            return None
        return Term("batch" if _is_prepared(reading, node) else "rows", node, shape)
    found = parameter_of(reading, node)
    if found is not None:
        shape = _of_sample(found[1], sample)
        return None if shape is None else Term("parameter", found[0], shape)
    values = reading.constant(node)
    if values is None or not values.is_floating_point():
        return None
    return constant_term(node, values, sample)


def constant_term(node: Any, values: Any, sample: tuple[int, ...]) -> Term | None:
    """values: [1 or rows, *sample], or fewer dimensions."""
    if values.ndim == len(sample) + 1:
        if values.shape[0] > 1 and not bool((values == values[:1]).all()):
            return None
        values = values[0]
    if values.ndim > len(sample):
        return None
    shape = (1,) * (len(sample) - values.ndim) + tuple(values.shape)
    if not _fits(shape, sample):
        return None
    return Term("constant", node, shape, values.reshape(shape))


def _fits(shape: tuple[int, ...], sample: tuple[int, ...]) -> bool:
    return len(shape) == len(sample) and all(
        mine in (1, theirs) for mine, theirs in zip(shape, sample, strict=True)
    )


def _of_sample(shape: tuple[int, ...], sample: tuple[int, ...]) -> tuple[int, ...] | None:
    if len(shape) == len(sample) + 1:
        if shape[0] != 1:
            return None
        shape = shape[1:]
    if len(shape) > len(sample):
        return None
    shape = (1,) * (len(sample) - len(shape)) + shape
    return shape if _fits(shape, sample) else None


def rows_of(terms: list[Term | None]) -> list[Any]:
    return [each.node for each in terms if each is not None and each.kind == "rows"]
