"""Where a graph is cut into units: at the blocks that the module tree repeats."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import torch

_CONTAINERS = (torch.nn.Sequential, torch.nn.ModuleList, torch.nn.ModuleDict)


def _children(module: torch.nn.Module, path: str) -> Iterator[tuple[str, Any]]:
    """Children, and those of containers in their place."""
    for name, child in module.named_children():
        below = f"{path}.{name}" if path else name
        if isinstance(child, _CONTAINERS):
            yield from _children(child, below)
        else:
            yield below, child


def _repeated(module: torch.nn.Module, path: str, whole: bool) -> Iterator[str]:
    """Paths of modules whose class stands twice or more beside each other. whole: those
    that have modules of their own; else single ones with matrices."""
    children = list(_children(module, path))
    of_kind = [(p, m) for p, m in children if _counts(m, whole)]
    classes = Counter(type(m) for _, m in of_kind)
    for below, child in children:
        if _counts(child, whole) and classes[type(child)] > 1:
            yield below
        else:
            yield from _repeated(child, below, whole)


def _counts(module: torch.nn.Module, whole: bool) -> bool:
    own = any(True for _ in module.children())
    if own != whole or isinstance(module, torch.nn.Embedding):
        return False
    return any(p.ndim > 1 for p in module.parameters())


def blocks(module: torch.nn.Module) -> tuple[set[str], bool]:
    """Paths of the blocks, and whether they are modules of modules."""
    found = set(_repeated(module, "", True))
    if found:
        return found, True
    return set(_repeated(module, "", False)), False


def _path(node: Any, known: set[str]) -> str:
    """The block that a node is in; "": in none."""
    for path, _ in (node.meta.get("nn_module_stack") or {}).values():
        plain = str(path).removeprefix("module.").split("@")[0]
        if plain in known:
            return plain
    return ""


def units(module: torch.nn.Module, nodes: Sequence[Any]) -> tuple[dict[Any, int], list[str]]:
    """The number of each node's unit, and the blocks of the units ("": of none). What
    stands between two blocks is a unit of its own where blocks are modules of modules,
    else it is the end of the block before."""
    known, whole = blocks(module)
    numbers: dict[Any, int] = {}
    paths: list[str] = []
    for node in nodes:
        path = _path(node, known)
        if not paths:
            paths.append(path)
        elif path != paths[-1] and (path or whole):
            # What stands before the first of single modules belongs to it.
            if not paths[-1] and not whole:
                paths[-1] = path
            else:
                paths.append(path)
        numbers[node] = len(paths) - 1
    return numbers, paths
