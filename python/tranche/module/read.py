"""What the graph's nodes are: ops of the library, views, or operators for PyTorch; and
which of their tensors lie in the plan."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from tranche import _declarations as c
from tranche.module import cuts, moves, rows
from tranche.module.export import Traced, refuse
from tranche.module.regions import Region
from tranche.module.shapes import Shapes, count, is_float, is_size
from tranche.module.table import Native

_VIEWS = {
    *("view.default", "reshape.default", "_unsafe_view.default", "flatten.using_ints"),
    *("unflatten.int", "unsqueeze.default", "squeeze.default", "squeeze.dim"),
    *("squeeze.dims", "contiguous.default", "clone.default", "alias.default"),
}
_SAME_SHAPE = {"slice.Tensor", "expand.default", "to.dtype", "to.dtype_layout"}
_SAME_SHAPE |= {"to.device", "dropout.default", "lift_fresh_copy.default"}


class Emitted(NamedTuple):
    """A tensor of the plan. native: what it becomes; None: a region of PyTorch's."""

    node: Any
    unit: int
    native: Native | None
    operands: list[Any]  # of the plan, of the batch, and parameters of a region


class Reading:
    """The graph as it will be cut and built."""

    def __init__(self, traced: Traced, module: torch.nn.Module) -> None:
        self.traced = traced
        self.shapes = Shapes(traced.rows)
        self.numbers, self.paths = cuts.units(module, traced.nodes)
        self.ids_below: dict[str, int] = {}  # of tensors of the batch
        self.prepared: dict[str, Region] = {}  # targets that are made of the batch
        self._of_batch = self._made_of_batch()
        self._bases: dict[Any, Any] = {}
        self.natives: dict[Any, Native] = {}
        self._order = {n: i for i, n in enumerate([*traced.placeholders, *traced.nodes])}
        for node in traced.nodes:
            native = rows.find(self, node)
            if native is not None:
                self.natives[node] = native
            elif self._is_view(node):
                self._bases[node] = self.base(node.args[0])
            elif self._passed_on(node) is not None:
                self._bases[node] = self.base(self._passed_on(node))

    def _made_of_batch(self) -> set[Any]:
        """Nodes that values of the batch are in, and not its size alone."""
        found = set(self.traced.inputs)
        for node in self.traced.nodes:
            if not is_size(node) and any(n in found for n in node.all_input_nodes):
                found.add(node)
        return found

    # ---- asked by the rows of the table

    def is_parameter(self, node: Any) -> bool:
        return node in self.traced.parameters

    def is_of_batch(self, node: Any) -> bool:
        """Are values of the batch in it?"""
        return node in self._of_batch

    def is_of_batch_alone(self, node: Any) -> bool:
        """Are there no parameters in it, and nothing drawn?"""
        found = Region.of(node)
        return node in self._of_batch and not any(
            each in self.traced.parameters or is_drawn(each) for each in found
        )

    def needs_torch(self, node: Any) -> bool:
        """Is there an operator in it that is neither an op nor a view?"""
        known = {*self.natives, *self._bases, *self.traced.inputs}
        return any(
            each in self._of_batch and each not in known for each in Region.of(node)
        )

    def has_rows(self, node: Any) -> bool:
        """Does it have a result of each row of the batch, one behind the other?"""
        return node in self._of_batch and self.shapes.sample(node) is not None

    def buffer(self, node: Any) -> str | None:
        return self.traced.buffers.get(node)

    def base(self, node: Any) -> Any:
        """The tensor that a node is a view of, in the same order."""
        return self._bases.get(node, node)

    def constant(self, node: Any) -> Any:
        """The value of a node that no data and no parameter are in; None of others."""
        if node.op == "placeholder" and node in self.traced.inputs:
            return None
        region_nodes = Region.of(node)
        for each in region_nodes:
            if each in self.traced.inputs or each in self.traced.parameters:
                return None
            if is_drawn(each):
                return None
        with torch.no_grad():
            return Region(self.traced, self.shapes, node, []).run(3, [])

    def limit_ids(self, node: Any, rows: int) -> None:
        name = self.traced.inputs[node]
        self.ids_below[name] = min(rows, self.ids_below.get(name, rows))

    def _passed_on(self, node: Any) -> Any:
        """The tensor that it is: of one alone cat makes no other, and broadcast_tensors
        none of those of one shape."""
        if str(node.target) == "aten.cat.default":
            parts = moves.not_empty(node.args[0])
            return parts[0] if len(parts) == 1 else None
        if node.target is not operator.getitem:
            return None
        split = node.args[0]
        if str(split.target) != "aten.broadcast_tensors.default":
            return None
        given = [each.meta["val"].shape for each in split.args[0]]
        same = all(shape == given[0] for shape in given)
        return split.args[0][node.args[1]] if same else None

    def _is_view(self, node: Any) -> bool:
        name = str(node.target).removeprefix("aten.")
        if name not in _VIEWS and name not in _SAME_SHAPE:
            return False
        source = node.args[0]
        value, given = node.meta.get("val"), source.meta.get("val")
        if not isinstance(value, torch.Tensor) or not isinstance(given, torch.Tensor):
            return False
        if value.dtype != given.dtype or is_size(source):
            return False
        if name == "dropout.default" and node.args[2] and node.args[1] > 0:
            return False
        own, theirs = self.shapes.sample(node), self.shapes.sample(source)
        if own is None or theirs is None or count(own) != count(theirs):
            return False
        return name in _VIEWS or own == theirs

    # ---- which tensors lie in the plan

    def emitted(self, loss: Any, direct: Sequence[Any]) -> list[Emitted]:
        """The tensors of the plan in the order in which they are made. loss: a node
        that PyTorch computes at the end, if it does; direct: those that the end needs
        as they are."""
        split: set[Any] = set()
        while True:
            made = self._plan(loss, direct, split)
            wide = [e for e in made if e.native is None and self._too_wide(e)]
            if not wide:
                return made
            more = self._inside(wide[0]) - split
            if not more:
                most = c.TR_FUNCTION_INPUTS
                raise refuse(wide[0].node, f"it takes more than {most} tensors at once")
            split.add(max(more, key=self._order.__getitem__))

    def _too_wide(self, made: Emitted) -> bool:
        return len(made.operands) > c.TR_FUNCTION_INPUTS

    def _inside(self, made: Emitted) -> set[Any]:
        """Tensors inside of a region that may lie in the plan."""
        found = Region.of(made.node, set(made.operands))
        inner = set(found) - set(made.operands) - {made.node}
        return {
            node
            for node in inner
            if self._may_lie(node) and len(self.operands_of(node, set())) > 1
        }

    def _may_lie(self, node: Any) -> bool:
        plain = node.op == "call_function" and is_float(node)
        return plain and self.has_rows(node)

    def _plan(self, loss: Any, direct: Sequence[Any], split: set[Any]) -> list[Emitted]:
        needed = {self.base(node) for node in direct}
        owners: dict[Any, set[Any]] = {}
        lies: set[Any] = set()

        def pass_on(node: Any, to: set[Any]) -> None:
            for each in node.all_input_nodes:
                if not is_size(each):
                    owners.setdefault(self.base(each), set()).update(to)

        for node in reversed(self.traced.nodes):
            if node is loss:
                pass_on(node, {node})
                continue
            native = self.natives.get(node)
            own = owners.get(node, set())
            if not own and node not in needed:
                continue
            if native is not None:
                lies.add(node)
                needed.update(self.base(each) for each in native.operands)
                continue
            apart = len(own) > 1 or any(
                self.numbers[each] != self.numbers[node] for each in own
            )
            if node in needed or node in split or (apart and self._may_lie(node)):
                if not self._may_lie(node):
                    raise refuse(
                        node,
                        "its result is not rows one behind the other, which the plan "
                        "could cut into micro-batches",
                    )
                lies.add(node)
                own = {node}
            pass_on(node, own)
        return [
            Emitted(
                node,
                self.numbers[node],
                self.natives.get(node),
                self._operands(node, lies),
            )
            for node in self.traced.nodes
            if node in lies
        ]

    def _operands(self, node: Any, lies: set[Any]) -> list[Any]:
        native = self.natives.get(node)
        if native is not None:
            return [self.base(each) for each in native.operands]
        return self.operands_of(node, lies)

    def operands_of(self, output: Any, lies: set[Any]) -> list[Any]:
        """Where the nodes begin that `output` is made of."""
        found: set[Any] = set()
        seen = {output}
        waiting = list(output.all_input_nodes)
        while waiting:
            node = waiting.pop()
            if node in seen or is_size(node):
                continue
            seen.add(node)
            inputs = self.traced.inputs
            if node in lies or node in inputs or node in self.traced.parameters:
                found.add(node)
            else:
                waiting += node.all_input_nodes
        return sorted(found, key=self._order.__getitem__)


