"""Operators that run in PyTorch, on buffers of the plan: forward, and the product of a
gradient with the Jacobian, by autograd."""

from __future__ import annotations

import ctypes
import hashlib
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from tranche import _declarations as c
from tranche._calls import Raised
from tranche._handle import field_type, sized
from tranche.error import Error
from tranche.module import gpu
from tranche.module.export import Traced, refuse
from tranche.module.shapes import Shapes, is_size

_DTYPES = {
    c.TR_F32: torch.float32,
    c.TR_F16: torch.float16,
    c.TR_BF16: torch.bfloat16,
    c.TR_F64: torch.float64,
    c.TR_I32: torch.int32,
}
HOST = torch.device("cpu")
TOLERANCE = 1e-3  # of what rows may differ in alone and among others


class Operand(NamedTuple):
    """A tensor that comes from the plan. rows: it has them, and is no parameter."""

    node: Any
    channels_last: bool
    rows: bool


def tensor_at(
    address: int, dtype: int, shape: Sequence[int], device: torch.device = HOST
) -> Any:
    """Memory of the library's as a tensor."""
    kind = _DTYPES[dtype]
    if device != HOST:
        return gpu.tensor(address, kind, shape, device)
    count = 1
    for size in shape:
        count *= size
    buffer = (ctypes.c_char * (count * kind.itemsize)).from_address(address)
    return torch.frombuffer(buffer, dtype=kind).view(tuple(shape))


def _shape(desc: Any) -> list[int]:
    return list(desc.shape.dim[: desc.shape.rank])


