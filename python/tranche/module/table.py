"""PyTorch's operators that are ops of the library: a row for each. A row looks at a node
and says which tensors it takes and which steps it becomes, or None where this use of it
is none of the library's; it then runs in PyTorch."""

from __future__ import annotations

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


def one_size(sizes: Any, otherwise: int = 0) -> int | None:
    """The size of all sides; None where they differ."""
    if isinstance(sizes, int):
        return sizes
    if not sizes:
        return otherwise
    return int(sizes[0]) if len(set(sizes)) == 1 else None


def rows_in(reading: Reading, *nodes: Any) -> bool:
    return all(
        isinstance(n, torch.fx.Node)
        and is_float(n)
        and reading.has_rows(n)
        for n in nodes
    )


def is_op(node: Any, name: str) -> bool:
    return str(getattr(node, "target", "")) == f"aten.{name}"


def same_shape(x: Any, name: str, **attributes: Any) -> Native:
    """An op of each element alone."""

    def build(to: Lowering) -> Value:
        given = to.value(x)
        made = to.op(name, [given.index], **attributes)
        return Value(made, given.shape, given.channels_last)

    return Native([x], build)
