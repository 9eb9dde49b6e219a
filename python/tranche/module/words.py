"""Operators that the table has no row for, said in words that it has: each becomes a few
simpler ones before the graph is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

aten = torch.ops.aten
WRITTEN = "tranche_written"  # of a node: the operator that the user wrote
_KEPT = ("nn_module_stack", "stack_trace", "source_fn_stack")


class Writer:
    """Puts nodes in front of one, as if the same line had made them."""

    def __init__(self, node: Any) -> None:
        self._node = node

    def __call__(self, target: Any, *args: Any, **kwargs: Any) -> Any:
        graph = self._node.graph
        with graph.inserting_before(self._node):
            made = graph.call_function(target, args, kwargs)
        made.meta.update({k: v for k, v in self._node.meta.items() if k in _KEPT})
        made.meta[WRITTEN] = self._node.meta.get(WRITTEN, self._node.target)
        given, named = torch.fx.map_arg((args, kwargs), lambda n: n.meta["val"])
        made.meta["val"] = target(*given, **named)
        return made

    # ---- what several need

    def permuted(self, x: Any, order: list[int]) -> Any:
        return x if order == sorted(order) else self(aten.permute.default, x, order)

    def transposed(self, x: Any) -> Any:
        """Of the last two dimensions."""
        return self(aten.transpose.int, x, -2, -1)

    def slice(self, x: Any, dim: int, first: int, end: int) -> Any:
        return self(aten.slice.Tensor, x, dim, first, end)


# What a node becomes, or None where it stays.
Words = Callable[[Writer, Any], Any]


class Table(dict[str, Words]):
    """Words by the names of PyTorch's operators."""

    def of(self, *names: str) -> Callable[[Words], Words]:
        def take(function: Words) -> Words:
            self.update({f"aten.{name}": function for name in names})
            return function

        return take


def rewrite(graph_module: Any, tables: Sequence[Table]) -> None:
    """Writes the nodes of a graph in other words, where there are some."""
    graph = graph_module.graph
    for node in list(graph.nodes):
        if node.op != "call_function" or "val" not in node.meta:
            continue
        for table in tables:
            known = table.get(str(node.target))
            made = known(Writer(node), node) if known is not None else None
            if made is not None:
                node.replace_all_uses_with(made)
                graph.erase_node(node)
                break
    graph.eliminate_dead_code()


def argument(node: Any, index: int, name: str, otherwise: Any = None) -> Any:
    if index < len(node.args):
        return node.args[index]
    return node.kwargs.get(name, otherwise)


def ndim(node: Any) -> int:
    return int(node.meta["val"].ndim)


def size(node: Any, dim: int) -> int | None:
    """None: it depends on the rows."""
    found = node.meta["val"].shape[dim]
    return int(found) if isinstance(found, int) else None