class Region:
    """Nodes from operands to one result, as one function of (rows, *operands).
    finish: what is made of the result, such as another layout."""

    def __init__(
        self,
        traced: Traced,
        shapes: Shapes,
        output: Any,
        operands: Sequence[Operand],
        finish: Callable[[Any], Any] = lambda result: result,
    ) -> None:
        self.shapes = shapes
        self.output = output
        self.operands = list(operands)
        self.finish = finish
        self.nodes = _cone(output, {operand.node for operand in operands})
        self._constants: dict[str, Any] = {}
        self.text = ""
        self._modules = {HOST: self._made(traced)}

    def _on(self, device: torch.device) -> Any:
        """The nodes where their operands are."""
        if device not in self._modules:
            self._modules[device] = gpu.moved(self._modules[HOST], device)
        return self._modules[device]

    @staticmethod
    def of(output: Any, ends: set[Any] | None = None) -> list[Any]:
        """The nodes that `output` is made of, those where it ends included."""
        return _cone(output, ends or set())

    def _made(self, traced: Traced) -> Any:
        """The nodes as a module of their own, in the order of the graph."""
        graph = torch.fx.Graph()
        rows = graph.placeholder("rows")
        made: dict[Any, Any] = {}
        names: dict[Any, str] = {}
        for i, operand in enumerate(self.operands):
            made[operand.node] = graph.placeholder(f"operand{i}")
            names[operand.node] = f"operand{i}"
        text = []
        known = set(self.nodes)
        for node in [*traced.placeholders, *traced.nodes]:
            if node not in known or node in made:
                continue
            names[node] = f"v{len(names)}"
            if node.op == "placeholder":
                if node not in traced.constants:
                    raise refuse(node, "an operand is missing")
                name = f"constant{len(self._constants)}"
                self._constants[name] = traced.constants[node].detach().clone()
                made[node] = graph.get_attr(name)
                text.append(f"{names[node]} = {_hash(self._constants[name])}")
            elif is_size(node):
                made[node] = self._size(graph, node, rows)
                text.append(f"{names[node]} = {node.meta['val']}")
            else:
                made[node] = graph.node_copy(node, lambda n: made[n])
                arguments = torch.fx.map_arg(
                    (node.args, node.kwargs), lambda n: names[n]
                )
                text.append(f"{names[node]} = {node.target}{arguments}")
        graph.output(made[self.output])
        self.text = "; ".join(text) or f"{self.operands[0].channels_last}"
        return torch.fx.GraphModule(self._constants, graph)

    def _size(self, graph: Any, node: Any, rows: Any) -> Any:
        """A size, for as many rows as there are."""
        parts = self.shapes.size_of(node)
        if parts is None:
            raise refuse(node, "this size is no sum of products of the batch's rows")
        made = parts[0]
        for part in parts[1:]:
            made = graph.call_function(operator.mul, (made, rows))
            made = graph.call_function(operator.add, (made, part))
        return made

    def restore(self, operand: Operand, values: Any, rows: int) -> Any:
        """What lies in the plan as the graph has it."""
        meta = operand.node.meta["val"]
        if operand.rows:
            if operand.channels_last:
                values = values.permute(0, 3, 1, 2)
            each = self.shapes.factor(meta.shape[0]) or 1
            values = values.reshape(each * rows, *meta.shape[1:])
        return values if values.dtype == meta.dtype else values.to(meta.dtype)

    def run(self, rows: int, values: Sequence[Any]) -> Any:
        """values: as they lie in the plan."""
        restored = [
            self.restore(operand, value, rows)
            for operand, value in zip(self.operands, values, strict=True)
        ]
        device = restored[0].device if restored else HOST
        return self.finish(self._on(device)(rows, *restored))

    # ---- do rows stay apart?

    def keeps_rows_apart(self, examples: Mapping[Any, Any]) -> bool:
        """Is each row's result the same alone and among others?"""
        values, rows = self._drawn(examples)
        try:
            with torch.no_grad():
                together = self.run(rows, values)
                each = together.shape[0] // rows
                for row in range(rows):
                    alone = self.run(1, self._cut(values, row, rows))
                    part = together[row * each : (row + 1) * each]
                    if alone.shape != part.shape or not torch.allclose(
                        alone, part, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True
                    ):
                        return False
        except (RuntimeError, IndexError):
            return False  # it needs the number of rows that the graph was made with
        return True

    def _drawn(self, examples: Mapping[Any, Any]) -> tuple[list[Any], int]:
        """Examples of all operands, a little off, so that no two rows are alike."""
        values, rows = [], 1
        draw = torch.Generator().manual_seed(1)
        for operand in self.operands:
            value = examples[operand.node].detach()
            if operand.rows:
                each = self.shapes.factor(operand.node.meta["val"].shape[0]) or 1
                rows = value.shape[0] // each
                value = value.reshape(rows, -1)
                if value.is_floating_point():
                    noise = torch.randn(value.shape, generator=draw).to(value.dtype)
                    value = value + 0.1 * noise
                if operand.channels_last:
                    shape = operand.node.meta["val"].shape[1:]
                    value = value.reshape(rows, *shape).permute(0, 2, 3, 1)
            values.append(value)
        return values, rows

    def like(self, examples: Mapping[Any, Any], rows: int) -> list[Any]:
        """Values of so many rows, as they lie in the plan, like those of the examples."""
        values, there = self._drawn(examples)
        at = torch.arange(rows) % there
        return [
            value[at] if operand.rows else value
            for operand, value in zip(self.operands, values, strict=True)
        ]

    def _cut(self, values: Sequence[Any], row: int, rows: int) -> list[Any]:
        return [
            value[row : row + 1] if operand.rows else value
            for operand, value in zip(self.operands, values, strict=True)
        ]


def _cone(output: Any, ends: set[Any]) -> list[Any]:
    """The nodes that `output` is made of, operands included."""
    found: dict[Any, None] = {}
    waiting = [output]
    while waiting:
        node = waiting.pop()
        if node in found:
            continue
        found[node] = None
        if node not in ends and not is_size(node):
            waiting += node.all_input_nodes
    return list(found)


def _hash(tensor: Any) -> str:
    values = tensor.detach().contiguous().view(-1)
    told = hashlib.blake2b(repr((tensor.shape, tensor.dtype)).encode(), digest_size=8)
    if values.numel():
        told.update(bytes(values.view(torch.uint8).numpy()))
    return told.hexdigest()


