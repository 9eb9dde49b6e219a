"""torch.export's training graph of a module and its loss, with symbolic rows."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch

import tranche
from tranche.error import Error, Status
from tranche.module import sums, views
from tranche.module.batch_first import batch_first
from tranche.module.words import WRITTEN, rewrite

Loss = Callable[..., Any]
_HERE = re.compile(r'File "([^"]+)", line (\d+), in (\w+)')
# Frames that tell nobody where his mistake is.
_OUTSIDE = tuple(
    f"{os.path.dirname(str(each.__file__))}{os.sep}" for each in (torch, tranche)
)


class Returned(NamedTuple):
    """What a module returns: tensors by name, of a dict or a class like one; names: of
    none else."""

    kind: type | None
    names: list[str]

    def made(self, tensors: Sequence[Any]) -> Any:
        """The same of other tensors."""
        if self.kind is None:
            return tensors[0] if len(tensors) == 1 else tuple(tensors)
        named = dict(zip(self.names, tensors, strict=True))
        try:
            return self.kind(**named)
        except TypeError:
            return named


class Traced(NamedTuple):
    """The graph, and what its placeholders stand for. Names are those of the user's
    module."""

    nodes: list[Any]
    inputs: dict[Any, str]  # tensors of the batch
    parameters: dict[Any, str]
    buffers: dict[Any, str]
    constants: dict[Any, Any]  # their tensors
    outputs: list[Any]
    returned: Returned
    rows: Any  # the symbol, as sympy has it
    graph_module: Any
    placeholders: list[Any]


class _WithLoss(torch.nn.Module):
    """The module, and behind it the loss of its outputs and the batch's last tensor."""

    def __init__(
        self,
        module: torch.nn.Module,
        loss: Loss | None,
        told: Callable[[Returned], None],
    ) -> None:
        """told: of what the module returns; export forgets what it writes to itself."""
        super().__init__()
        self.module = module
        self.loss = loss
        self.told = told
        self.train(module.training)

    def forward(self, *given: Any, **named: Any) -> Any:
        if self.loss is None:
            found = self.module(*given, **named)
            tensors = _tensors_of(found)
            kind = type(found) if isinstance(found, Mapping) else None
            self.told(Returned(kind, list(tensors)))
            made = list(tensors.values())
            return made[0] if len(made) == 1 else tuple(made)
        *inputs, target = given
        return self.loss(self.module(*inputs, **named), target)


def _tensors_of(found: Any) -> dict[str, Any]:
    """What a module returns, as tensors by name: its loss alone where it has one."""
    if isinstance(found, torch.Tensor):
        return {"0": found}
    loss = getattr(found, "loss", None)
    if isinstance(found, Mapping):
        loss = found.get("loss") if loss is None else loss
        named = {str(name): part for name, part in found.items()}
    else:
        named = {str(i): part for i, part in enumerate(found)}
    if isinstance(loss, torch.Tensor):
        return {"loss": loss}
    tensors = {n: part for n, part in named.items() if isinstance(part, torch.Tensor)}
    scalars = [name for name, part in tensors.items() if part.ndim == 0]
    return {scalars[0]: tensors[scalars[0]]} if len(scalars) == 1 else tensors


def where(node: Any) -> str:
    """The line of Python that made a node: the innermost one outside of PyTorch."""
    found = _HERE.findall(node.meta.get("stack_trace") or "")
    own = [at for at in found if not at[0].startswith(_OUTSIDE)]
    if not own:
        own = found
    if not own:
        return "line not known"
    file, line, function = own[-1]
    return f"{file}:{line}, in {function}"


def operator(node: Any) -> str:
    """What PyTorch calls it."""
    target = node.meta.get(WRITTEN, node.target)
    name = getattr(target, "__name__", str(target))
    return str(name).removeprefix("aten.").removesuffix(".default")


def refuse(node: Any, why: str) -> Error:
    return Error(Status.USAGE, f"{operator(node)} ({where(node)}): {why}")


def _check_module(module: torch.nn.Module) -> None:
    for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
        if tensor.is_meta:
            raise Error(
                Status.USAGE,
                f"{name} is on the meta device and has no values: make the module on "
                f"the CPU or inside of tranche.zero.Init, or load its weights first",
            )
        if tensor.device.type != "cpu":
            raise Error(
                Status.USAGE,
                f"{name} is on {tensor.device}: leave the module on the CPU, the "
                f"engine puts it where it computes",
            )


def _example(tensor: Any) -> Any:
    """A few rows: two at least, since one row would not be told from a fixed size."""
    return tensor[:3] if tensor.shape[0] > 1 else torch.cat([tensor, tensor])


def example(batch: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _example(tensor.detach()) for name, tensor in batch.items()}


