"""How a graph ends: with a loss, or with outputs that are handed to the caller."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from tranche import _declarations as c
from tranche._calls import Raised
from tranche.error import Error
from tranche.module import losses
from tranche.module.export import Traced, refuse
from tranche.module.read import Emitted
from tranche.module.regions import LossFunction, MeanOfRows, Operand, Region, check_rows
from tranche.module.shapes import count
from tranche.module.shaping import Shaping
from tranche.module.steps import Step, Value
from tranche.module.table import argument


class Tensor(NamedTuple):
    """A tensor of the batch as the library takes it."""

    name: str
    node: Any
    shape: tuple[int, ...]
    whole: bool
    channels_last: bool
    target: bool


# A target that is a number in rows that are there, for losses that compare with none.
PRESENT = "tranche.present"
PRESENCE = Tensor(PRESENT, None, (), False, False, True)


class Ending(Shaping):
    """The part of a lowering that writes the end of the last unit."""

    traced: Traced
    end: losses.End | None
    rows_end: losses.End | None  # the mean of what rows come to, which PyTorch takes
    batch: dict[str, Tensor]
    handed: list[tuple[Any, Value]]
    outside: Region | MeanOfRows | None
    _emitted: list[Emitted]
    _examples: Mapping[Any, Any]
    _raised: Raised

    def data(self, node: Any, target: bool = False) -> Value:
        raise NotImplementedError

    def _operand(self, node: Any) -> Operand:
        raise NotImplementedError

    def _inputs(self, region: Region) -> tuple[int, ...]:
        raise NotImplementedError

    def _tell(self, region: Region) -> int:
        raise NotImplementedError

    def _ends(self) -> tuple[Any, list[Any]]:
        """The node that PyTorch computes at the end, if it does, and those that have to
        lie in the plan."""
        if self.rows_end is not None:
            if self.rows_end.logits is not None:
                return None, [self.rows_end.logits]
            return None, list(self._product().operands)
        if self.end is None:
            outputs = list(self.traced.outputs)
            alone = len(outputs) == 1 and outputs[0].meta["val"].ndim == 0
            return (outputs[0], []) if alone else (None, outputs)
        if self.end.elements is not None:
            return None, [self.end.elements[0]]
        if self.end.logits is not None:
            return None, [self.end.logits]
        if self.end.product is None:
            return self.end.node, []
        return None, list(self._product().operands)

    def _product(self) -> Any:
        return self.reading.natives[self._compared().product]

    def _compared(self) -> losses.End:
        """The cross-entropy that an op of the library takes."""
        end = self.end or self.rows_end
        assert end is not None
        return end

    # ---- the end

    def _finish(self) -> None:
        if self.rows_end is not None:
            self._hand_out_rows(self.rows_end)
            return
        if self.end is None:
            self._hand_out()
            return
        if self.end.product is not None:
            self._finish_with_product()
            return
        if self.end.elements is not None:
            self._finish_with_elements(*self.end.elements)
            return
        if self.end.logits is not None:
            inputs, _, smoothing = self._classes(self.end.node, self.end.logits)
            self._unit.op("cross_entropy", inputs, smoothing=smoothing)
            return
        self._finish_in_torch(self.end)

    def _finish_in_torch(self, end: losses.End) -> None:
        region = self._region_of(end.node)
        measured = [
            losses.measure(self.reading, mean, self._parts(mean, region))
            for mean in end.means
        ]
        outside = self._tell(region)
        by_labels = all(self._are_labels(mean) for mean in end.means)
        most = c.TR_FUNCTION_INPUTS - (1 if by_labels else 2)
        if len(region.operands) > most:
            raise refuse(
                end.node,
                f"the loss takes {len(region.operands)} tensors at once, {most} at most "
                f"are possible: compute it outside of the module, by forward, backward "
                f"and step",
            )
        counted = losses.together(self.reading, end.means, measured)
        function = LossFunction(region, self._raised, "loss", outside, counted)
        inputs = self._inputs(region)
        if not by_labels:
            self.batch[PRESENT] = PRESENCE
            inputs = (*inputs, self._unit.once("data", PRESENT))
        self._unit.add(Step("function", "loss", inputs, function=function))

    def _are_labels(self, mean: losses.Mean) -> bool:
        """Are its targets a tensor of the batch that is none in rows that are missing?"""
        if mean.targets is None or mean.targets.meta["val"].is_floating_point():
            return False
        usual = argument(mean.node, 4, "ignore_index", -100) == c.TR_NO_TARGET
        return usual and self.reading.base(mean.targets) in self.traced.inputs

    def _parts(self, mean: losses.Mean, region: Region) -> dict[str, Region]:
        """The logits and the targets of classes, which keep rows apart as all does that
        a mean is taken of."""
        parts = {}
        if mean.targets is not None:
            if self._are_labels(mean):
                self.data(self.reading.base(mean.targets), target=True)
            for name, node in zip(("logits", "targets"), mean.node.args, strict=False):
                parts[name] = Region(self.traced, self.shapes, node, region.operands)
                self._check_part(parts[name])
            return parts
        for node in mean.node.all_input_nodes:
            if node not in {operand.node for operand in region.operands}:
                self._check_part(self._region_of(node))
        return parts

    def _hand_out(self) -> None:
        """What the caller computes the loss of are outputs of the last unit."""
        loss, nodes = self._ends()
        if loss is not None:
            self.outside = self._region_of(loss)
            lies = {made.node for made in self._emitted}
            nodes = [o.node for o in self.outside.operands if o.node in lies]
            if any(not operand.rows for operand in self.outside.operands):
                raise refuse(loss, "a loss with parameters of its own needs loss=")
        for node in nodes:
            value = self.plain(node) if loss is None else self.value(node)
            if value.index in self._unit.outputs or self._comes_in(value):
                value = self.copy(value)
            self._unit.outputs.append(value.index)
            self.handed.append((node, value))
        if not nodes:
            raise refuse(self.traced.outputs[0], "no output is made of the batch")

    def _hand_out_rows(self, end: losses.End) -> None:
        """What each row comes to is the output, and PyTorch takes the mean of it: no
        logits leave the plan."""
        if end.logits is not None:
            inputs, lead, smoothing = self._classes(end.node, end.logits)
        else:
            made = self._product().build(self)
            lead, smoothing = made.shape[:-1], 0.0
            inputs = [made.index, self._targets(lead)]
        index = self._unit.op("cross_entropy_each", inputs, smoothing=smoothing)
        each = Value(index, lead)
        weight = argument(end.node, 2, "weight") if end.logits is not None else None
        self.outside = MeanOfRows(
            self.traced.outputs[0],
            Operand(end.node, False, True),
            self._targets_region(end),
            argument(end.node, 4, "ignore_index", c.TR_NO_TARGET),
            None if weight is None else self.reading.constant(weight),
        )
        self._unit.outputs.append(each.index)
        self.handed.append((end.node, each))

    def _comes_in(self, value: Value) -> bool:
        return self._unit.steps[value.index].kind not in ("op", "function")

    def _check_part(self, part: Region) -> None:
        if any(operand.node is part.output for operand in part.operands):
            return
        if any(operand.rows for operand in part.operands):
            check_rows(self.traced, self.shapes, part, self._examples)

    def _region_of(self, node: Any) -> Region:
        lies = {made.node for made in self._emitted}
        operands = self.reading.operands_of(node, lies)
        return Region(
            self.traced, self.shapes, node, [self._operand(each) for each in operands]
        )

    def _finish_with_product(self) -> None:
        """The product and the cross-entropy behind it are one op."""
        steps = len(self._unit.steps)
        made = self._product().build(self)
        linear = self._unit.steps.pop()
        assert made.index == len(self._unit.steps) >= steps
        x, weight, *bias = linear.inputs
        assert self.end is not None
        targets = self._targets(made.shape[:-1])
        self._unit.add(
            Step(
                "op",
                "linear_cross_entropy",
                (x, weight, targets, *bias),
                linear.attributes,
            )
        )

    def _classes(
        self, loss: Any, logits: Any
    ) -> tuple[list[int], tuple[int, ...], float]:
        """What an op compares, the shape of the targets, and how smoothly: classes come
        last, with a target for each row of them."""
        shape = self.shapes.sample(logits) or ()
        several = logits.meta["val"].ndim == len(shape)  # [k * rows, classes, ...]
        given = self._classes_last(logits, shape if several else (1, *shape))
        lead = self.shapes.sample(self._compared().targets) or ()
        lead = lead if len(lead) < 3 else (count(lead),)
        given = self.reshape(given, (*lead, given.shape[-1]))
        inputs = [given.index, self._targets(lead)]
        weight = argument(loss, 2, "weight")
        if weight is not None:
            values = self.reading.constant(weight)
            inputs.append(self.numbers(values.float()))
        return inputs, lead, float(argument(loss, 5, "label_smoothing", 0.0))

    def _classes_last(self, logits: Any, shape: tuple[int, ...]) -> Value:
        """shape: [k, classes, ...] a sample."""
        value, inner = self.value(logits), count(shape[2:])
        if value.channels_last and value.shape[-1] == shape[1]:
            plain = replace(value, channels_last=False)
            return self.reshape(plain, (shape[0] * inner, shape[1]))
        given = self.plain(logits)
        if inner == 1:
            return self.reshape(given, (shape[0], shape[1]))
        made = self.transposed(given, shape[0], shape[1], inner)
        return self.reshape(made, (shape[0] * inner, shape[1]))

    def _finish_with_elements(self, x: Any, targets: Any, kind: str) -> None:
        shape = self.shapes.sample(x) or ()
        given = self.whole(x)
        wanted = self.data(targets, target=True)
        if given.shape != wanted.shape:
            given = self.reshape(given, wanted.shape)
        assert count(shape) == count(wanted.shape)
        self._unit.add(
            Step("op", "element_loss", (given.index, wanted.index), f'{{"kind": "{kind}"}}')
        )

    def _targets(self, lead: tuple[int, ...]) -> int:
        """The tensor of the batch that the loss compares with, or one that is made of
        the batch before it comes to the library."""
        end = self._compared()
        node = self.reading.base(end.targets)
        ignored = argument(end.node, 4, "ignore_index", c.TR_NO_TARGET)
        usual = ignored == c.TR_NO_TARGET and self.rows_end is None
        if usual and node in self.traced.inputs and self.shapes.sample(node) == lead:
            return self.data(node, target=True).index
        # Where PyTorch takes the mean, it leaves out what has no target: any class does.
        missing = c.TR_NO_TARGET if self.rows_end is None else 0
        region = self._targets_region(end)
        region.finish = lambda found: found.masked_fill(found == ignored, missing)
        self.reading.prepared["targets"] = region
        if self.rows_end is not None:
            self.reading.ids_below["targets"] = end.classes
        trained = self.rows_end is None
        self.batch["targets"] = Tensor("targets", end.targets, lead, True, False, trained)
        return self._unit.once("data", "targets")

    def _targets_region(self, end: losses.End) -> Region:
        """How targets are made of the batch, each row's of that row."""
        inputs, node = self.traced.inputs, end.targets
        made = [node] if node in inputs else self.reading.operands_of(node, set())
        if not all(each in inputs for each in made):
            raise refuse(end.node, "its targets are not made of the batch alone")
        operands = [Operand(each, False, True) for each in made]
        region = Region(self.traced, self.shapes, node, operands)
        check_rows(self.traced, self.shapes, region, self._examples)
        return region

    def _find_rows_end(self) -> losses.End | None:
        """The mean that the model returns alone, where an op can give the loss of each
        of its targets."""
        try:
            end = losses.find(self.reading)
            if end.is_classes:
                self._targets_region(end)
                return end
        except Error:  # PyTorch computes the loss, whatever it is
            pass
        return None