class Function:
    """A region as the library calls it. outside: bytes that it takes beside the plan."""

    def __init__(self, region: Region, raised: Raised, name: str, outside: int) -> None:
        self.region = region
        self.table = sized(c.tr_function)
        self.table.name = name.encode()
        self.table.outside_bytes = outside
        self.table.on_device = torch.cuda.is_available()
        for member, function in (("forward", self.forward), ("backward", self.backward)):
            guarded = raised.guard(function, False)
            setattr(self.table, member, field_type(c.tr_function, member)(guarded))

    def forward(self, _: object, call: Any) -> bool:
        told = call.contents
        with gpu.stream(told.stream) as device, torch.no_grad():
            result = self.region.run(_rows(told), _inputs(told, device))
            shape = _shape(told.output_desc)
            out = tensor_at(told.output, told.output_desc.dtype, shape, device)
            out.copy_(result.reshape(out.shape))
        return True

    def backward(self, _: object, call: Any) -> bool:
        told = call.contents
        with gpu.stream(told.stream) as device, torch.enable_grad():
            inputs, wanted = _leaves(told, _inputs(told, device))
            result = self.region.run(_rows(told), inputs)
            shape = _shape(told.output_desc)
            gradient = tensor_at(
                told.output_gradient, told.output_desc.dtype, shape, device
            )
            gradient = gradient.reshape(result.shape).to(result.dtype)
            found = _gradients(result, inputs, wanted, gradient)
            _put(told, inputs, wanted, found)
        return True


class MeanOfRows:
    """The mean of what the plan has found for each row that has a target, as PyTorch
    takes it: of (rows, losses, *operands of the targets). output: the node that is the
    mean. weight: of each class, or None."""

    def __init__(
        self, output: Any, losses: Operand, targets: Region, ignored: int, weight: Any
    ) -> None:
        self.operands = [losses, *targets.operands]
        self._targets, self._ignored, self._weight = targets, ignored, weight
        self._kind = output.meta["val"].dtype

    def run(self, rows: int, values: Sequence[Any]) -> Any:
        losses, *given = values
        with torch.no_grad():
            targets = self._targets.run(rows, given)
            there = targets != self._ignored
            count = there.sum()
            if self._weight is not None:
                count = self._weight.to(targets.device)[targets[there]].sum()
        found = losses.reshape(there.shape).masked_fill(~there, 0.0).sum() / count
        return found.to(self._kind)


class LossFunction(Function):
    """A mean at the end of the graph, as the sum over its targets. measure: how many the
    values have, and how many of them the best guess got right. Behind the region's
    operands may come a number for each row that is there, and NaN for those that are
    not, which stand at the end; without it, labels of such rows are none."""

    def __init__(
        self,
        region: Region,
        raised: Raised,
        name: str,
        outside: int,
        measure: Callable[[int, Sequence[Any]], tuple[float, float]],
    ) -> None:
        super().__init__(region, raised, name, outside)
        self.table.loss = True
        self.measure = measure

    def forward(self, _: object, call: Any) -> bool:
        told = call.contents
        with gpu.stream(told.stream) as device, torch.no_grad():
            rows, inputs = self._there(told, device)
            if rows:
                self._add(told, rows, inputs, self.region.run(rows, inputs))
        return True

    def backward(self, _: object, call: Any) -> bool:
        told = call.contents
        with gpu.stream(told.stream) as device, torch.enable_grad():
            rows, inputs = self._there(told, device)
            leaves, wanted = _leaves(told, inputs)
            count = 0.0
            if rows:
                result = self.region.run(rows, leaves)
                count = self._add(told, rows, inputs, result.detach())
            if count:
                seed = torch.full_like(result, told.loss_seed * count)
                _put(told, leaves, wanted, _gradients(result, leaves, wanted, seed))
            else:
                _put(told, leaves, wanted, [None] * len(wanted))
        return True

    def _there(self, told: Any, device: torch.device) -> tuple[int, list[Any]]:
        """Without the rows that are missing."""
        rows, given = int(told.rows), _inputs(told, device)
        if len(given) > len(self.region.operands):
            present = given.pop()
            rows = min(rows, int((present == present).sum()))
        inputs = [
            value[:rows] if operand.rows else value
            for operand, value in zip(self.region.operands, given, strict=True)
        ]
        return rows, inputs

    def _add(self, told: Any, rows: int, inputs: Sequence[Any], mean: Any) -> float:
        """The sums are on the host, also where a GPU computes: `float` waits for it,
        and so for what the plan has written there before."""
        count, right = self.measure(rows, inputs)
        mean = float(mean)
        sums = tensor_at(told.output, c.TR_F64, [3])
        if count:
            sums += torch.tensor([mean * count, count, right], dtype=sums.dtype)
        return count