def export(
    module: torch.nn.Module,
    loss: Loss | None,
    batch: Mapping[str, Any],
    named: Sequence[str],
) -> Traced:
    """batch: tensors [rows, ...] by name, in the order of the module's arguments, those
    in `named` by keyword; with a loss the last one is what it compares with."""
    _check_module(module)
    rows = torch.export.Dim("rows")
    given = example(batch)
    dynamic = [{0: rows} for name in given if name not in named]
    returned = [Returned(None, [])]
    whole = _WithLoss(module, loss, returned.append)
    try:
        with batch_first():
            program = torch.export.export(
                whole,
                tuple(tensor for name, tensor in given.items() if name not in named),
                {name: given[name] for name in named},
                dynamic_shapes={
                    **({"given": tuple(dynamic)} if dynamic else {}),
                    **{name: {0: rows} for name in named},
                },
                strict=False,
            )
    except Exception as error:
        raise Error(Status.USAGE, _told(error)) from error
    return _traced(program, list(given), returned[-1])


def _told(error: Exception) -> str:
    """What torch.export says, short, and the user's line."""
    text = str(error).strip()
    trace = error.__traceback__
    lines = []
    while trace is not None:
        frame = trace.tb_frame.f_code
        if not frame.co_filename.startswith(_OUTSIDE):
            lines.append(f"{frame.co_filename}:{trace.tb_lineno}, in {frame.co_name}")
        trace = trace.tb_next
    own = _HERE.findall(text)
    lines += [
        f"{file}:{line}, in {function}"
        for file, line, function in own
        if not file.startswith(_OUTSIDE)
    ]
    # The user's call of ours comes first, his module's line last.
    place = lines[-1] if lines else "line not known"
    short = text.split("\n\n")[0][:600]
    return (
        f"torch.export cannot follow the module ({place}): "
        f"{type(error).__name__}: {short}"
    )


def _plain(name: str) -> str:
    return name.removeprefix("module.")


def _traced(program: Any, names: list[str], returned: Returned) -> Traced:
    graph_module = program.graph_module
    signature = program.graph_signature
    kinds = torch.export.graph_signature.InputKind
    placeholders = [n for n in graph_module.graph.nodes if n.op == "placeholder"]
    inputs: dict[Any, str] = {}
    parameters: dict[Any, str] = {}
    buffers: dict[Any, str] = {}
    constants: dict[Any, Any] = {}
    order = iter(names)
    for node, spec in zip(placeholders, signature.input_specs, strict=True):
        if spec.kind == kinds.USER_INPUT:
            inputs[node] = next(order)
        elif spec.kind == kinds.PARAMETER:
            parameters[node] = _plain(spec.target)
            constants[node] = program.state_dict[spec.target]
        elif spec.kind == kinds.BUFFER:
            buffers[node] = _plain(spec.target)
            constants[node] = program.state_dict.get(
                spec.target, program.constants.get(spec.target)
            )
        else:
            constants[node] = program.constants[spec.target]
    _without_writing(graph_module)
    rewrite(graph_module, (views.WORDS, sums.WORDS))
    (output,) = [n for n in graph_module.graph.nodes if n.op == "output"]
    first = next(iter(inputs))
    return Traced(
        nodes=[n for n in graph_module.graph.nodes if n.op == "call_function"],
        inputs=inputs,
        parameters=parameters,
        buffers=buffers,
        constants=constants,
        outputs=list(output.args[0]),
        returned=returned,
        rows=first.meta["val"].shape[0].node.expr,
        graph_module=graph_module,
        placeholders=placeholders,
    )


_VIEWS = {"view", "transpose", "permute", "slice", "select", "expand", "t", "narrow"}


def _without_writing(graph_module: Any) -> None:
    """Operators that write into their first operand give a new tensor in its place.
    Counters of batch norm are the engine's."""
    graph = graph_module.graph
    for node in list(graph.nodes):
        schema = getattr(node.target, "_schema", None)
        if schema is None or not schema.is_mutable or not node.args:
            continue
        written = node.args[0]
        if written.op == "placeholder":
            if str(written.name).endswith("num_batches_tracked"):
                node.replace_all_uses_with(written)
                graph.erase_node(node)
                continue
            raise refuse(node, "it writes into a buffer, a parameter or the batch")
        name = schema.name.removeprefix("aten::")
        base = getattr(torch.ops.aten, name.removesuffix("_"), None)
        overload = schema.overload_name or "default"
        views = getattr(written.target, "_schema", None)
        if base is None or not hasattr(base, overload) or not name.endswith("_"):
            if name in ("batch_norm", "_native_batch_norm_legit"):
                continue
            raise refuse(node, "it writes into a tensor that others read")
        if views is not None and views.name.removeprefix("aten::") in _VIEWS:
            raise refuse(node, "it writes into a part of another tensor")
        node.target = getattr(base, overload)
        later = set()
        at = node.next
        while at.op != "root":
            later.add(at)
            at = at.next
        written.replace_all_uses_with(node, delete_user_cb=lambda user: user in later)
