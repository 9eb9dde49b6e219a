"""A step in parts: the loss of a model without one is computed in Python, and trains
the model as the same loss inside does."""

from __future__ import annotations

import ctypes
import json
import math
import unittest
from typing import Any

from common import CLASSES, FEATURES, InFolder, config, needs_numpy, needs_torch, samples

import tranche
from tranche import _declarations as c
from tranche._calls import Raised
from tranche._handle import field_type, sized
from tranche._library import library

USAGE, DATA = tranche.Status.USAGE, tranche.Status.DATA
HIDDEN, ROWS = 8, 8
BUILD = field_type(c.tr_model_unit, "build")


def shape(*sizes: int) -> Any:
    made = c.tr_shape()
    made.rank = len(sizes)
    made.dim[: len(sizes)] = sizes
    return made


def call(graph: Any, op: str, *values: int, **attributes: Any) -> int:
    given = (ctypes.c_int32 * len(values))(*values)
    text = json.dumps(attributes).encode() if attributes else None
    return int(
        library().tr_graph_call(
            graph, op.encode(), text, given, len(values), None, 0
        )
    )


def linear(graph: Any, x: int, name: str, outs: int, ins: int) -> int:
    draw = c.tr_init(c.TR_INIT_UNIFORM, -0.5, 0.5)
    at = library()
    weight = at.tr_graph_param(graph, name.encode(), shape(outs, ins), draw)
    return call(graph, "linear", x, weight)


def first(graph: Any, _: object) -> None:
    x = library().tr_graph_data(graph, b"features")
    h = call(graph, "relu", linear(graph, x, "w", HIDDEN, FEATURES))
    library().tr_graph_output(graph, h)


def last(graph: Any, _: object) -> None:
    x = library().tr_graph_input(graph, 0)
    library().tr_graph_output(graph, linear(graph, x, "w", CLASSES, HIDDEN))


class Model:
    """first: features to hidden; last: to logits, without a loss."""

    def __init__(self) -> None:
        self.built = [BUILD(first), BUILD(last)]
        self.units = (c.tr_model_unit * 2)()
        for unit, name, build in zip(
            self.units, (b"first", b"last"), self.built, strict=True
        ):
            unit.name = unit.kind = name
            unit.prefix = name + b"."
            unit.build = build
        self.raised = Raised()
        self.model = sized(c.tr_model)
        self.pointer = ctypes.pointer(self.model)
        self.model.type = b"own"
        self.model.unit_count = 2
        self.model.units = self.units
        self.model.batch.count = 1
        tensor = self.model.batch.tensor[0]
        tensor.name = b"features"
        tensor.role = c.TR_ROLE_INPUT
        tensor.desc.dtype = c.TR_F32
        tensor.desc.shape = shape(FEATURES)


def settings(**changes: Any) -> dict[str, Any]:
    cut = {"train_micro_batch_size_per_gpu": ROWS, "gradient_accumulation_steps": 2}
    given = config(**{**cut, **changes})
    for key in ("model", "data", "evaluation", "train_batch_size"):
        del given[key]
    return given


def cross_entropy(logits: Any, labels: list[int]) -> tuple[float, list[list[float]]]:
    """The mean over the rows, and its gradient."""
    loss, gradient = 0.0, []
    for row, label in zip(logits, labels, strict=True):
        top = max(row)
        powers = [math.exp(value - top) for value in row]
        loss += math.log(sum(powers)) + top - row[label]
        gradient.append(
            [
                (power / sum(powers) - (i == label)) / len(labels)
                for i, power in enumerate(powers)
            ]
        )
    return loss / len(labels), gradient