def _rows(told: Any) -> int:
    """Of the micro-batch, missing ones too."""
    return int(told.output_desc.shape.dim[0])


def _inputs(told: Any, device: torch.device) -> list[Any]:
    return [
        tensor_at(
            told.input[i], told.input_desc[i].dtype, _shape(told.input_desc[i]), device
        )
        for i in range(told.input_count)
    ]


def _leaves(told: Any, inputs: Sequence[Any]) -> tuple[list[Any], list[int]]:
    """The inputs, those whose gradient is wanted as leaves, and their numbers."""
    wanted = [i for i in range(len(inputs)) if told.input_gradient[i]]
    leaves = [
        value.detach().float().requires_grad_() if i in wanted else value
        for i, value in enumerate(inputs)
    ]
    return leaves, wanted


def _gradients(
    result: Any, leaves: Sequence[Any], wanted: Sequence[int], seed: Any
) -> Sequence[Any]:
    given = [leaves[i] for i in wanted]
    return torch.autograd.grad(result, given, seed, allow_unused=True)


def _put(
    told: Any, leaves: Sequence[Any], wanted: Sequence[int], found: Sequence[Any]
) -> None:
    """Writes the gradients, or adds them, where they belong; None: zeros."""
    for i, gradient in zip(wanted, found, strict=True):
        full = [told.input_gradient_dtype[i], list(leaves[i].shape)]
        shape = _shape(told.input_desc[i])
        to = tensor_at(told.input_gradient[i], full[0], shape, leaves[i].device)
        there = to[: leaves[i].shape[0]] if list(to.shape) != full[1] else to
        if not told.adds >> i & 1:
            to.zero_()
        if gradient is not None:
            there += gradient.to(to.dtype)


def check_rows(
    traced: Traced, shapes: Shapes, region: Region, examples: Mapping[Any, Any]
) -> None:
    """An error that names the operator which mixes rows, if one does."""
    if not any(operand.rows for operand in region.operands):
        raise refuse(region.output, "its result does not depend on the batch alone")
    if region.keeps_rows_apart(examples):
        return
    ends = {operand.node for operand in region.operands}
    inside = [n for n in traced.nodes if n in set(region.nodes) and n not in ends]
    for node in inside:
        if shapes.sample(node) is None and not shapes.has_rows(node):
            continue
        operands = [
            operand
            for operand in region.operands
            if operand.node in set(_cone(node, ends))
        ]
        if not any(operand.rows for operand in operands) or is_size(node):
            continue
        if shapes.sample(node) is None:
            continue
        if not Region(traced, shapes, node, operands).keeps_rows_apart(examples):
            raise _mixes(_culprit(inside, node, shapes))
    raise _mixes(region.output)


def _culprit(inside: Sequence[Any], node: Any, shapes: Shapes) -> Any:
    """The first operator before it that has no rows left, or the node itself."""
    before = set(_cone(node, set()))
    for each in inside:
        lost = not is_size(each) and not shapes.has_rows(each)
        if each in before and lost and any(shapes.has_rows(n) for n in each.all_input_nodes):
            return each
    return node


def _mixes(node: Any) -> Error:
    return refuse(
        node,
        "it mixes the rows of a batch, so that another cut into micro-batches would "
        "change the result",
    )

