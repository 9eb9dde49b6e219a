"""Tensors of an engine, with and without copies, and a model's answers."""

from __future__ import annotations

import gc
import math
import unittest
from typing import Any

from common import (
    CLASSES,
    FEATURES,
    InFolder,
    config,
    needs_numpy,
    needs_torch,
    samples,
)

import tranche

USAGE, DATA = tranche.Status.USAGE, tranche.Status.DATA
WEIGHT = "layers.0.weight"


class Tensors(InFolder):
    def setUp(self) -> None:
        super().setUp()
        self.engine = tranche.Run(config()).engine()
        self.addCleanup(self.engine.close)

    def test_what_there_is(self) -> None:
        tensors = self.engine.tensors
        self.assertEqual(len(tensors), 4)
        self.assertEqual(list(tensors)[0], WEIGHT)
        weight = tensors[WEIGHT]
        self.assertEqual((weight.shape, weight.dtype), ((16, FEATURES), "F32"))
        self.assertTrue(weight.trained)
        self.assertEqual(weight.space, "device")
        self.assertEqual(tensors.parts, ["values", "gradient", "exp_avg", "exp_avg_sq"])
        with self.assertRaises(KeyError):
            tensors["nowhere"]

    def test_a_copy_stays_and_what_is_lent_follows(self) -> None:
        weight = self.engine.tensors[WEIGHT]
        copied, lent = weight.read(), weight.borrow()
        self.assertEqual(copied.tolist(), lent.tolist())
        self.assertTrue(lent.readonly)
        self.assertFalse(copied.readonly)
        with self.assertRaises(TypeError):
            lent.memoryview()[0, 0] = 1.0  # type: ignore[index]
        before = copied.tolist()
        self.engine.step()
        self.assertEqual(copied.tolist(), before)
        self.assertNotEqual(lent.tolist(), before)
        self.assertEqual(lent.tolist(), weight.read().tolist())

    def test_writing(self) -> None:
        weight = self.engine.tensors[WEIGHT]
        rows = [[float(i * FEATURES + f) for f in range(FEATURES)] for i in range(16)]
        weight.write(rows)
        self.assertEqual(weight.borrow().tolist(), rows)
        with self.refused(DATA, WEIGHT, "[15, 6]", "[16, 6]"):
            weight.write(rows[1:])
        with self.refused(USAGE, "no part", "momentum"):
            weight.read("momentum")
        with self.refused(USAGE, "gradient"):
            weight.read("gradient")  # of no step
        self.engine.step()
        gradient = weight.read("gradient").tolist()
        self.assertGreater(math.hypot(*(x for row in gradient for x in row)), 0)

    def test_what_is_lent_outlives_the_engines_name(self) -> None:
        lent = self.engine.tensors[WEIGHT].borrow()
        values = lent.tolist()
        self.engine.close()
        gc.collect()
        self.assertEqual(lent.tolist(), values)

    @needs_numpy
    def test_numpy_takes_it_without_a_copy(self) -> None:
        import numpy

        lent = self.engine.tensors[WEIGHT].borrow()
        for taken in (numpy.asarray(lent), lent.numpy(), numpy.from_dlpack(lent)):
            self.assertEqual(taken.__array_interface__["data"][0], lent.address)
            self.assertEqual((taken.shape, taken.dtype), (lent.shape, numpy.float32))
            self.assertFalse(taken.flags.writeable)
        copied = self.engine.tensors[WEIGHT].read()
        copied.numpy()[0, 0] = 5
        self.assertEqual(copied.tolist()[0][0], 5)
        self.engine.tensors[WEIGHT].write(copied.numpy().astype("f8"))
        self.assertEqual(lent.tolist(), copied.tolist())

    @needs_torch
    def test_torch_takes_it_without_a_copy(self) -> None:
        import torch

        lent = self.engine.tensors[WEIGHT].borrow()
        for taken in (torch.from_dlpack(lent), lent.torch()):
            self.assertEqual(taken.data_ptr(), lent.address)
            self.assertEqual(
                (tuple(taken.shape), taken.dtype), (lent.shape, torch.float32)
            )
        self.engine.tensors[WEIGHT].write(
            torch.ones(16, FEATURES, dtype=torch.bfloat16)
        )
        self.assertEqual(float(lent.torch().sum()), 16 * FEATURES)

    def test_capsules_give_back_what_they_keep(self) -> None:
        from tranche import _dlpack

        lent = self.engine.tensors[WEIGHT].borrow()
        capsule = lent.__dlpack__()
        self.assertEqual(len(_dlpack._alive), 1)
        del capsule
        self.assertEqual(len(_dlpack._alive), 0)
        self.assertEqual(lent.__dlpack_device__(), (1, 0))

    def test_peaks(self) -> None:
        self.engine.step()
        peaks = self.engine.peak_bytes
        ledger = {
            row.space: row.bytes
            for row in self.engine.plan.ledger
            if row.category == "total"
        }
        self.assertEqual(peaks["device"], ledger["device"])
        self.assertGreater(peaks["process"], peaks["device"])


class Predict(InFolder):
    def predictions(self, engine: tranche.Engine, rows: Any) -> list[int]:
        logits = engine.predict(rows).tolist()
        return [max(range(CLASSES), key=row.__getitem__) for row in logits]

    def test_answers_are_of_the_newest_weights(self) -> None:
        rows, labels = samples()
        given = config(steps=60, optimizer={"type": "Adam", "params": {"lr": 0.05}})
        del given["data"]
        with tranche.Run(given, train=(rows, labels)).engine() as engine:
            first = engine.predict(rows)
            self.assertEqual(first.shape, (64, CLASSES))
            self.assertNotEqual(self.predictions(engine, rows), labels)
            for _ in range(60):
                last = engine.step()
            self.assertEqual(last.accuracy, 1)
            self.assertEqual(self.predictions(engine, {"features": rows}), labels)
            engine.tensors["layers.1.weight"].write([[0.0] * 16] * CLASSES)
            same = engine.predict(rows[:2]).tolist()
            self.assertEqual(same[0], same[1])

    def test_what_does_not_fit(self) -> None:
        with tranche.Run(config()).engine() as engine:
            with self.refused(USAGE, "the model takes features", "pixels"):
                engine.predict({"pixels": [[0.0] * FEATURES]})
            with self.refused(DATA, "features", "[1, 5]", "[1, 6]"):
                engine.predict([[0.0] * 5])
            with self.refused(USAGE, "[samples, ...]"):
                engine.predict(1.0)


if __name__ == "__main__":
    unittest.main()