class Parts(InFolder):
    def engine(self, **changes: Any) -> tranche.Engine:
        self.own = Model()
        run = tranche.Run(settings(**changes), model=self.own)
        engine = run.engine()
        self.addCleanup(engine.close)
        return engine

    def step(self, engine: tranche.Engine, turn: Any) -> tranche.StepResult:
        rows, labels = samples(2 * ROWS)
        for at in (0, ROWS):
            turn(engine, rows[at : at + ROWS], labels[at : at + ROWS])
        return engine.update()

    def plain(self, engine: tranche.Engine, rows: Any, labels: Any) -> None:
        (logits,) = engine.forward(rows)
        self.assertTrue(logits.readonly)
        loss, gradient = cross_entropy(logits.tolist(), labels)
        engine.backward(gradient, loss)

    def test_trains(self) -> None:
        engine = self.engine()
        losses = [self.step(engine, self.plain) for _ in range(5)]
        self.assertEqual([r.update for r in losses], [1, 2, 3, 4, 5])
        self.assertLess(losses[-1].loss, losses[0].loss)
        self.assertEqual(losses[0].targets, 2)
        self.assertEqual(engine.steps_done, 5)

    def test_evaluates_and_drops(self) -> None:
        engine = self.engine()
        rows, labels = samples(5)
        (before,) = engine.forward(rows, evaluate=True)
        kept = before.tolist()
        self.plain(engine, *samples(ROWS))
        with self.refused(USAGE, "1 of its 2 micro-batches"):
            engine.forward(rows, evaluate=True)
        engine.drop()
        (after,) = engine.forward({"features": rows}, evaluate=True)
        self.assertEqual(after.tolist(), kept)
        self.assertEqual(after.shape, (5, CLASSES))

    def test_misuse_leaves_the_engine_usable(self) -> None:
        engine = self.engine()
        rows, labels = samples(ROWS + 1)
        with self.refused(USAGE, "no step is at work"):
            engine.backward([0.0])
        with self.refused(USAGE, "no step is at work"):
            engine.update()
        with self.refused(USAGE, "tr_engine_forward"):
            engine.step()
        with self.refused(USAGE, "9 rows", "0 to 8"):
            engine.forward(rows)
        with self.refused(USAGE, "features"):
            engine.forward({"feature": rows})
        with self.refused(USAGE, "give inputs"):
            engine.forward()
        with self.refused(DATA, "features", "[8, 2]"):
            engine.forward([row[:2] for row in rows[:ROWS]])
        (logits,) = engine.forward(rows[:ROWS])
        with self.refused(USAGE, "wait for their gradients"):
            engine.forward(rows[:ROWS])
        with self.refused(DATA, "the gradient of output 0"):
            engine.backward([[0.0] * CLASSES])
        with self.refused(USAGE, "2 gradients of 1 outputs"):
            engine.backward((None, None))
        engine.backward(None, 1.0)
        engine.drop()
        self.assertFalse(self.step(engine, self.plain).skipped)

    def test_a_short_batch(self) -> None:
        engine = self.engine(gradient_accumulation_steps=1)
        self.plain(engine, *samples(3))
        self.assertEqual(engine.update().targets, 1)

    @needs_numpy
    def test_numpy(self) -> None:
        import numpy

        def turn(engine: tranche.Engine, rows: Any, labels: Any) -> None:
            (logits,) = engine.forward(numpy.array(rows, "f4"))
            loss, gradient = cross_entropy(logits.numpy().tolist(), labels)
            engine.backward(numpy.array(gradient), loss)

        a = self.step(self.engine(), turn)
        b = self.step(self.engine(), self.plain)
        self.assertEqual((a.loss, a.grad_norm), (b.loss, b.grad_norm))

    @needs_torch
    def test_torch(self) -> None:
        import torch

        def turn(engine: tranche.Engine, rows: Any, labels: Any) -> None:
            (logits,) = engine.forward(torch.tensor(rows))
            given = logits.torch().clone().requires_grad_()
            loss = torch.nn.functional.cross_entropy(given, torch.tensor(labels))
            loss.backward()
            engine.backward(given.grad, loss.item())

        a = self.step(self.engine(), turn)
        b = self.step(self.engine(), self.plain)
        self.assertAlmostEqual(a.loss, b.loss, places=5)
        self.assertAlmostEqual(a.grad_norm, b.grad_norm, places=4)

    @needs_numpy
    @needs_torch
    def test_outputs_of_16_bits(self) -> None:
        import numpy
        import torch

        for key, kind in (("bf16", torch.bfloat16), ("fp16", torch.float16)):
            engine = self.engine(**{key: {"enabled": True}})
            (logits,) = engine.forward(samples(ROWS)[0], evaluate=True)
            given = logits.torch()
            self.assertEqual(given.dtype, kind)
            wide = given.float().numpy()
            self.assertTrue((numpy.asarray(logits).astype("f4") == wide).all())
            self.assertEqual(logits.tolist(), wide.tolist())

    def test_16_bits(self) -> None:
        single = self.step(self.engine(), self.plain)
        for key, bound in (("bf16", 2e-2), ("fp16", 2e-3)):
            engine = self.engine(**{key: {"enabled": True}})
            found = self.step(engine, self.plain)
            self.assertAlmostEqual(found.loss, single.loss, delta=bound)


if __name__ == "__main__":
    unittest.main()