def is_drawn(node: Any) -> bool:
    """Is it another each time?"""
    tags = getattr(node.target, "tags", ())
    return torch.Tag.nondeterministic_seeded in tags


class Examples(Mapping[Any, Any]):
    """The value of each node on a few rows of the batch. The module runs when the first
    value of an operator is asked for: most modules need none, and all their values
    together may take much memory."""

    def __init__(self, traced: Traced, batch: Mapping[str, Any]) -> None:
        self._traced = traced
        self._found = {node: self._given(node, batch) for node in traced.placeholders}
        self._is_whole = False

    def _given(self, node: Any, batch: Mapping[str, Any]) -> Any:
        traced = self._traced
        if node in traced.inputs:
            return batch[traced.inputs[node]]
        value = traced.constants[node].detach()
        return value.clone() if node in traced.buffers else value

    def _run(self) -> None:
        found = self._found

        class Kept(torch.fx.Interpreter):
            def run_node(self, node: Any) -> Any:
                value = super().run_node(node)
                found[node] = value
                return value

        given = [found[node] for node in self._traced.placeholders]
        with torch.no_grad():
            Kept(self._traced.graph_module).run(*given)
        self._is_whole = True

    def __getitem__(self, node: Any) -> Any:
        if node not in self._found and not self._is_whole:
            self._run()
        return self._found[node]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)
